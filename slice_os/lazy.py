"""Names of a package that are looked up when they are used (PEP 562), so that it imports fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from slice_os.errors import MissingExtraError


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of `package`, whose `homes` are name -> module."""

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
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
