"""The verb encoder-info."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.cli.options import json_option
from slice_os.cli.output import echo_json, echo_table


@click.command("encoder-info", epilog="\b\nExample:\n  slice-os encoder-info my-encoder --json\n")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Also compare the model file with its hash.")
@json_option
def encoder_info_command(folder: Path | None, check: bool, as_json: bool) -> None:
    """Show an encoder's name, dimension and weights hash, by default of the one inside slice-os."""
    from slice_os import encoder_info as info_of

    info = info_of(folder, check=check)
    if as_json:
        echo_json(info.to_dict())
    else:
        echo_table(list(info.to_dict().items()))
