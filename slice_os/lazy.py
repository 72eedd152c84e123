"""Names of a package that are looked up when they are used (PEP 562), so that it imports fast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from slice_os.errors import MissingExtraError


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of `package`.

    Its names are those that its `file` imports for type checkers, under ``if TYPE_CHECKING``.
    """
    blocks = [one for one in ast.parse(Path(file).read_bytes()).body if isinstance(one, ast.If)]
    homes = {
        alias.name: node.module
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(homes[name]), name)
        except MissingExtraError as exc:
            return _missing(name, exc)

    def names() -> list[str]:
        return sorted([*vars(sys.modules[package]), *homes])

    return find, names


def _missing(name: str, error: MissingExtraError) -> Callable[..., object]:
    """Return what stands for a function of an extra: to look at it is no error, to call it is."""

    def missing(*_: object, **__: object) -> object:
        raise error

    missing.__name__ = missing.__qualname__ = name
    missing.__doc__ = str(error)
    return missing
