"""The verb train."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from slice_os.cli.options import json_option
from slice_os.cli.output import echo_json

if TYPE_CHECKING:
    from slice_os.lab.train import TrainingProgress


@click.command(
    epilog="""\b
Examples:
  slice-os train recipe.toml --output runs/first
  slice-os train recipe.toml --output runs/first --data /data/text --device cuda
  slice-os export runs/first/best my-encoder --precision int8
"""
)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    required=True,
    help="The run's folder; an interrupted run continues from it.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="What the recipe's paths are relative to.  [default: the recipe's folder]",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="auto is a GPU where there is one.",
)
@json_option
def train(recipe: Path, output: Path, data: Path | None, device: str, as_json: bool) -> None:
    """Train an encoder as a recipe says (docs/training.md).

    The same command goes on with a run that was interrupted or killed. The best checkpoint is in
    the folder 'best' of the output, to be exported; of a recipe with [static] it is an encoder
    folder already. Needs the extra 'train'.
    """
    from tqdm import tqdm

    from slice_os import train as train_encoder

    bar: tqdm[NoReturn] = tqdm(unit="step", disable=None)
    done, unit = 0, "step"

    def show(progress: TrainingProgress) -> None:
        nonlocal done, unit
        if unit != progress.unit:
            done, unit, bar.unit = 0, progress.unit, progress.unit
            bar.reset()
        before, done, bar.total = done, progress.step, progress.steps
        bar.update(done - before)
        losses = " ".join(f"{name} {value:.3f}" for name, value in progress.losses.items())
        now = f"{losses}{losses and ', '}{progress.rate:,.0f} words/s"
        bar.set_postfix_str(now, refresh=False)
        tenths = [step * 10 // progress.steps for step in (before, progress.step)]
        if bar.disable and tenths[0] < tenths[1]:  # a log file gets lines instead
            best = _told(progress.measures)
            at = f"{unit} {done} of {progress.steps}"
            click.echo(f"{at}: {now}{best and f'; best: {best}'}", err=True)

    with bar:
        report = train_encoder(recipe, output, data=data, device=device, progress=show)
    from accelerate import PartialState

    if not PartialState().is_main_process:  # several processes train together: one speaks
        return
    if as_json:
        echo_json({"checkpoint": str(report.checkpoint), "steps": report.steps, **report.measures})
    else:
        told = _told(report.measures)
        click.echo(f"{report.checkpoint}: {told}" if told else str(report.checkpoint))


def _told(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in measures.items())
