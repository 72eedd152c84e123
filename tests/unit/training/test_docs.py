"""docs/training.md: its recipe is one, and it names every key."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from slice_os.training import recipe as recipes
from slice_os.training.recipe import Recipe, read_recipe

TEXT = (Path(__file__).parents[3] / "docs/training.md").read_text(encoding="utf-8")


def test_the_recipe_in_the_documentation_is_one(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1], encoding="utf-8")
    recipe = read_recipe(path)
    assert recipe.distillation == recipes.Distillation()
    assert len(recipe.text) == 2


@pytest.mark.parametrize(
    "table",
    [
        *(Recipe, recipes.Distillation, recipes.Ranking, recipes.Slice),
        *(recipes.Pairs, recipes.Development),
    ],
)
def test_every_key_and_default_is_documented(table):
    for field in msgspec.structs.fields(table):
        row = next((line for line in TEXT.splitlines() if f"`{field.name}`" in line), None)
        if field.name in ("text", "distillation", "ranking", "slice", "pairs", "development"):
            assert re.search(rf"\[{field.name}\]", TEXT)
        else:
            assert row, field.name
