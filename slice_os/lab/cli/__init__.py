"""The laboratory's verbs, and the options that several of them have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from slice_os.cli.options import Decorator

PATH = click.Path(path_type=Path)
file_argument: Decorator = click.argument("file", type=PATH)
folder_argument: Decorator = click.argument("folder", type=PATH)
ENCODER = "SLICE_OS_ENCODER"
encoders_option: Decorator = click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="LOCATION",
    callback=lambda context, option, given: given or tuple(filter(None, [os.environ.get(ENCODER)])),
    help="An encoder folder, a checkpoint folder or word vectors in GloVe's text format; several "
    f"are compared.  [default: the encoder that comes with slice-os]  [env var: {ENCODER}]",
)
SIGNIFICANT = 0.05
"""The p-value below which a difference is marked in a table of several encoders."""
COMPARED = "+ the best, * differs from it"
"""What the marks of `marked` mean."""


def marked(value: str, p: float | None, best: bool) -> str:
    """Return a value with the mark of the best, or of one that differs from it."""
    return value + ("+" if best else "*" if p is not None and p < SIGNIFICANT else " ")


def path_option(*names: str, metavar: str = "FILE", **settings: Any) -> Decorator:
    """Return an option that takes the path of a file or folder."""
    return click.option(*names, type=PATH, metavar=metavar, **settings)


def count_option(name: str, default: int, help: str, *, least: int = 1) -> Decorator:
    """Return an option that takes a number of `least` or more."""
    kind = click.IntRange(min=least)
    return click.option(name, type=kind, default=default, show_default=True, help=help)


def decimals(*values: float) -> list[str]:
    """Return values with three decimals, as tables show them."""
    return [f"{value:.3f}" for value in values]
