"""The verbs train and export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from slice_os.cli.options import json_option
from slice_os.cli.output import echo_json
from slice_os.lab.cli import PATH, path_option

if TYPE_CHECKING:
    from slice_os.lab.train import TrainingProgress


@click.command(
    "train",
    epilog="""\b
Examples:
  slice-os train recipe.toml --output runs/first
  slice-os train recipe.toml --output runs/first --data /data/text --device cuda
  slice-os export runs/first/best my-encoder --precision int8
""",
)
@click.argument("recipe", type=PATH)
@path_option(
    "--output",
    metavar="FOLDER",
    required=True,
    help="The run's folder; an interrupted run continues from it.",
)
@path_option(
    "--data",
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
def train_command(
    recipe: Path, output: Path, data: Path | None, device: str, as_json: bool
) -> None:
    """Train an encoder as a recipe says (docs/training.md).

    The same command goes on with a run that was interrupted or killed. The best checkpoint is in
    the folder 'best' of the output, to be exported; of a recipe with [static] it is an encoder
    folder already. Needs the extra 'train'.
    """
    from tqdm import tqdm

    from slice_os import train

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
            best = _listed(progress.measures)
            at = f"{unit} {done} of {progress.steps}"
            click.echo(f"{at}: {now}{best and f'; best: {best}'}", err=True)

    with bar:
        report = train(recipe, output, data=data, device=device, progress=show)
    from accelerate import PartialState

    if not PartialState().is_main_process:  # several processes train together: one speaks
        return
    if as_json:
        echo_json({"checkpoint": str(report.checkpoint), "steps": report.steps, **report.measures})
    else:
        measures = _listed(report.measures)
        click.echo(f"{report.checkpoint}: {measures}" if measures else str(report.checkpoint))


def _listed(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in measures.items())


@click.command(
    "export",
    epilog="""\b
Examples:
  slice-os export checkpoints/my-minilm my-encoder --precision int8
  slice-os export checkpoints/my-minilm my-encoder-gpu --precision fp16
  slice-os export checkpoints/my-minilm my-encoder --axes tickets/ --axes manuals.jsonl
""",
)
@click.argument("checkpoint", type=PATH)
@click.argument("out", type=PATH)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="int8",
    show_default=True,
    help="int8 for CPUs, fp16 for GPUs.",
)
@click.option("--name", help="The encoder's name.  [default: the checkpoint folder's]")
@click.option(
    "--axes",
    multiple=True,
    type=PATH,
    help="Texts like those to be searched, to rotate the vectors so that the first dimensions "
    "matter most (for an index with --dimensions; degrees stay as they are), or an encoder folder "
    "whose rotation to use. May be repeated.",
)
@click.option(
    "--head-texts",
    multiple=True,
    type=PATH,
    help="Texts like those to be mined, to fit the phrase head to: with many it predicts better "
    "what a span's words say alone. May be repeated.  [default: 60 packaged passages]",
)
@click.option("--overwrite", is_flag=True, help="Replace an encoder folder at OUT.")
@json_option
def export_command(
    checkpoint: Path,
    out: Path,
    precision: str,
    name: str | None,
    axes: tuple[Path, ...],
    head_texts: tuple[Path, ...],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Turn a local Hugging Face checkpoint into an encoder folder (ONNX).

    Its outputs are compared with torch's on real text first; one that differs is not written.
    Needs the extra 'export'.
    """
    from slice_os import export

    info = export(
        checkpoint,
        out,
        precision=precision,
        name=name,
        axes=axes,
        head_texts=head_texts,
        overwrite=overwrite,
        progress=lambda step: click.echo(step, err=True),
    )
    if as_json:
        echo_json(info.to_dict())
    else:
        click.echo(f"{out}: {info.name}, {info.precision}, {info.dimension} dimensions.")
