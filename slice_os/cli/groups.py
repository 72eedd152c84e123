"""A group of verbs that are loaded when they are called."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Loads a verb when it is called, and names the nearest verb for a typo."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **more: Any) -> None:
        """Take the table verb -> module of `slice_os.cli` that holds it, in the help's order."""
        super().__init__(*args, **more)
        self._modules = modules

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Return the verbs in the order of the help."""
        return list(self._modules)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """Load a verb."""
        if cmd_name not in self._modules:
            return None
        module = import_module(f"slice_os.cli.{self._modules[cmd_name]}")
        name = cmd_name.replace("-", "_")
        # The function of a verb that has the name of a builtin ends with an underscore.
        found = getattr(module, name, None) or getattr(module, f"{name}_")
        command: click.Command = found
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or name the nearest."""
        near = difflib.get_close_matches(args[0], self._modules, 1)
        if near and args[0] not in self._modules:
            ctx.fail(f"There is no command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)
