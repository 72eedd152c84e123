"""The laboratory's verbs, and the options that several of them have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from slice_os.cli.options import Decorator

PATH = click.Path(path_type=Path)
file_argument: Decorator = click.argument("file", type=PATH)
folder_argument: Decorator = click.argument("folder", type=PATH)


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
