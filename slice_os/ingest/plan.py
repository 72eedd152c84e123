"""What of each document is unchanged, what is kept and what has to be encoded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

from slice_os.storage.contract import StoredDocument, Target
from slice_os.text import split
from slice_os.types import Document, Passage, Plain


@dataclass(slots=True)
class IndexReport(Plain):
    """What an indexing run did; live while it runs.

    `documents` were indexed, `replaced` of them had been in the index before; `passages` are
    theirs, `kept` are documents that pruning would have deleted, were they not so many. `spans`,
    `retries` and what took how many seconds are explained by `slice_os.run_stats.Effort`.
    """

    documents: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    words: int = 0
    encoded_words: int = 0
    rejected: int = 0
    pruned: int = 0
    kept: int = 0
    spans: int = 0
    retries: int = 0
    seconds: float = 0.0
    encoding_seconds: float = 0.0
    writing_seconds: float = 0.0
    sending_seconds: float = 0.0
    waiting_seconds: float = 0.0
    characters_read: int = 0
    characters_done: int = 0


T = TypeVar("T")


def ahead(items: Iterable[T], size: int) -> Generator[T, None, None]:
    """Yield `items`, up to `size` of them worked out ahead in a thread."""
    queue: Queue[T | _End] = Queue(size)
    abandoned = Event()

    def put(item: T | _End) -> bool:
        """Put an item into the queue; False if nobody takes it any more."""
        while not abandoned.is_set():
            with suppress(Full):
                queue.put(item, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            if all(put(item) for item in items):
                put(_End(None))
        except BaseException as exc:
            put(_End(exc))

    Thread(target=work, name="slice-os-ahead", daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        abandoned.set()


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


LOOKED_UP = 64
"""Documents whose stored state is read at once,"""
LOOKED_UP_CHARACTERS = 100_000
"""or fewer, if they are long."""
LONGEST_WORD = 100_000
"""Characters; texts have none, but data that was taken for text has."""
LONGEST_TITLE = 10_000
"""Characters: every passage of a document has its title."""
_WORD = re.compile(r"[^\s\u0e00-\U0010ffff]+")  # from Thai on, words need no spaces


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do for a document, in order: a passage, or (None) the document's end."""

    document: Document
    passage: Passage | None = None
    encode: bool = False
    unchanged: bool = False
    replaces: bool = False
    problem: str = ""


def plan(documents: Iterable[Document], backend: Target, report: IndexReport) -> Iterator[Step]:
    """Decide what of each document is unchanged, what is kept and what must be encoded."""
    for document, problem, stored in _look_up(documents, backend):
        if problem:
            # Without its text: it waits.
            yield Step(Document(document.id, ""), problem=problem)
            continue
        report.characters_read += len(document.text)
        if stored is not None and stored.hash == document.hash:
            report.characters_done += len(document.text)
            yield Step(Document(document.id, ""), unchanged=True)  # without its text: it waits
            continue
        known = stored.passages if stored else Counter[str]()
        for passage in split(document, backend.meta.passage_words):
            kept = known[passage.hash] > 0
            known[passage.hash] -= kept
            yield Step(document, passage, encode=not kept)
        yield Step(document, replaces=stored is not None and stored.hash is not None)


def _look_up(
    documents: Iterable[Document], backend: Target
) -> Iterator[tuple[Document, str, StoredDocument | None]]:
    """Pair each document with why it cannot be indexed, or with what is stored of it."""
    for batch in _batches(documents):
        problems = [problem_with(document) for document in batch]
        ids = [item.id for item, problem in zip(batch, problems, strict=True) if not problem]
        stored = backend.stored(ids) if ids else {}
        for document, problem in zip(batch, problems, strict=True):
            yield document, problem, None if problem else stored.get(document.id)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield documents in lists, short enough to be held.

    What was read before an error of their source is indexed first.
    """
    batch: list[Document] = []
    size, error = 0, None
    try:
        for document in documents:
            batch.append(document)
            size += len(document.text) if isinstance(document.text, str) else 0
            if len(batch) == LOOKED_UP or size > LOOKED_UP_CHARACTERS:
                yield batch
                batch, size = [], 0
    except Exception as exc:
        error = exc
    yield batch
    if error is not None:
        raise error


def problem_with(document: Document) -> str:
    """Return why a document cannot be indexed, nothing if it can."""
    try:
        if all(isinstance(text, str) for text in (document.id, document.title, document.text)):
            document.id.encode()
            if not (document.id and document.hash):
                return "it has no id"
            if len(document.title) > LONGEST_TITLE:
                return f"its title has more than {LONGEST_TITLE:,} characters"
            return _endless_word(document.text)
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    except (TypeError, ValueError) as exc:
        return f"its metadata cannot be stored: {exc}"
    return "its id, title and text must be texts"


def _endless_word(text: str) -> str:
    if len(text) > LONGEST_WORD:  # one word is a passage, however long, and encoded at once
        for word in _WORD.finditer(text):
            if word.end() - word.start() > LONGEST_WORD:
                return f"it has a word of more than {LONGEST_WORD:,} characters"
    return ""
