"""The verb evaluate phrases."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.cli.options import device_option, encoder_option, json_option
from slice_os.cli.output import echo_columns, echo_json


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate phrases phrases/
  slice-os evaluate phrases phrases/ --encoder my-encoder --json
"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@encoder_option
@device_option
@json_option
def phrases(folder: Path, encoder: str | None, device: str, as_json: bool) -> None:
    """Measure an encoder on phrase similarity: BiRD, Turney, PPDB, PAWS-short, PiC-PS.

    FOLDER holds some of bird.txt, turney.txt, ppdb-dev.txt, ppdb-test.txt, paws.tsv,
    pic-ps-train.json and pic-ps-dev.json, as they are published. Needs the extra 'evaluate'.
    """
    from slice_os.evaluation.phrases import evaluate_phrases

    report = evaluate_phrases(
        folder,
        encoder=encoder,
        device=device,
        progress=lambda task: click.echo(f"{task} ...", err=True),
    )
    if as_json:
        echo_json(report.to_dict())
        return
    echo_columns(
        ["task", "measure", "value", "examples"],
        [[one.task, one.measure, f"{one.value:.3f}", f"{one.count:,}"] for one in report.figures],
    )
    if report.absent:
        click.echo(f"Not in the folder: {', '.join(report.absent)}.", err=True)
