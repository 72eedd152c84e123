"""Write docs/cli.md from the help texts (`make docs`); a test holds the two together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from slice_os.cli.main import VERBS, main


def verbs() -> Iterator[list[str]]:
    """Yield the arguments before --help: none, each verb, each verb of a group."""
    yield []
    for name in VERBS:
        yield [name]
        command = main.get_command(None, name)
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                yield [name, inner]


def document() -> str:
    """Return the whole of docs/cli.md."""
    parts = ["# Command line\n\nMade from the help texts by `make docs`.\n"]
    for verb in verbs():
        text = CliRunner().invoke(main, [*verb, "--help"]).stdout.strip()
        parts.append(f"## slice-os {' '.join(verb)}".rstrip() + f"\n\n```\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(document(), encoding="utf-8")
