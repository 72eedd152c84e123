"""Run the benchmarks and keep their tables in docs/benchmarks.md.

python -m benchmarks [--data FOLDER] [--only NAME] [--output docs/benchmarks.md]
"""

from __future__ import annotations

import datetime
import os
import platform
from importlib import import_module
from pathlib import Path

import click

from slice_os import __version__

NAMES = (
    *(
        "throughput",
        "scan",
        "scale",
        "memory",
        "retrieval",
        "cluster",
        "hybrid",
        "cover",
        "objective",
    ),
    *(
        "ranking",
        "evaluation",
        "reindex",
        "swapping",
        "servers",
        "topics",
        "filtering",
        "rescoring",
        "serving",
        "page",
        "late",
        "columnar",
        "scaling",
        "ray_workers",
        "gpu",
    ),
)


def machine() -> str:
    """Describe the machine in a line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text()
        named = (x for x in text.splitlines() if x.startswith("model name"))
        model = next((x.split(":")[1].strip() for x in named), model)
        # What int8's matrix products take hangs on it.
        model += " with VNNI" if "_vnni" in text else " without VNNI" if "avx2" in text else ""
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), help="Data for retrieval.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Run just this one.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("docs/benchmarks.md"))
def main(data: Path | None, only: tuple[str, ...], output: Path) -> None:
    """Measure, print, and replace the section of each benchmark that ran."""
    for name in only or NAMES:
        module = import_module(f"benchmarks.{name}")
        click.echo(f"… {name}", err=True)
        lines = module.run(data)
        if not lines:
            needed = getattr(module, "NEEDS", "--data")
            click.echo(f"{name}: left out, it needs {needed}", err=True)
            continue
        today = datetime.datetime.now(tz=datetime.timezone.utc).date()
        section = "\n".join(
            [
                f"## {module.TITLE}",
                "",
                f"*{today}, slice-os {__version__}, {machine()}.*",
                "",
                *lines,
            ]
        )
        click.echo(section)
        replace_section(output, module.TITLE, section)


def replace_section(output: Path, title: str, section: str) -> None:
    """Put a section in place of the one of the same title."""
    text = output.read_text(encoding="utf-8") if output.exists() else "# Benchmarks\n"
    head, *sections = text.rstrip().split("\n## ")
    new = section.removeprefix("## ")
    places = [k for k, part in enumerate(sections) if part.startswith(f"{title}\n")]
    if places:
        sections[places[0]] = new
    else:
        sections.append(new)
    output.write_text("\n\n## ".join(part.strip() for part in [head, *sections]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
