"""The house rules: imports go one way, everything is light, all errors are of one tree."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from functools import partial
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import slice_os
from slice_os import errors

PACKAGE = Path(slice_os.__file__).parent
ROOMS = [
    "errors", "files", "host", "run_stats", "types", "answers", "text", "corpus", "encoders",
    "spans", "storage", "options", "query", "ingest", "engine", "teaching", "operate",
    "opened_index", "api", "calibration", "integrations", "__init__", "server", "cli",
    "exporters", "lab",
    "__main__",
]  # fmt: skip
HEAVY = ("torch", "transformers", "optimum", "onnxruntime", "onnx", "tokenizers", "opensearchpy",
         "fastapi", "uvicorn", "mcp", "pydantic")  # fmt: skip


def room(module: str) -> str:
    """Return the room of a dotted name that begins with slice_os."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imported(file: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module == "slice_os":
                names += [f"slice_os.{alias.name}" for alias in node.names]
            else:
                names.append(str(node.module))
    return names


def test_the_installed_wheel_is_what_is_tested():
    assert "site-packages" in PACKAGE.parts
    assert (PACKAGE / "exporters").is_dir()
    assert (PACKAGE / "index_templates").is_dir()


def test_a_checkout_runs_as_it_is(tmp_path):
    """Which is what `pip install -e .` does too: it puts the checkout on Python's path."""
    checkout = Path(__file__).parents[2]
    run = partial(
        subprocess.run, capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )  # fmt: skip
    code = "import slice_os.exporters as found; print(found.__file__, found.export.__module__)"
    done = run([sys.executable, "-c", code])
    assert done.stdout.split() == [
        str(checkout / "exporters" / "__init__.py"),
        "slice_os.exporters.folder",
    ]
    done = run([sys.executable, "-m", "slice_os", "templates", "list", "--json"])
    folder = checkout / "index_templates"
    assert json.loads(done.stdout) == {
        f"{server}/passages": str(folder / server / "passages.json")
        for server in ("opensearch", "elasticsearch")
    }
    done = run([sys.executable, "-m", "slice_os", "templates", "show"])
    wheels = run([Path(sys.executable).with_name("slice-os"), "templates", "show"], env=os.environ)
    assert json.loads(done.stdout) == json.loads(wheels.stdout)


def test_every_room_is_known():
    found = {
        p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()
    }
    assert found == set(ROOMS)


def test_a_room_imports_only_from_rooms_above_it():
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        here = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if here == "__init__":
            continue  # names the public functions of every room, each loaded when it is used
        for name in imported(file):
            # `from slice_os import name` is the public surface: for the command line alone.
            there = room(name) if room(name) in ROOMS else "__init__"
            if name.split(".")[0] == "slice_os" and ROOMS.index(there) > ROOMS.index(here):
                wrong.append(f"{file.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_nothing_outside_the_laboratory_imports_it():
    rows = ("cli/main.py", "__init__.py")  # verbs and public names, loaded when they are used
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] not in ("lab", "exporters")
        and file.relative_to(PACKAGE).as_posix() not in rows
        for name in imported(file)
        if name.startswith("slice_os.lab")
    ]
    assert wrong == []


def test_a_backend_is_reached_through_its_table_only():
    backends = ("slice_os.storage.local", "slice_os.storage.cluster")
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] != "storage" and file.name != "query.py"
        for name in imported(file)
        if name.startswith(backends)
    ]
    assert wrong == []


def test_no_imports_form_a_circle():
    """Those within functions and for type checkers count; those of the public names do not."""
    modules = {}
    for file in PACKAGE.rglob("*.py"):
        dotted = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        modules[dotted.removesuffix(".__init__")] = ast.walk(ast.parse(file.read_text()))
    graph = {}
    for module, nodes in modules.items():
        if module == "slice_os":
            continue
        names = [
            (node.module, f"{node.module}.{alias.name}")
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module != "slice_os"
            for alias in node.names
        ]
        graph[module] = {inner if inner in modules else outer for outer, inner in names} - {module}
    assert set(TopologicalSorter(graph).static_order()) >= graph.keys()  # CycleError names a circle


def test_importing_slice_os_is_light():
    code = (
        "import sys, slice_os, slice_os.api, slice_os.cli;"
        "from slice_os.cli.main import VERBS, main;"
        "[main.get_command(None, verb) for verb in VERBS];"
        "print([m for m in sys.argv[1:] if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_importing_slice_os_alone_loads_not_even_numpy():
    code = "import sys, slice_os; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.lab
def test_all_errors_are_of_one_tree():
    for module in pkgutil.walk_packages([str(PACKAGE)], "slice_os."):
        if module.name.startswith(("slice_os.exporters", "slice_os.integrations.")):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, Exception) and kind.__module__.startswith("slice_os"):
                assert issubclass(kind, errors.SliceOSError), kind


def test_every_public_name_exists_and_is_documented():
    for name in slice_os.__all__:  # type: ignore[attr-defined]
        assert inspect.getdoc(getattr(slice_os, name)), name
    with pytest.raises(AttributeError, match="nothing"):
        slice_os.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_changelog_names_the_version():
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    assert changelog.split("\n## ")[1].split()[0] == f"[{slice_os.__version__}]"
    assert version("slice-os") == slice_os.__version__


def test_what_is_not_a_dialect_knows_no_server_but_the_first():
    """But for help texts; what differs between servers is a dialect's to know."""
    for file in PACKAGE.rglob("*.py"):
        inside = file.relative_to(PACKAGE).as_posix()
        if not inside.startswith(("storage/cluster/", "cli/", "lab/cli/")) and inside != "query.py":
            assert "elasticsearch" not in file.read_text(encoding="utf-8").lower(), inside
