"""A row of a table or a JSON object -> a document: which field is what, and what is cleaned."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from slice_os.corpus.markup import without_markup
from slice_os.corpus.messages import LISTS, conversation_in, pick, text_of
from slice_os.errors import CorpusError
from slice_os.text.filters import as_utc
from slice_os.types import Document

# What is looked for, in this order, where the caller names no field.
TEXT_FIELDS = ("text", "content", "contents", "body", "passage", "message")
TITLE_FIELD = "title"
ID_FIELDS = ("id", "_id")
TABLE_FIELD = "table"
"""What stands above the header of a table."""
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

    def lacking(self, rows: Sequence[Values]) -> str:
        """Return what is wrong with a table of which the first rows are these, or nothing."""
        if self.text is None and any(map(conversation_in, rows[:_LOOKED_AT])):
            return ""
        return self.missing([*dict.fromkeys(name for row in rows for name, _ in flatten(row))])

    def guessed(self, rows: Sequence[Values]) -> tuple[Fields, str]:
        """Return the fields for rows of which the first are these, and what is to be said of it.

        Where no usual name is among theirs, the text is the one field that holds texts, or the one
        whose texts are clearly the longest.
        """
        flat = [dict(flatten(row)) for row in rows]
        names = list(dict.fromkeys(name for row in flat for name in row))
        if self.text is not None or any(usual(names, name) in names for name in TEXT_FIELDS):
            return self, ""
        talks = [talk.field for row in rows[:_LOOKED_AT] if (talk := conversation_in(row))]
        if any(field.rpartition(".")[2].lower() in LISTS for field in talks):
            return self, ""
        usual_names = (usual(names, name) for name in (TITLE_FIELD, *ID_FIELDS))
        taken = {self.id, self.title, TABLE_FIELD, *usual_names}
        lengths = {
            name: _length([row[name] for row in flat if name in row])
            for name in names
            if name not in taken
        }
        *others, best = sorted(
            (name for name in lengths if lengths[name]), key=lambda name: lengths[name]
        ) or [""]
        clearly = max(_FEWEST, _CLEARLY * lengths[others[-1]]) if others else 0.0
        if not best or lengths[best] < max(clearly, _FEWEST if talks else 0):
            return self, ""
        return replace(self, text=(best,)), (
            f"{best!r} is taken for the text; its other fields are metadata. If that is not so, "
            "give --text-field."
        )


def _length(values: Sequence[Any]) -> float:
    """Return how many words the values of a field have on average, 0 if it holds no texts."""
    held = [value for value in values if value not in ("", None)]
    texts = [value for value in held if isinstance(value, str)]
    texts = [text for text in texts if not _NO_TEXT.fullmatch(without_markup(text))]
    if not texts or len(texts) < len(held) / 2:
        return 0.0
    return mean(len(text.split()) for text in texts)


def usual(names: Iterable[str], name: str) -> str:
    """Return the spelling that a usual name has among `names`, whatever its case."""
    spellings = [spelling for spelling in names if spelling.lower() == name]
    return name if name in spellings or not spellings else spellings[0]


def to_document(values: Values, fields: Fields, fallback_id: str) -> Document:
    """Return the document that a row holds; a `CorpusError` says why it holds none."""
    row = dict(flatten(values))
    usual_text = _usual_text(row)
    talk = None if fields.text or usual_text else conversation_in(values)
    if talk:
        text, used, about = talk.text, {talk.field}, talk.metadata
    elif problem := fields.missing(row):
        raise CorpusError(problem)
    else:
        names = fields.text or (usual_text or _present(row)[0],)
        text, used, about = _text_of_fields(values, row, names)
    ids = (fields.id,) if fields.id else [usual(row, name) for name in ID_FIELDS]
    identity = next((name for name in ids if _is_scalar(row.get(name))), "")
    if fields.id and not identity:
        raise CorpusError(f"the field {fields.id!r} holds no id")
    title, title_field = "", fields.title or usual(row, TITLE_FIELD)
    if _is_scalar(row.get(title_field)) or (fields.title and title_field in row):
        title = _text(title_field, row[title_field])
        if title and title_field not in used:
            # So that its words are found as spans are; the splitter keeps it with what follows.
            # An issue without a description has nothing else to be found by.
            text = f"{title}\n{text}" if text.strip() else title
        used.add(title_field)
    if not text.strip():
        raise CorpusError("no text")
    used.add(identity)
    objects = tuple(f"{name}." for name in used if name)
    rest = {n: v for n, v in row.items() if n not in used and not n.startswith(objects)}
    metadata = {name: as_utc(value) for name, value in {**rest, **about}.items()}
    return Document(str(row[identity]) if identity else fallback_id, clean(text), title, metadata)


def _text_of_fields(
    values: Values, row: Values, names: Sequence[str]
) -> tuple[str, set[str], dict[str, Any]]:
    """Return the text of some fields of a row, those that hold any, and what is known of it."""
    if EVERY in names:
        lines = {name: _text(name, value, strict=False) for name, value in row.items()}
        lines = {name: text for name, text in lines.items() if text}
        return "\n".join(f"{name}: {text}" for name, text in lines.items()), {*lines}, {}
    texts: list[str] = []
    used: set[str] = set()
    about: dict[str, Any] = {}
    for name in names:
        if "[]" in name:
            if talk := pick(values, name):
                texts.append(talk.text)
                used.add(talk.field)
                about |= talk.metadata
        elif name in row:
            texts.append(_text(name, row[name]))
            used.add(name)
    return "\n".join(filter(None, texts)), used, about


def _present(row: Values) -> list[str]:
    return [field for name in TEXT_FIELDS if (field := usual(row, name)) in row]


def _usual_text(row: Values) -> str:
    """Return the first field of a usual name that holds text, nothing if none does."""
    names = (name for name in _present(row) if row[name])
    return next((name for name in names if _text(name, row[name]).strip()), "")


def _is_scalar(value: Any) -> bool:
    """Tell whether `value` can be an id or a title: a string with something in it, or a number."""
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(name: str, value: Any, *, strict: bool = True) -> str:
    """Return the text of a field; where it has none and should, an error says so."""
    if isinstance(value, bool) and not strict:
        return ""
    if isinstance(value, int | float):
        return str(value)
    text = text_of(value)
    if strict and not text and isinstance(value, list | dict) and any(value):
        raise CorpusError(f"the field {name!r} holds {type(value).__name__} that is not text")
    return text


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
    return _UNUSABLE.sub(lambda character: _REPLACEMENTS.get(character[0], "\ufffd"), text)


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
