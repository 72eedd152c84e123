"""A row of a table or a JSON object -> a document: which field is what, and what is cleaned."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slice_os.errors import CorpusError
from slice_os.records import Document

# What is looked for, in this order, where the caller names no field.
TEXT_FIELDS = ("text", "content", "contents", "body", "passage", "message")
TITLE_FIELD = "title"
ID_FIELDS = ("id", "_id")

Values = Mapping[str, Any]

# A NUL ends a text in SQLite and confuses tokenizers; half a surrogate pair (JSON's "\ud800")
# cannot be written as UTF-8 at all.
_UNUSABLE = re.compile("\r\n?|[\x00\ud800-\udfff]")
# As long as what they replace, so that offsets are those of the source.
_REPLACEMENTS = {"\r\n": " \n", "\r": "\n", "\x00": " "}


@dataclass(frozen=True, slots=True)
class Fields:
    """The field names that the caller chose; None stands for the usual ones."""

    id: str | None = None
    title: str | None = None
    text: tuple[str, ...] | None = None

    def missing(self, names: Values | list[str]) -> str:
        """Return what is wrong with a row that has the fields `names`, or nothing."""
        named = [name for name in (self.id, self.title, *(self.text or ())) if name is not None]
        lacking = next((name for name in named if name not in names), None)
        has = f"it has {', '.join(names) or 'none'}"
        if lacking is not None:
            return f"has no field {lacking!r}; {has}"
        if self.text is None and not any(usual(names, name) in names for name in TEXT_FIELDS):
            return f"has no field {' or '.join(TEXT_FIELDS)}, so name its text fields; {has}"
        return ""


def usual(names: Iterable[str], name: str) -> str:
    """Return the spelling that a usual name has among `names`, whatever its case."""
    found = [one for one in names if one.lower() == name]
    return name if name in found or not found else found[0]


def to_document(values: Values, fields: Fields, fallback_id: str) -> Document:
    """Return the document that a row holds; a `CorpusError` says why it holds none."""
    row = dict(flatten(values))
    if problem := fields.missing(row):
        raise CorpusError(problem)
    texts = fields.text or (_usual_text(row),)
    ids = [usual(row, name) for name in ID_FIELDS]
    text = "\n".join(filter(None, (_text(name, row[name]) for name in texts)))
    title_field = fields.title or usual(row, TITLE_FIELD)
    identity = fields.id or next((name for name in ids if _is_scalar(row.get(name))), "")
    if fields.id and not _is_scalar(row[fields.id]):
        raise CorpusError(f"the field {fields.id!r} holds no id")
    used = {*texts, identity}
    title = ""
    if _is_scalar(row.get(title_field)) or fields.title:
        title = _text(title_field, row[title_field])
        used.add(title_field)
        if title and title_field not in texts:
            # So that its words are found as spans are; the splitter keeps it with what follows.
            # An issue without a description has nothing else to be found by.
            text = f"{title}\n{text}" if text.strip() else title
    if not text.strip():
        raise CorpusError("no text")
    return Document(
        id=str(row[identity]) if identity else fallback_id,
        text=text,
        title=title,
        metadata={name: value for name, value in row.items() if name not in used},
    )


def _usual_text(row: Values) -> str:
    present = [own for name in TEXT_FIELDS if (own := usual(row, name)) in row]
    return next((name for name in present if row[name]), present[0])


def _is_scalar(value: Any) -> bool:
    """Tell whether `value` can be an id or a title: a string with something in it, or a number."""
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    if all(isinstance(item, str) for item in value):
        return "\n".join(value)
    raise CorpusError(f"the field {name!r} holds {type(value).__name__} that is not text")


def flatten(values: Values) -> Iterator[tuple[str, Any]]:
    """Give ``a.b`` for the field b of an object a; a list stays the one value that it is."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            for inner, item in flatten(value):
                yield f"{clean(name)}.{inner}", item
        else:
            yield clean(name), clean_value(value)


def clean(text: str) -> str:
    r"""Return `text` with ``\n`` line ends, NULs as spaces and lone surrogates as U+FFFD.

    It is as long as before: ``\r\n`` becomes a space and ``\n``.
    """
    return _UNUSABLE.sub(lambda found: _REPLACEMENTS.get(found[0], "\ufffd"), text)


def clean_value(value: Any) -> Any:
    """Return a JSON value that every later step can write as JSON and UTF-8.

    NaN and the infinities, which Python's reader accepts, become strings.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_value(item) for key, item in value.items()}
    return value
