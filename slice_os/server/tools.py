"""The tools of an agent: a few words with their offsets and degrees, as many as it can read."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Event
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from slice_os.answers import to_json
from slice_os.api import Index
from slice_os.errors import QueryError
from slice_os.options import MineOptions, Options, SearchOptions, ServeOptions
from slice_os.server.bodies import (
    CounterExamples,
    IndexName,
    Phrases,
    check_page,
    check_texts,
    chosen,
    flat,
    index_name,
)
from slice_os.server.mining import StoppedError, named
from slice_os.storage.contract import IndexStatus
from slice_os.text import sentence_around
from slice_os.types import DocumentInfo, Hit

BYTES = 4
"""Bytes of JSON that are counted as a token."""
ROOM = 120
"""Tokens of an answer beside what it lists."""
Item = TypeVar("Item")
MaxTokens = Annotated[
    int,
    Meta(
        ge=200,
        le=100_000,
        description="Tokens of the answer at most, at 4 bytes each; what is left out is counted.",
    ),
]


class SearchTool(SearchOptions, frozen=True, kw_only=True):
    """What to search for."""

    query: Annotated[
        str,
        Meta(
            description='What is looked for, in words, as somebody might say it; "exact words" '
            "must stand there, -word must not."
        ),
    ]
    max_tokens: MaxTokens = 2000
    index: IndexName = None


class MineTool(MineOptions, frozen=True, kw_only=True):
    """What to mine for."""

    phrases: Phrases
    counter_examples: CounterExamples = msgspec.field(default_factory=dict)
    max_tokens: MaxTokens = 2000
    index: IndexName = None


class ReadTool(Options, frozen=True, kw_only=True):
    """Where to read."""

    document: Annotated[str, Meta(description="The id of a document.")]
    at: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(description="A character of it, as start of a hit or a match is."),
    ] = 0
    context: Annotated[
        Annotated[int, Meta(ge=0, le=1000)],
        Meta(description="Passages to read before and after the one at that character."),
    ] = 1
    max_tokens: MaxTokens = 2000
    index: IndexName = None


class ListTool(Options, frozen=True, kw_only=True):
    """Which documents to list."""

    filters: Annotated[Any, Meta(description="Only documents with this metadata.")] = ()
    size: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="Documents at most.")] = (
        20
    )
    offset: Annotated[
        Annotated[int, Meta(ge=0, le=10**9)], Meta(description="Documents to skip.")
    ] = 0
    max_tokens: MaxTokens = 2000
    index: IndexName = None


class StatusTool(Options, frozen=True, kw_only=True):
    """Of which index to tell."""

    index: IndexName = None


class Found(msgspec.Struct, frozen=True):
    """Words that say it: characters `start` to `end` of a document, and their sentence."""

    document: str
    title: str
    start: int
    end: int
    degree: float
    words: str
    before: str
    after: str
    opposite: tuple[str, ...]
    metadata: Mapping[str, Any]


class SearchAnswer(msgspec.Struct, frozen=True):
    """The best places, best first; `left_out` of them did not fit."""

    hits: Sequence[Found]
    left_out: int
    note: str


class Mined(msgspec.Struct, frozen=True):
    """A match: characters `start` to `end` of a document, and who says them, if that is known."""

    name: str
    document: str
    start: int
    end: int
    degree: float
    words: str
    speaker: str


class MineAnswer(msgspec.Struct, frozen=True):
    """How many matches each name has, and the best; `left_out` did not fit."""

    counts: Mapping[str, int]
    unknown: Sequence[str]
    matches: Sequence[Mined]
    left_out: int
    note: str


class ReadAnswer(msgspec.Struct, frozen=True):
    """Characters `start` to `end` of a document."""

    document: str
    title: str
    start: int
    end: int
    text: str
    note: str


class ListAnswer(msgspec.Struct, frozen=True):
    """Documents in the order of their ids, and whether there are more."""

    documents: Sequence[DocumentInfo]
    more: bool
    note: str


class StatusAnswer(msgspec.Struct, frozen=True):
    """The size and state of an index, and which indexes there are."""

    indexes: Sequence[str]
    status: IndexStatus


class Tools:
    """What an agent may ask of some indexes.

    Args:
        indexes: By name; the first is asked by default.
        limits: The options of the server.
    """

    def __init__(self, indexes: Mapping[str, Index], limits: ServeOptions) -> None:
        self._indexes, self._limits = dict(indexes), limits

    def _index(self, name: str | None) -> Index:
        return self._indexes[index_name(name, self._indexes)]

    def call(self, name: str, arguments: Mapping[str, Any], gone: Event) -> msgspec.Struct:
        """Return the answer of a tool; it ends early when whoever called is `gone`.

        Raises:
            QueryError: there is no such tool, or an argument is not usable.
        """
        if name not in TOOLS:
            raise QueryError(f"There is no tool {name[:60]!r}: there are {', '.join(TOOLS)}.")
        tool = TOOLS[name]
        return tool.call(self, tool.takes.of(**arguments), gone)

    def search(self, asked: SearchTool, gone: Event) -> SearchAnswer:
        """Find the places that best say something, in whatever words."""
        check_texts([asked.query, *asked.must, *asked.must_not], self._limits)
        check_page(asked.size, asked.offset, self._limits)
        index = self._index(asked.index)
        hits = index.search(asked.query, **chosen(asked, SearchOptions))
        shown, left_out = fitting([_found(hit) for hit in hits], asked.max_tokens)
        note = ""
        if left_out:
            note = (
                f"{left_out} more hits did not fit into {asked.max_tokens:,} tokens: ask with "
                f"offset {asked.offset + len(shown)}, or a larger max_tokens."
            )
        return SearchAnswer(shown, left_out, note)

    def mine(self, asked: MineTool, gone: Event) -> MineAnswer:
        """Find and count all spans that say some phrases; the best of them are shown."""
        phrases = named(asked.phrases)
        texts = [*flat(phrases), *flat(asked.counter_examples), *asked.must, *asked.must_not]
        check_texts(texts, self._limits)
        if not any(flat(phrases)):
            raise QueryError("There is nothing to mine for: give phrases.")
        until = time.monotonic() + self._limits.max_seconds

        def check(share: float) -> None:
            if gone.is_set() or time.monotonic() > until:
                raise StoppedError

        counts, unknown = Counter(dict.fromkeys(phrases, 0)), list[str]()
        most, number = asked.max_tokens * BYTES // 80, count()
        best: list[tuple[float, int, Mined]] = []
        stopped = ""
        try:
            for match in self._index(asked.index).mine(
                phrases,
                counter_examples=asked.counter_examples,
                on_progress=check,
                on_unknown=unknown.append,
                **chosen(asked, MineOptions),
            ):
                counts[match.name] += 1
                place = match.document_start, match.document_end, round(match.degree, 4)
                mined = Mined(match.name, match.document, *place, match.text, match.speaker)
                heapq.heappush(best, (match.degree, -next(number), mined))
                if len(best) > most:  # more would not fit
                    heapq.heappop(best)
        except StoppedError:
            stopped = (
                f"It was stopped after {self._limits.max_seconds:,} seconds, and is not all: mine "
                "with a filter, or for fewer phrases. "
            )
        matches = [mined for *_, mined in sorted(best, reverse=True)]
        room = asked.max_tokens - len(to_json([counts, unknown]).encode()) // BYTES
        shown, _ = fitting(matches, room)
        left_out = counts.total() - len(shown)
        if left_out:
            stopped += (
                f"The {len(shown)} best matches are shown, {left_out:,} more did not fit into "
                f"{asked.max_tokens:,} tokens: raise min_degree, use filters, or a larger "
                "max_tokens."
            )
        return MineAnswer(counts, unknown, shown, left_out, stopped.strip())

    def read(self, asked: ReadTool, gone: Event) -> ReadAnswer:
        """Read a document around a character."""
        excerpt = self._index(asked.index).show(asked.document, at=asked.at, context=asked.context)
        # Of what does not fit, that around the character is kept.
        most = (asked.max_tokens - ROOM) * BYTES
        text, first = excerpt.text, 0
        while len(text.encode()) > most:
            width = len(text) * most // len(text.encode())
            first += max(0, min(asked.at - excerpt.start - first - width // 2, len(text) - width))
            text = excerpt.text[first : first + width]
        note = ""
        if len(text) < len(excerpt.text):
            note = (
                f"Characters {excerpt.start} to {excerpt.end} did not fit into "
                f"{asked.max_tokens:,} tokens: read on with another at, or a larger max_tokens."
            )
        start = excerpt.start + first
        return ReadAnswer(excerpt.document, excerpt.title, start, start + len(text), text, note)

    def list(self, asked: ListTool, gone: Event) -> ListAnswer:
        """List documents: their ids, titles, sizes and metadata."""
        check_page(asked.size, asked.offset, self._limits)
        documents = self._index(asked.index).list(
            filters=asked.filters, size=asked.size + 1, offset=asked.offset
        )
        shown, left_out = fitting(documents[: asked.size], asked.max_tokens)
        more = bool(left_out) or len(documents) > asked.size
        note = f"There are more: ask with offset {asked.offset + len(shown)}." if more else ""
        return ListAnswer(shown, more, note)

    def status(self, asked: StatusTool, gone: Event) -> StatusAnswer:
        """Tell how large an index is, how it was made, and which indexes there are."""
        return StatusAnswer(list(self._indexes), self._index(asked.index).status())


class Tool(NamedTuple):
    """A tool: what it takes, what it answers, and the method of `Tools` that does."""

    takes: type[Options]
    answers: type[msgspec.Struct]
    call: Callable[[Tools, Any, Event], msgspec.Struct]


TOOLS = {
    "search": Tool(SearchTool, SearchAnswer, Tools.search),
    "mine": Tool(MineTool, MineAnswer, Tools.mine),
    "read": Tool(ReadTool, ReadAnswer, Tools.read),
    "list": Tool(ListTool, ListAnswer, Tools.list),
    "status": Tool(StatusTool, StatusAnswer, Tools.status),
}


def schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a record, an object at its root."""
    made = msgspec.json.schema(record)
    definitions = made.pop("$defs")
    root: dict[str, Any] = definitions.pop(record.__name__)
    return {**root, **({"$defs": definitions} if definitions else {})}


def fitting(items: Sequence[Item], max_tokens: int) -> tuple[list[Item], int]:
    """Return the first items that fit into a number of tokens, and how many are left out.

    One is returned in any case, so that an agent gets on.
    """
    room, kept = (max_tokens - ROOM) * BYTES, list[Item]()
    for item in items:
        room -= len(to_json(msgspec.to_builtins(item)).encode()) + 2
        if room < 0 and kept:
            break
        kept.append(item)
    return kept, len(items) - len(kept)


def _found(hit: Hit) -> Found:
    """Return the best span of a hit in its sentence; of a hit without one, its first sentence."""
    best = hit.spans[0] if hit.spans else None
    start, end = (best.start, best.end) if best else (0, 0)
    before, after = sentence_around(hit.text, start, end)
    place = hit.document_start + start, hit.document_start + end
    return Found(
        hit.document, hit.title, *place, round(hit.degree, 4), hit.text[start:end], before, after,
        best.opposition if best else (), hit.metadata,
    )  # fmt: skip
