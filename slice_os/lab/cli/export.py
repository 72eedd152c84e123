"""The verb export."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.cli.options import json_option
from slice_os.cli.output import echo_json


@click.command(
    epilog="""\b
Examples:
  slice-os export checkpoints/my-minilm my-encoder --precision int8
  slice-os export checkpoints/my-minilm my-encoder-gpu --precision fp16
  slice-os export checkpoints/my-minilm my-encoder --axes tickets/ --axes manuals.jsonl
"""
)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
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
    type=click.Path(path_type=Path),
    help="Texts like those to be searched, to rotate the vectors so that the first dimensions "
    "matter most (for an index with --dimensions; degrees stay as they are), or an encoder folder "
    "whose rotation to use. May be repeated.",
)
@click.option(
    "--head-texts",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Texts like those to be mined, to fit the phrase head to: with many it predicts better "
    "what a span's words say alone. May be repeated.  [default: 60 packaged passages]",
)
@click.option("--overwrite", is_flag=True, help="Replace an encoder folder at OUT.")
@json_option
def export(
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
    from slice_os import export as export_checkpoint

    info = export_checkpoint(
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
