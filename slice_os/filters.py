"""Metadata filters: `field=value`, `field!=value` and ranges, the same on every backend."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import regex

from slice_os.errors import QueryError
from slice_os.lexical import Wording

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# A lone surrogate, half a character, is in no text: it stands for a byte that is not UTF-8.
_FILTER = regex.compile(
    r"\s*(?P<field>[^=!<>\ud800-\udfff]+?)\s*(?P<op>!=|>=|<=|=|>|<)\s*"
    r"(?P<value>[^\ud800-\udfff]*?)\s*"
)


_NUMBER = regex.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_LONG = regex.compile(r"[+-]?\d{16,}")
_DATE = regex.compile(r"(\d{4})-\d\d(-\d\d([T ].*)?)?", regex.S)


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition on a document's metadata; several are joined by *and*.

    A list holds if one of its members does (for ``!=``: if none equals). A stored number compares
    as a number, and so does a text that reads as one in a range, an ISO date as its year; all else
    compares as text, so that "01234" is not 1234 and ISO dates sort. Integers beyond 2^53, which
    no float tells apart, are equal as texts.
    """

    field: str
    operator: str
    value: str

    def holds(self, stored: object) -> bool:
        """Tell whether a stored value (None where the field is missing) meets the condition."""
        members = stored if isinstance(stored, list) else [stored]
        if self.operator == "!=":
            return all(not _compare("=", member, self.value) for member in members)
        return any(_compare(self.operator, member, self.value) for member in members)

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{self.value}"


Condition = Filter | Wording
"""What a passage has to meet: of its document's metadata, or of its own words."""


def _compare(op: str, stored: object, wanted: str) -> bool:
    if stored is None:
        return False
    text = _text(stored)
    number = isinstance(stored, int | float) and not isinstance(stored, bool)
    if isinstance(stored, bool):
        wanted = wanted.lower()
    exact = op == "=" and is_long(wanted)
    if (number or op not in "!=") and not exact and _NUMBER.fullmatch(wanted):
        value = as_number(text)  # a text that is no number is in no range of numbers
        return value is not None and OPERATORS[op](value, float(wanted))
    return OPERATORS[op](text, wanted)


def is_long(text: str) -> bool:
    """Tell whether a text is an integer beyond what floats tell apart, as identifiers may be."""
    return bool(_LONG.fullmatch(text)) and abs(float(text)) > 2**53


def as_number(text: str) -> float | None:
    """Return the number that a text reads as in a range, of an ISO date its year; else None."""
    if _NUMBER.fullmatch(text):
        return float(text)
    date = _DATE.fullmatch(text)
    return float(date[1]) if date else None


def parse_filters(filters: Mapping[str, object] | Iterable[str | Filter] | None) -> list[Filter]:
    """Return filters from a mapping of equalities or from texts like ``year>=2020``.

    Raises:
        QueryError: a text without a field or an operator.
    """
    if filters is None:
        return []
    if isinstance(filters, str):
        filters = [filters]
    if isinstance(filters, Mapping):
        return [Filter(name, "=", _text(value)) for name, value in filters.items()]
    return [one if isinstance(one, Filter) else _parse(one) for one in filters]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(text: str) -> Filter:
    found = _FILTER.fullmatch(text)
    if found is None or found["value"][:1] in tuple("=<>~"):
        raise QueryError(
            f"The filter {text!r} is not understood: write field=value, or field>=value for a "
            f"range ({' '.join(OPERATORS)})."
        )
    return Filter(found["field"], found["op"], found["value"])


def flat_metadata(metadata: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested metadata with dotted names, as OpenSearch's flat_object addresses them."""
    flat: dict[str, Any] = {}
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            flat.update(flat_metadata(value, f"{prefix}{name}."))
        elif isinstance(value, float) and not math.isfinite(value):
            flat[f"{prefix}{name}"] = str(value)  # JSON has no NaN
        else:
            flat[f"{prefix}{name}"] = value
    return flat
