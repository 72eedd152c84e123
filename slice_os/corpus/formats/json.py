"""JSON Lines, an object a line; and JSON, an array or object of documents, read one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import count
from typing import Any, BinaryIO

from slice_os.corpus.encodings import BROKEN, open_text
from slice_os.corpus.formats.base import Row
from slice_os.corpus.limits import ROW_CHARACTERS, is_dense, read_line, too_long
from slice_os.corpus.messages import LISTS, turn_of
from slice_os.corpus.rows import TEXT_FIELDS
from slice_os.errors import CorpusError

_AT_ONCE = 1 << 16
_DEEPEST = 8
_SPACE = re.compile(r"[ \t\n\r]*")


def parse_lines(stream: BinaryIO) -> Iterator[Row]:
    """Give a row for each line that is not blank; a row's number is its line's, from 1."""
    with open_text(stream, newline=None) as lines:
        for number, line in enumerate(iter(lambda: read_line(lines), ""), start=1):
            if line is None or is_dense(line):
                yield Row(number, {}, too_long("line"))
            elif BROKEN in line:
                yield Row(number, {}, f"holds bytes that are not {lines.encoding}")
            elif line.strip():
                yield _line(number, line)


def _line(number: int, line: str) -> Row:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as exc:
        return Row(number, {}, f"is not JSON: {exc.msg} at column {exc.colno}")
    except (ValueError, RecursionError) as exc:  # a number of 5,000 digits, 1,000 brackets
        return Row(number, {}, f"is not usable JSON: {exc}")
    return _row(number, value)


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give the objects of an array, by number from 1; or those of an object.

    An object may map ids to documents, or hold a list of them beside numbers and short texts, as
    the exports of trackers do, or be one document. Several objects are documents, as in JSON Lines.
    """
    with open_text(stream, newline=None) as text:
        values = _Values(text)
        first = values.peek()
        if first == "[":
            for number, value in enumerate(values.members(), start=1):
                yield _row(number, value)
        elif first == "{":
            value = values.next()
            if values.peek() == "{":  # JSON Lines by another name
                yield _row(1, value)
                for number in count(2):
                    if values.peek() != "{":
                        break
                    yield _row(number, values.next())
            else:
                yield from _of_object(value)
        else:
            raise CorpusError("is no JSON array or object")
        if following := values.peek():
            raise CorpusError(f"is not JSON: it goes on after its end with {following!r}")


class _Values:
    """The values of a JSON text, of which no more is held than the one that is read."""

    def __init__(self, text: TextIOWrapper) -> None:
        self._text, self._decoder = text, json.JSONDecoder()
        self._held, self._start, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the next character that is no space, empty at the end."""
        while True:
            if space := _SPACE.match(self._held, self._start):
                self._start = space.end()
            if self._start < len(self._held) or self._ended:
                return self._held[self._start : self._start + 1]
            self._read(_AT_ONCE)

    def _read(self, size: int) -> None:
        more = self._text.read(size)
        self._held, self._start, self._ended = self._held[self._start :] + more, 0, not more

    def members(self) -> Iterator[Any]:
        """Yield the values of the array that begins here."""
        self._start += 1
        while self.peek() != "]":
            yield self.next()
            if (following := self.peek()) == ",":
                self._start += 1
            elif following != "]":
                raise CorpusError(f"is not JSON: an array goes on with {following!r}")
        self._start += 1

    def next(self) -> Any:
        """Return the value that begins here."""
        self.peek()
        while True:
            size = len(self._held) - self._start
            if size > ROW_CHARACTERS or is_dense(self._held, self._start):
                raise CorpusError(f"{too_long('document')}; what follows it is not read")
            try:
                value, end = self._decoder.raw_decode(self._held, self._start)
            except json.JSONDecodeError as exc:
                if self._ended:
                    raise CorpusError(f"is not JSON: {exc.msg}") from exc
            except (ValueError, RecursionError) as exc:
                raise CorpusError(f"is not usable JSON: {exc}") from exc
            else:
                if end < len(self._held) or self._ended:  # else a number may go on
                    is_broken = BROKEN in self._held[self._start : end]
                    self._start = end
                    return _BROKEN if is_broken else value
            self._read(max(size, _AT_ONCE))


_BROKEN = object()


def _row(number: int, value: Any, key: str = "") -> Row:
    if value is _BROKEN:
        return Row(number, {}, "holds bytes that are not of its encoding")
    if isinstance(value, list) and any(map(_is_turn, value)):  # a conversation without a name
        value = {LISTS[0]: value}
    if not isinstance(value, dict):
        return Row(number, {}, f"is {type(value).__name__}, not an object")
    return Row(number, {"id": key, **value} if key else value)


def _of_object(value: Any, depth: int = 0) -> Iterator[Row]:
    """Give the documents that an object holds, or is."""
    if value is _BROKEN or any(name.lower() in TEXT_FIELDS for name in value):
        yield _row(1, value)
        return
    inner = [(name, held) for name, held in value.items() if isinstance(held, list | dict)]
    name, held = inner[0] if len(inner) == 1 else ("", None)
    if _are_objects([*value.values()]):
        for number, (key, document) in enumerate(value.items(), start=1):
            yield _row(number, document, key)
    elif isinstance(held, list) and _are_objects(held) and not _is_talk(name, held):
        for number, document in enumerate(held, start=1):
            yield _row(number, document)
    elif isinstance(held, dict) and depth < _DEEPEST and any(map(_are_objects, held.values())):
        yield from _of_object(held, depth + 1)
    else:
        yield _row(1, value)


def _is_talk(name: str, values: list[Any]) -> bool:
    return name.lower() in LISTS and any(map(_is_turn, values))


def _is_turn(value: Any) -> bool:
    """Tell whether an object is a message of a conversation, not a conversation."""
    return isinstance(value, dict) and turn_of(value) is not None


def _are_objects(values: Any) -> bool:
    return isinstance(values, list) and values != [] and all(isinstance(v, dict) for v in values)
