"""Lay the documentation out for its site: `make site` calls this with the wheel and a folder.

The folder gets the Markdown as it lies in the repository, so that links hold, a reference of the
public Python names, the package that its docstrings are read from, and the site's settings.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).parents[1]
COPIED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "NOTICE")
FOLDERS = ("docs", "docker", "index_templates", "recipes")
PARTS = {
    "api": "An index",
    "types": "What comes back",
    "options": "What may be asked",
    "corpus": "Reading",
    "teaching": "Teaching",
    "calibration": "Labels of your own",
    "encoders": "Encoders and judges",
    "engine": "Requests for other clients",
    "storage": "Clusters",
    "query": "The query DSL",
    "server": "Serving",
    "operate": "Operating",
    "errors": "Errors",
    "exporters": "Exporting",
    "lab": "The laboratory",
}
_EXAMPLE = re.compile(r'^( *)>>> .*\n(?:\1(?!""").*\S.*\n)*', re.M)
_NAME = re.compile(r"^from \.([\w.]+) import (\w+) as", re.M)


def with_headings(source: str) -> str:
    """Return Python source with a heading above the examples of its docstrings."""
    return _EXAMPLE.sub(
        lambda example: f"{example[1]}Examples:\n{indent(example[0], '    ')}", source
    )


def reference(package: Path) -> str:
    """Return the page of all public names, by the part of the package that they are from."""
    names: dict[str, list[str]] = defaultdict(list)
    for module, name in _NAME.findall((package / "__init__.pyi").read_text(encoding="utf-8")):
        names[module.split(".")[0]].append(f"slice_os.{module}.{name}")
    names["options"] = ["slice_os.options.SearchOptions", "slice_os.options.MineOptions"]
    names["query"] = ["slice_os.query"]
    if unknown := set(names) - set(PARTS):
        raise SystemExit(f"Name these parts of the package in {__file__}: {sorted(unknown)}.")
    page = ["# Python\n"]
    for part, title in PARTS.items():
        page += [f"## {title}\n", *(f"::: {name}\n" for name in names[part])]
    return "\n".join(page)


def lay_out(wheel: Path, target: Path) -> None:
    """Write the pages, the package and the settings into a folder."""
    shutil.rmtree(target, ignore_errors=True)
    pages, package = target / "pages", target / "package"
    pages.mkdir(parents=True)
    for name in COPIED:
        shutil.copy(ROOT / name, pages)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, pages / folder, ignore=shutil.ignore_patterns("*.py[co]"))
    (pages / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "README.md", pages / "examples")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(package)
    for file in package.rglob("*.py"):
        file.write_text(with_headings(file.read_text(encoding="utf-8")), encoding="utf-8")
    (pages / "docs" / "python.md").write_text(reference(package / "slice_os"), encoding="utf-8")
    shutil.copy(ROOT / "docs" / "site.yml", target / "mkdocs.yml")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]), Path(sys.argv[2]))
