"""Fit the phrase head of an encoder folder to texts of your own, as 'slice-os export' does.

    python recipes/phrase_head.py my-encoder tickets.jsonl manuals/

The one inside the wheel is fitted to the texts that recipes/english.toml names (`make encoder`).
"""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.exporters.phrase_head import refit


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("texts", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(folder: Path, texts: tuple[Path, ...]) -> None:
    """Fit the phrase head of the encoder in FOLDER to spans of TEXTS."""
    info = refit(folder, texts, progress=lambda step: click.echo(step, err=True))
    click.echo(f"{folder}: phrase head {info.phrase_head}")


if __name__ == "__main__":
    main()
