"""Answers that are not what they should be: broken off, without a field, or with another in it.

Whoever reads answers trusts them; `reading` turns what comes of that into one clear error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from typing import Any, TypeVar

from slice_os.storage.cluster.cluster_errors import foreign_error

F = TypeVar("F", bound=Callable[..., Any])
_WRONG = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What reading raises where something is missing, of another type or out of its range."""
_LARGEST = 1 << 63


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Turn what reading a damaged answer raises into an error that names the address.

    Nothing of a caller's, a callback say, may run in the block: its errors would be turned too.

    Raises:
        UnreachableError: its cause is what was raised.
    """
    try:
        yield
    except _WRONG as exc:
        said = " ".join(f"{type(exc).__name__}: {exc}".split())[:100]
        raise foreign_error(url, f"its answer cannot be read, {said}") from exc


def reads_answers(work: F) -> F:
    """Run a function or a generator in `reading`; of a class, all its methods but special ones.

    Its first argument has a `url`, or a cluster that has one.
    """
    if isinstance(work, type):
        for name, method in list(vars(work).items()):
            if isfunction(method) and not name.startswith("__"):
                setattr(work, name, reads_answers(method))
        return work
    if isgeneratorfunction(work):

        @wraps(work)
        def generate(self: Any, *args: Any, **options: Any) -> Any:
            with reading(_url(self)):
                return (yield from work(self, *args, **options))

        return generate  # type: ignore[return-value]

    @wraps(work)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        with reading(_url(self)):
            return work(self, *args, **options)

    return run  # type: ignore[return-value]


def _url(owner: Any) -> str:
    owner = getattr(owner, "_cluster", owner)
    return str(getattr(owner, "cluster", owner).url)


def typed(values: Mapping[str, Any], **kinds: type) -> list[Any]:
    """Return the values of some names.

    Raises:
        KeyError: one is missing.
        TypeError: one is of another type; True is no int.
    """
    found = [values[name] for name in kinds]
    for (name, kind), value in zip(kinds.items(), found, strict=True):
        if type(value) is not kind:
            raise TypeError(f"{name} is of the type {type(value).__name__}")
    return found


def number(value: Any) -> float:
    """Return a number that is one, and not larger than anything that is counted or scored."""
    if type(value) not in (int, float) or not -_LARGEST < value < _LARGEST:
        raise TypeError(f"{str(value)[:20]!r} is no such number")
    return float(value)


def whole(value: Any) -> int:
    """Return a number of things."""
    if number(value) < 0:
        raise ValueError(f"{value} are fewer than none")
    return int(value)
