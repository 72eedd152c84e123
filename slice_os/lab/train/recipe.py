"""Recipes: TOML files that describe a training run; docs/training.md says what each key means."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, ValidationError, field, toml

from slice_os.errors import TrainingError

if TYPE_CHECKING:
    from collections.abc import Iterator

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
PACKAGED = "package:"


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a recipe; a key that it does not know is an error."""


class Text(Part, frozen=True):
    """Plain text to draw passages from, in proportion to its `weight`."""

    path: str
    weight: Weight = 1.0


class Distillation(Part, frozen=True):
    """Span distillation: spans in context are drawn to the teacher's spans alone."""

    teacher: str = ""
    second: tuple[str, ...] = ()
    mix: Share = 0.5
    passages: Positive = 24
    spans: Positive = 8
    short: Share = 0.5
    alone: Count = 48
    pull: Amount = 2.0
    anchor: Amount = 1.0
    matrix: Amount = 1.0
    temperature: Weight = 0.05
    degrees: Amount = 5.0


class Ranking(Part, frozen=True):
    """Ranking distillation: passages keep the order that a teacher gives them."""

    teacher: str = ""
    weight: Weight = 1.0
    texts: Positive = 8
    passages: Positive = 3
    temperature: Weight = 0.05
    mean: Share = 0.2
    second: Share = 0.0


class Slice(Part, frozen=True):
    """SLICE's loss (`slice_os.lab.train.losses`) over queries with two passages each."""

    triples: str
    over: Literal["span", "passage"] = "span"
    weight: Weight = 1.0
    batch: Positive = 16
    scale: Weight = 30.0
    in_batch: bool = False
    max_words: Positive = 10


class Triplets(Part, frozen=True):
    """Phrase-BERT's loss over triplets of texts.

    One of the two files is needed; with both, a step learns from a batch of each.
    """

    phrases: str = ""
    contexts: str = ""
    weight: Weight = 1.0
    batch: Positive = 16
    margin: Weight = 1.0

    @property
    def files(self) -> dict[str, str]:
        """The files that are given, by the kind of their rows."""
        files = {"phrases": self.phrases, "contexts": self.contexts}
        return {kind: path for kind, path in files.items() if path}


class Pairs(Part, frozen=True):
    """Pairs of known similarity, the second also inside a passage."""

    path: str
    context: bool = True
    weight: Weight = 1.0
    batch: Positive = 8
    most: Weight = 5.0
    least: Share = 0.55


class Static(Part, frozen=True):
    """A static encoder: a word has one vector, learnt from the base (Wada et al., 2025)."""

    words: Positive = 70_000
    contexts: Positive = 100
    candidates: Positive = 2_000
    sentences: Positive = 250_000
    rare: Positive = 5
    components: Positive = 100_000
    dropped: Annotated[int, Meta(ge=-1)] = -1
    dimension: Positive = 256
    batch: Annotated[int, Meta(ge=3)] = 128
    temperature: Weight = 0.05
    learning_rate: Weight = 1e-3
    validation: Positive = 10_000
    every: Positive = 40
    patience: Positive = 5


class Judge(Part, frozen=True):
    """A judge, which reads a query and a span together (`slice_os.encoders.judge`).

    Attributes:
        pairs: What `recipes/judge_pairs.py` writes: a query, a span, and what is said of them.
        without: Kinds of opposition that are left out.
        batch: Pairs a step.
    """

    pairs: str
    without: list[str] = field(default_factory=list)
    batch: Positive = 64


class Development(Part, frozen=True):
    """The development set, whose measures choose the step that is kept."""

    pairs: str
    opposites: str = ""
    every: Positive = 200
    rows: Positive = 500


class Recipe(Part, frozen=True):
    """See docs/training.md. Paths are relative to the recipe's folder, or to `--data`."""

    name: str
    base: str
    steps: Positive
    text: list[Text] = field(default_factory=list)
    distillation: Distillation | None = None
    ranking: Ranking | None = None
    slice: Slice | None = None
    triplets: Triplets | None = None
    pairs: list[Pairs] = field(default_factory=list)
    static: Static | None = None
    judge: Judge | None = None
    development: Development | None = None
    seed: Count = 0
    passage_words: tuple[Positive, Positive] = (20, 60)
    learning_rate: Weight = 1e-4
    weight_decay: Amount = 0.01
    warmup: Share = 0.05
    accumulate: Positive = 1
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    average: Share = 1.0
    save_every: Positive = 100
    licence: str = ""

    @property
    def draws(self) -> bool:
        """Whether passages of running text are drawn."""
        in_context = any(pairs.context for pairs in self.pairs)
        return bool(self.distillation or self.ranking or in_context)

    def learnt_from(self) -> Iterator[str]:
        """Yield the paths of the training data."""
        yield from (text.path for text in self.text)
        if self.slice:
            yield self.slice.triples
        if self.triplets:
            yield from self.triplets.files.values()
        yield from (pairs.path for pairs in self.pairs)
        if self.judge:
            yield self.judge.pairs

    def models(self) -> Iterator[str]:
        """Yield the folders of the base and the teachers."""
        yield self.base
        if self.distillation:
            yield from filter(None, (self.distillation.teacher, *self.distillation.second))
        if self.ranking and self.ranking.teacher:
            yield self.ranking.teacher

    def paths(self) -> Iterator[str]:
        """Yield every path of data that the recipe names."""
        yield from self.learnt_from()
        if self.development:
            yield self.development.pairs
            if self.development.opposites:
                yield self.development.opposites


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe."""
    path = Path(path)
    try:
        recipe = toml.decode(path.read_bytes(), type=Recipe)
    except OSError as exc:
        raise TrainingError(f"{path} cannot be read ({exc.strerror}): check the path.") from exc
    except ValidationError as exc:
        text = str(exc).replace("Object contains", "it has").replace("Object missing", "it misses")
        raise TrainingError(
            f"The recipe {path} is not usable, {text[0].lower()}{text[1:]}: "
            "docs/training.md lists the keys."
        ) from exc
    except ValueError as exc:
        raise TrainingError(f"{path} is not TOML ({exc}): correct it.") from exc
    if problem := _problem(recipe):
        raise TrainingError(f"The recipe {path} {problem}.")
    return recipe


def folder_of(root: Path, name: str) -> Path:
    """Return the folder that a recipe names; ``package:NAME/FOLDER`` is in an installed package."""
    if not name.startswith(PACKAGED):
        return root / name
    package, _, inner = name.removeprefix(PACKAGED).partition("/")
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise TrainingError(f"The recipe names {name}, but there is no such package: install it.")
    return Path(spec.submodule_search_locations[0]) / inner


def _problem(recipe: Recipe) -> str:
    """Return what is wrong with tables that are each right, "" if nothing is."""
    others = any((recipe.distillation, recipe.ranking, recipe.slice, recipe.triplets, recipe.pairs))
    second = recipe.distillation.second if recipe.distillation else ()
    low, high = recipe.passage_words
    problems = {
        "has nothing to learn from: give it a table [distillation], [ranking], [slice], "
        "[triplets], [[pairs]], [static] or [judge]": not (others or recipe.static or recipe.judge),
        "gives [triplets] no file: name its phrases, its contexts, or both": recipe.triplets
        and not recipe.triplets.files,
        "makes a judge, which is a model of its own: leave out [judge], or the other tables of "
        "what is learnt": recipe.judge and (others or recipe.static),
        "makes a static encoder, which learns from its base alone: leave out [static], or the "
        "other tables of what is learnt": recipe.static and others,
        "draws passages and names no text: give it a table [[text]]": not recipe.text
        and (recipe.draws or recipe.static),
        "gives [ranking] a share of a second teacher that it does not name: name it as second in "
        "[distillation]": recipe.ranking and recipe.ranking.second and not second,
        f"wants passages of {low} to {high} words: swap them": low > high,
    }
    return next((problem for problem, is_so in problems.items() if is_so), "")
