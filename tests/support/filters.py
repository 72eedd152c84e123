"""What filters mean, spelled out: every backend finds just the documents that it holds of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slice_os.text.filters import (
    _NUMBER,
    OPERATORS,
    Filter,
    _text,
    as_number,
    flat_metadata,
    is_long,
)


def holds_of(one: Filter, metadata: Mapping[str, Any]) -> bool:
    """Tell whether a document's metadata meets a filter."""
    if holds(one, field_of(flat_metadata(metadata), one.field)):
        return True
    return any(holds_of(other, metadata) for other in one.others)


def holds(one: Filter, stored: object) -> bool:
    """Tell whether a stored value (None: the field is missing) is what `one` alone asks."""
    members = stored if isinstance(stored, list) else [stored]
    if one.operator == "!=":
        return all(not _compare("=", member, one.value) for member in members)
    return any(_compare(one.operator, member, one.value) for member in members)


def _compare(op: str, stored: object, wanted: str) -> bool:
    if stored is None or isinstance(stored, Mapping):  # of which the fields are asked for
        return False
    text = _text(stored)
    if op == "exists":
        return True
    if op == "prefix":
        return text.startswith(wanted.lower() if isinstance(stored, bool) else wanted)
    number = isinstance(stored, int | float) and not isinstance(stored, bool)
    if isinstance(stored, bool):
        wanted = wanted.lower()
    exact = op == "=" and is_long(wanted)
    if (number or op not in "!=") and not exact and _NUMBER.fullmatch(wanted):
        value = as_number(text)  # a text that is no number is in no range of numbers
        return value is not None and OPERATORS[op](value, float(wanted))
    return OPERATORS[op](text, wanted)


def field_of(metadata: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field of flat metadata, None if there is none.

    Of the objects of a list it is the list of what they have.
    """
    if name in metadata or "." not in name:
        return metadata.get(name)
    parts = name.split(".")
    for at in range(1, len(parts)):
        members = metadata.get(".".join(parts[:at]))
        if isinstance(members, list):
            rest = ".".join(parts[at:])
            objects = [flat_metadata(one) for one in members if isinstance(one, Mapping)]
            found = [field_of(one, rest) for one in objects]
            return [v for one in found for v in (one if isinstance(one, list) else [one])] or None
    return None
