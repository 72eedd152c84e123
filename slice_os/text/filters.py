"""Metadata filters, the same on every backend: equality, ranges, any of, prefixes, presence."""

from __future__ import annotations

import difflib
import math
import operator
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import regex

from slice_os.errors import QueryError
from slice_os.text.exact_words import Wording, check_characters

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
WORDS = ("in", "exists", "prefix", "or")
"""What stands between spaces: ``a in x,y``, ``a exists``, ``a prefix x``, ``a=1 or b=2``."""
# A lone surrogate, half a character, is in no text: it stands for a byte that is not UTF-8.
_HALF = regex.compile(r"[\ud800-\udfff]")
_OPERATOR = regex.compile(r"!=|>=|<=|=|>|<")
_WORDED = regex.compile(r"\s(in|prefix)\s")
_OR = regex.compile(r"(?<!\s)\s++or\s+")
_NUMBER = regex.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_LONG = regex.compile(r"[+-]?\d{16,}")
_DATE = regex.compile(r"(\d{4})-\d\d(-\d\d([T ].*)?)?", regex.S)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a document's metadata, or any of it and `others`; *and* joins several.

    The operators are ``=``, ``!=``, ``>=``, ``<=``, ``>``, ``<``, ``prefix`` and ``exists`` (any
    value but null). A list holds if one of its members does (for ``!=``: if none equals), and
    ``a.b`` names the field b of an object a, or of the objects of a list a. A stored number
    compares as a number, and so does a text that reads as one in a range, an ISO date as its year;
    all else compares as text, so that "01234" is not 1234 and ISO dates sort. Integers beyond 2^53,
    which no float tells apart, are equal as texts.
    """

    field: str
    operator: str
    value: str
    others: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        check_characters(self.field)
        check_characters(self.value)

    @property
    def fields(self) -> list[str]:
        """The names of all fields that the condition is on."""
        return list(dict.fromkeys([self.field, *(other.field for other in self.others)]))

    def __str__(self) -> str:
        between = " " if self.operator.isalpha() else ""
        condition = between.join((self.field, self.operator, self.value)).rstrip()
        return " or ".join([condition, *map(str, self.others)])


Condition = Filter | Wording
"""What a passage has to meet: of its document's metadata, or of its own words."""


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

    In a mapping a list stands for any of its values. In a text the operators may also be words:
    ``year in 2019,2020``, ``author exists``, ``path prefix docs/``, ``year=2019 or kind=a``.

    Raises:
        QueryError: a text without a field or an operator, a list without values, or no text.
    """
    if filters is None:
        return []
    if isinstance(filters, str):
        filters = [filters]
    if isinstance(filters, Mapping):
        return [_any_of(name, value) for name, value in filters.items()]
    conditions: list[Filter] = []
    for text in filters if isinstance(filters, Iterable) else [filters]:
        if not isinstance(text, str | Filter):
            raise QueryError(
                f"A filter must be a text such as 'year>=2020', not {reprlib.repr(text)}."
            )
        conditions.append(_parse(text) if isinstance(text, str) else text)
    return conditions


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _any_of(name: str, value: object) -> Filter:
    values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    if not values:
        raise QueryError(f"The filter on {name!r} is a list without values: leave it out.")
    if None in values:
        raise QueryError(
            f"The filter on {name!r} is None, which is no value: leave it out, or name a value."
        )
    return either(Filter(name, "=", _text(member)) for member in values)


def either(filters: Iterable[Filter]) -> Filter:
    """Return the condition that any of some is met, of one or more, each without others."""
    first, *others = filters
    return replace(first, others=tuple(others))


def _parse(text: str) -> Filter:
    parts = [_parse_one(part) for part in _OR.split(text)]
    if None in parts:  # a value may hold the word
        parts = [_parse_one(text)]
    conditions = [condition for condition in parts if condition is not None]
    if not conditions:
        raise QueryError(
            f"The filter {text!r} is not understood: write field=value, or field>=value for a "
            f"range ({' '.join(OPERATORS)}), 'field in a,b', 'field prefix a', 'field exists', or "
            "several of these with 'or' between them."
        )
    # Each is one of several, those of its own included.
    every = [each for condition in conditions for each in (condition, *condition.others)]
    return either(replace(each, others=()) for each in every)


def _parse_one(text: str) -> Filter | None:
    text = text.strip()
    if _HALF.search(text):
        return None
    if sign := _OPERATOR.search(text) or _WORDED.search(text):
        field, value = text[: sign.start()].strip(), text[sign.end() :].strip()
        op = sign[0].strip()
        if op in OPERATORS:
            is_typo = not field or "!" in field or value[:1] in tuple("=<>~")
            return None if is_typo else compare(field, op, value)
        if not field or not value:
            return None
        if op == "in":
            return _any_of(field, [member.strip() for member in value.split(",")])
        return Filter(field, op, value)
    field, *last = text.rsplit(None, 1) or [""]
    return Filter(field, "exists", "") if last == ["exists"] else None


def compare(field: str, operator: str, value: object) -> Filter:
    """Return the comparison of a field with a value by one of `OPERATORS`.

    A time with an offset is compared in UTC, as the corpus has times.
    """
    text = _text(value)
    utc = as_utc(text)
    if operator == "=" and utc != text:
        return either([Filter(field, operator, text), Filter(field, operator, utc)])
    return Filter(field, operator, utc)


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


def leaves(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of all that can be filtered: members of lists and of their objects."""
    for name, stored in flat_metadata(metadata).items():
        for member in stored if isinstance(stored, list | tuple) else [stored]:
            if isinstance(member, Mapping):
                yield from ((f"{name}.{inner}", value) for inner, value in leaves(member))
            elif member is not None:
                yield name, member


def field_names(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that a filter can be on."""
    return [name for name, _ in leaves(metadata)]


def unknown_field(location: str, field: str, names: Iterable[str]) -> QueryError:
    """Return the error for a filter on a field that no document has."""
    known = sorted(names)
    near = difflib.get_close_matches(field, known, 3) or [
        name for name in known if name.lower() == field.lower()
    ]
    if near:
        advice = f"did you mean {' or '.join(near)}?"
    elif known:
        advice = f"they have {', '.join(known[:10])}{' …' if len(known) > 10 else ''}."
    else:
        advice = "they have no metadata."
    return QueryError(f"No document of {location} has a field {field!r}: {advice}")


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?\s?(?:([+-])(\d\d):?(\d\d)|(Z))"
)


def as_utc(value: Any) -> Any:
    """Return a time with an offset, in ISO 8601, in UTC, so that times sort as texts do."""
    time = _TIME.fullmatch(value) if isinstance(value, str) else None
    if not time:
        return value
    day, clock, seconds, fraction, sign, hours, minutes, _ = time.groups()
    zone = f"{sign}{hours}:{minutes}" if sign else "+00:00"
    try:
        then = datetime.fromisoformat(f"{day}T{clock}{seconds or ':00'}{zone}")
        utc = then.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError):
        return value
    return f"{utc}{fraction or ''}Z"
