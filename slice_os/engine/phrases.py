"""What is mined for: names, each with its phrases and its counter-examples."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from slice_os.corpus.encodings import BROKEN, open_text
from slice_os.corpus.formats import format_of
from slice_os.corpus.formats.delimited import parse_csv
from slice_os.errors import CorpusError, QueryError


@dataclass(frozen=True, slots=True)
class Sought:
    """What is mined for under one name: spans that say one of the phrases.

    Where one of the counter-examples is nearer than they are, there is no match.
    """

    phrases: tuple[str, ...]
    counter_examples: tuple[str, ...] = ()


Texts = str | Sequence[str]
Named = Sequence[str] | Mapping[str, Texts | Sought]
"""Phrases, which are their own names, or by name: one, several, or a `Sought`."""


def gather(
    phrases: str | Named, counter_examples: Mapping[str, Texts] | None = None
) -> dict[str, Sought]:
    """Return what is sought by name; counter-examples are added to those a `Sought` has.

    Raises:
        QueryError: There is no phrase, or none of a counter-example's name.
    """
    if not isinstance(phrases, Mapping):
        phrases = {text: text for text in _texts(phrases)}
    named = {
        name: texts if isinstance(texts, Sought) else Sought(_texts(texts))
        for name, texts in phrases.items()
    }
    if not named:
        raise QueryError("Nothing to mine for: give at least one phrase.")
    for name, texts in (counter_examples or {}).items():
        if name not in named:
            raise QueryError(
                f"There is a counter-example for {name!r} and no phrase: name one of "
                f"{', '.join(map(repr, list(named)[:5]))}."
            )
        known = named[name]
        named[name] = Sought(known.phrases, known.counter_examples + _texts(texts))
    if empty := [name for name, sought in named.items() if not sought.phrases]:
        raise QueryError(f"There is no phrase for {empty[0]!r}: give at least one.")
    return named


def _texts(texts: Texts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(dict.fromkeys(texts))


def is_phrase(text: str) -> bool:
    """Tell whether what was given for a file is a phrase: no such file, nor called like one."""
    is_path = Path(text).name != text and len(text.split()) == 1
    is_name = is_path or text == "-" or format_of(text) is not None
    return not is_name and not os.path.lexists(text)


def read_phrases(file: Path) -> dict[str, Sought]:
    """Return the phrases of a file by name: one a line, or a CSV with columns name and phrase.

    Rows of one name are its phrases; the column ``not``, if there is one, holds a counter-example,
    beside a phrase or alone. ``-`` is standard input, a phrase a line. In any encoding that `read`
    knows. Empty lines and lines that begin with ``#`` are left out of a text.

    Raises:
        CorpusError: the file cannot be read or holds no phrase, or a name has none.
    """
    try:
        if str(file) == "-":
            return _named(_lines(BytesIO(sys.stdin.buffer.read())))
        with file.open("rb") as stream:
            return _named(_rows(stream) if file.suffix.lower() == ".csv" else _lines(stream))
    except OSError as exc:
        raise CorpusError(
            f"The phrases file {file} cannot be read ({exc.strerror}): check the path, or give a "
            "phrase by --phrase."
        ) from exc
    except CorpusError as exc:
        raise CorpusError(f"The phrases file {file} is to be corrected: {exc}.") from exc


def _named(rows: Iterable[tuple[str, str, str]]) -> dict[str, Sought]:
    texts: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, phrase, counter in rows:
        if BROKEN in phrase + counter:
            raise CorpusError("it holds bytes that are no text")
        if not phrase.strip() and not counter.strip():
            raise CorpusError(f"the phrase named {name!r} is empty")
        phrases, counters = texts.setdefault(name, ({}, {}))
        if phrase.strip():
            phrases[phrase] = None
        if counter.strip():
            counters[counter] = None
    if not texts:
        raise CorpusError("it holds no phrase")
    if lacking := [name for name, (phrases, _) in texts.items() if not phrases]:
        raise CorpusError(f"{lacking[0]!r} has counter-examples and no phrase")
    return {
        name: Sought(tuple(phrases), tuple(counters)) for name, (phrases, counters) in texts.items()
    }


def _lines(stream: BinaryIO) -> Iterator[tuple[str, str, str]]:
    with open_text(stream, newline=None) as text:
        for line in map(str.strip, text):
            if line and not line.startswith("#"):
                yield line, line, ""


def _rows(stream: BinaryIO) -> Iterator[tuple[str, str, str]]:
    for row in parse_csv(stream):
        if row.problem:
            raise CorpusError(f"line {row.line} {row.problem}")
        if not {"name", "phrase"} <= set(row.values):
            raise CorpusError("it needs the columns name and phrase in its first line")
        name, phrase, counter = (
            str(row.values.get(key) or "") for key in ("name", "phrase", "not")
        )
        yield name or phrase, phrase, counter
