"""A row of a table or a JSON object -> a document: which field is what, and what is cleaned."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from slice_os.corpus.markup import without_markup
from slice_os.corpus.messages import LISTS, Conversation, conversation_in, pick, text_of
from slice_os.errors import CorpusError
from slice_os.text.filters import as_utc
from slice_os.types import Document

# What is looked for, in this order, where the caller names no field.
TEXT_FIELDS = ("text", "content", "contents", "body", "passage", "message")
TITLE_FIELD = "title"
ID_FIELDS = ("id", "_id")
EVERY = "*"
"""Stands for all fields that hold text."""

Values = Mapping[str, Any]

# A NUL ends a text in SQLite and confuses tokenizers; half a surrogate pair (JSON's "\ud800")
# cannot be written as UTF-8 at all.
_UNUSABLE = re.compile("\r\n?|[\x00\ud800-\udfff]")
# As long as what they replace, so that offsets are those of the source.
_REPLACEMENTS = {"\r\n": " \n", "\r": "\n", "\x00": " "}
_NO_TEXT = re.compile(r"[\d\W_]*|\S*[\d/@\\_]\S*|\S{25,}")
"""What a text is not: a number, a date, an address, a code."""
_LOOKED_AT = 3
"""Rows in which conversations are looked for."""
_CLEARLY = 2.5
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class Fields:
    """The field names that the caller chose; None stands for the usual ones."""

    id: str | None = None
    title: str | None = None
    text: tuple[str, ...] | None = None

    def missing(self, names: Values | list[str]) -> str:
        """Return what is wrong with a row that has the fields `names`, or nothing."""
        has = f"it has {', '.join(names) or 'none'}"
        if self.id is not None and self.id not in names:
            return f"has no field {self.id!r}; {has}"
        if self.text is not None:
            if not any(name in names or name == EVERY or "[]" in name for name in self.text):
                return f"has no field {' or '.join(map(repr, self.text))}; {has}"
            return ""
        if not any(usual(names, name) in names for name in TEXT_FIELDS):
            return (
                f"has no field {' or '.join(TEXT_FIELDS)}, so name its text fields; {has}: give "
                f"--text-field NAME, or --text-field '{EVERY}' for all"
            )
        return ""

    def guessed(self, rows: Sequence[Values]) -> tuple[Fields, str]:
        """Return the fields for rows of which the first are these, and what is to be said of it.

        Where no usual name is among theirs, the text is the one field that holds texts, or the one
        whose texts are clearly the longest.
        """
        flat = [dict(flatten(row)) for row in rows]
        names = list(dict.fromkeys(name for row in flat for name in row))
        if self.text is not None or not names:
            return self, ""
        if any(usual(names, name) in names for name in TEXT_FIELDS):
            return self, ""
        talks = [talk.field for row in rows[:_LOOKED_AT] if (talk := conversation_in(row))]
        if any(field.rpartition(".")[2].lower() in LISTS for field in talks):
            return self, ""
        lengths = {
            name: length
            for name in names
            if (length := _length(row[name] for row in flat if name in row))
        }
        taken = {self.id, self.title, *(usual(names, name) for name in (TITLE_FIELD, *ID_FIELDS))}
        longest = sorted((name for name in lengths if name not in taken), key=lengths.__getitem__)
        if not longest:
            return self, ""
        best = longest[-1]
        if talks and lengths[best] < _FEWEST:
            return self, ""
        clearly = (
            lengths[best] >= max(_FEWEST, _CLEARLY * lengths[longest[-2]]) if longest[1:] else True
        )
        if not clearly:
            return self, ""
        return replace(self, text=(best,)), (
            f"{best!r} is taken for the text; its other fields are metadata. If that is not so, "
            "give --text-field."
        )


def _length(values: Iterable[Any]) -> float:
    """Return how many words the values of a field have on average, 0 if it holds no texts."""
    said = [value for value in values if value not in ("", None)]
    texts = [
        one for one in said if isinstance(one, str) and not _NO_TEXT.fullmatch(without_markup(one))
    ]
    if not texts or len(texts) < len(said) / 2:
        return 0.0
    return mean(len(one.split()) for one in texts)


def usual(names: Iterable[str], name: str) -> str:
    """Return the spelling that a usual name has among `names`, whatever its case."""
    found = [one for one in names if one.lower() == name]
    return name if name in found or not found else found[0]


def to_document(values: Values, fields: Fields, fallback_id: str) -> Document:
    """Return the document that a row holds; a `CorpusError` says why it holds none."""
    row = dict(flatten(values))
    talk = None
    if fields.text is None and not _usual_text(row):
        talk = conversation_in(values)
    if not talk and (problem := fields.missing(row)):
        raise CorpusError(problem)
    text, used = (talk.text, {talk.field}) if talk else _said(values, row, fields)
    about = talk.metadata if talk else {}
    if not talk and fields.text:
        for path in fields.text:
            if "[]" in path and (found := pick(values, path)):
                about = {**about, **found.metadata}
    ids = [usual(row, name) for name in ID_FIELDS]
    title_field = fields.title or usual(row, TITLE_FIELD)
    identity = fields.id or next((name for name in ids if _is_scalar(row.get(name))), "")
    if fields.id and not _is_scalar(row[fields.id]):
        raise CorpusError(f"the field {fields.id!r} holds no id")
    in_text = title_field in used
    used.add(identity)
    title = ""
    if _is_scalar(row.get(title_field)) or (fields.title and title_field in row):
        title = _text(title_field, row[title_field])
        used.add(title_field)
        if title and not in_text:
            # So that its words are found as spans are; the splitter keeps it with what follows.
            # An issue without a description has nothing else to be found by.
            text = f"{title}\n{text}" if text.strip() else title
    if not text.strip():
        raise CorpusError("no text")
    rest = {
        name: as_utc(value)
        for name, value in row.items()
        if name not in used and not any(name.startswith(f"{one}.") for one in used if one)
    }
    return Document(
        id=str(row[identity]) if identity else fallback_id,
        text=clean(text),
        title=title,
        metadata={**rest, **{name: as_utc(value) for name, value in about.items()}},
    )


def _said(values: Values, row: Values, fields: Fields) -> tuple[str, set[str]]:
    """Return the text of a row, and the fields that it is made of."""
    names = fields.text or (_usual_text(row) or _present(row)[0],)
    if EVERY in names:
        lines = {name: value for name, value in row.items() if not isinstance(value, bool)}
        said = {name: _said_by(value) for name, value in lines.items()}
        text = "\n".join(f"{name}: {value}" for name, value in said.items() if value)
        return text, {name for name, value in said.items() if value}
    texts, used = [], set()
    for name in names:
        found: Conversation | None = pick(values, name) if "[]" in name else None
        if found:
            texts.append(found.text)
            used.add(found.field)
        elif name in row:
            texts.append(_text(name, row[name]))
            used.add(name)
    return "\n".join(filter(None, texts)), used


def _said_by(value: Any) -> str:
    """Return what a field says, nothing if it holds no text and no number."""
    return str(value) if isinstance(value, int | float) else without_markup(text_of(value))


def _present(row: Values) -> list[str]:
    return [own for name in TEXT_FIELDS if (own := usual(row, name)) in row]


def _usual_text(row: Values) -> str:
    """Return the first field of a usual name that holds text, nothing if none does."""
    return next(
        (name for name in _present(row) if row[name] and _text(name, row[name]).strip()), ""
    )


def _is_scalar(value: Any) -> bool:
    """Tell whether `value` can be an id or a title: a string with something in it, or a number."""
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return without_markup(value)
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    if said := text_of(value):
        return said
    if not value:
        return ""
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
