"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

index_option: Decorator = click.option(
    "--index",
    "place",
    envvar="SLICE_OS_INDEX",
    show_envvar=True,
    required=True,
    metavar="PLACE",
    help="The index: a folder.",
)
encoder_option: Decorator = click.option(
    "--encoder",
    envvar="SLICE_OS_ENCODER",
    show_envvar=True,
    metavar="FOLDER",
    help="An encoder folder; default: the one that comes with slice-os.",
)
device_option: Decorator = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where the encoder runs.",
)
threads_option: Decorator = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of the encoder; default: all cores."
)
filter_option: Decorator = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only documents whose metadata says so; also !=, >=, <=, >, <. May be repeated.",
)
lengths_option: Decorator = click.option(
    "--all-lengths",
    is_flag=True,
    help="Compare spans of every length, not only those near the query's.",
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
lines_option: Decorator = click.option("--nl", "as_lines", is_flag=True, help="JSON lines.")


def opened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that open an index."""
    for option in (threads_option, device_option, encoder_option, index_option):
        function = option(function)
    return function
