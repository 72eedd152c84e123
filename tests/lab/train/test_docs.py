"""docs/training.md: its recipe is one, and it names every key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from slice_os.lab.train import recipe as recipes
from slice_os.lab.train.recipe import Recipe, read_recipe

TABLES = (
    "text", "distillation", "ranking", "slice", "triplets", "pairs", "static", "judge",
    "development",
)  # fmt: skip
TEXT = (Path(__file__).parents[3] / "docs/training.md").read_text(encoding="utf-8")


def test_the_recipe_in_the_documentation_is_one(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1], encoding="utf-8")
    recipe = read_recipe(path)
    assert recipe.distillation == recipes.Distillation()
    assert len(recipe.text) == 2


def described(name):
    """Return what the table of a recipe's table says: key -> default, as it stands there."""
    begin = TEXT.index(f"\n**`{name}`**") if name else TEXT.index("## A recipe")
    rows = TEXT[TEXT.index("| key |", begin) :].split("\n\n")[0].splitlines()[2:]
    found = {}
    for row in rows:
        keys, default = (cell.strip() for cell in row.split("|")[1:3])
        values = default.replace("none", '""').replace("the base", '""') or '"needed"'
        names = re.findall(r"`(\w+)`", keys)
        values = json.loads(f"[{values}]") if names[0] != "path" or name else ["needed"]
        found |= dict(zip(names, [*values, *["needed"] * len(names)][: len(names)], strict=True))
    return found


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (Recipe, ""),
        (recipes.Distillation, "[distillation]"),
        (recipes.Ranking, "[ranking]"),
        (recipes.Slice, "[slice]"),
        (recipes.Triplets, "[triplets]"),
        (recipes.Pairs, "[[pairs]]"),
        (recipes.Static, "[static]"),
        (recipes.Judge, "[judge]"),
        (recipes.Development, "[development]"),
    ],
)
def test_every_key_and_default_is_documented(table, name):
    told = described(name)
    for field in msgspec.structs.fields(table):
        if field.name in TABLES:
            assert table is not Recipe or f"[{field.name}]" in TEXT
        if field.default_factory is msgspec.NODEFAULT and not isinstance(field.default, type(None)):
            wanted = "needed" if field.default is msgspec.NODEFAULT else field.default
            wanted = list(wanted) if isinstance(wanted, tuple) else wanted
            assert told[field.name] == wanted, field.name
