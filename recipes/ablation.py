"""What each ingredient of a recipe gives: train without one after the other, and measure.

    python recipes/ablation.py recipes/english.toml runs/ablation --data DATA --steps 100 \
      --context context.jsonl --collection DATA/retrieval/cisi

Short runs, all alike but for what is left out; context.jsonl is what recipes/context_set.py makes.
A run that is there is not made again, one that was interrupted goes on. Other steps or another
recipe need another folder.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

import slice_os

SCORERS = ("single pass", "window", "rescored", "target alone")
SETTINGS = ("dense:late=0", "hybrid:saturation:0.2:late=0")
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "the whole recipe": (),
    "without the second teacher": (r'^second = "[^"]*"\n', r"^second = [\d.]+\n"),
    "without ranking distillation": (r"^\[ranking\]\n(?:.+\n)*",),
    "without span distillation": (r"^\[distillation\]\n(?:.+\n)*", r"^second = [\d.]+\n"),
    "without judged pairs": (r"^\[\[pairs\]\]\n(?:.+\n)*",),
    "without triples": (r"^\[slice\]\n(?:.+\n)*",),
}
"""What is cut out of the recipe's text."""


@click.command()
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--steps", type=int, default=100, show_default=True)
@click.option("--context", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--collection", multiple=True, type=click.Path(exists=True, path_type=Path))
def main(
    recipe: Path,
    output: Path,
    data: Path,
    steps: int,
    context: Path,
    collection: tuple[Path, ...],
) -> None:
    """Print the table: Pearson's r of CONTEXT's scorers, nDCG@10 of each COLLECTION."""
    heads = [*SCORERS, *(f"{one.name} {s.split(':')[0]}" for one in collection for s in SETTINGS)]
    click.echo(f"| {steps} steps | {' | '.join(heads)} |")
    click.echo("|---|" + "---:|" * len(heads))
    for name, cuts in LEFT_OUT.items():
        folder = output / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        variant = folder / "recipe.toml"
        variant.write_text(shortened(recipe.read_text(encoding="utf-8"), cuts, steps))
        encoder = folder / "encoder"
        # What is finished ends at once; what another recipe made is refused.
        slice_os.train(variant, folder / "run", data=data, progress=_tell)
        if not encoder.exists():
            slice_os.export(folder / "run" / "last", encoder, precision="int8")
        values = measure(encoder, context, collection)
        click.echo(f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |")


def shortened(text: str, cuts: tuple[str, ...], steps: int) -> str:
    """Return a recipe of so many steps of one batch, without what the cuts match."""
    cuts = (*cuts, r"^accumulate = .*\n", r"^\[development\]\n(?:.+\n?)*")
    for cut in cuts:
        text = re.sub(cut, "", text, flags=re.MULTILINE)
    return re.sub(r"^steps = .*$", f"steps = {steps}", text, flags=re.MULTILINE)


def measure(encoder: Path, context: Path, collections: tuple[Path, ...]) -> list[float]:
    """Return what the table holds of an encoder."""
    report = slice_os.evaluate_context(context, encoder=encoder, scorers=SCORERS)
    values = [scorer.correlation.pearson for scorer in report.scorers]
    for collection in collections:
        found = slice_os.evaluate_retrieval(collection, settings=SETTINGS, encoder=encoder)
        values += [found.systems[name].means["nDCG@10"] for name in SETTINGS]
    return values


def _tell(progress: object) -> None:
    click.echo(f"\r{progress.step} of {progress.steps}", nl=False, err=True)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
