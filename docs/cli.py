"""Write docs/cli.md from the help texts (`make docs`); a test holds the two together."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from slice_os.cli import main
from slice_os.cli.main import VERBS

if __name__ == "__main__":
    parts = ["# Command line\n\nMade from the help texts by `make docs`.\n"]
    for verb in ([], *([name] for name in VERBS)):
        text = CliRunner().invoke(main, [*verb, "--help"]).stdout.strip()
        parts.append(f"## slice-os {' '.join(verb)}".rstrip() + f"\n\n```\n{text}\n```\n")
    Path(__file__).with_name("cli.md").write_text("\n".join(parts), encoding="utf-8")
