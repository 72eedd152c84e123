"""Small frozen records that carry the data from room to room.

All offsets count characters (Unicode code points). A *word* is a maximal run of non-space
characters (in scripts without spaces: one token); a *span* is a run of adjacent words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]
Metadata = Mapping[str, Any]


def content_hash(*parts: object) -> str:
    """Return the hexadecimal 128-bit BLAKE2 hash of JSON-serialisable `parts`.

    Raises:
        UnicodeEncodeError: a part holds half a character (a lone surrogate).
    """
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Plain:
    """A record that can be printed as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types, in the order of its fields."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class Document:
    """What the user has: a file or a row, already decoded to text.

    `source` is the id of the file that it was read from, empty if it was not.
    """

    id: str
    text: str
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    source: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """What tells whether the document has changed since it was indexed."""
        source = (self.source,) if self.source else ()
        return content_hash(self.title, self.text, dict(self.metadata), *source)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that is encoded at once.

    ``text == document.text[start:end]``; `number` counts a document's passages from 0. The first
    `before` characters are the last of the passage before it, the last `after` the first of the one
    after it, where a sentence was cut; both are known while a passage is indexed, else 0.
    """

    document: str
    number: int
    start: int
    end: int
    text: str
    title: str = ""
    before: int = 0
    after: int = 0

    @property
    def hash(self) -> str:
        """What decides all that is stored of a passage but its place: equal needs no encoding."""
        shared = (self.before, self.after) if self.before or self.after else ()
        return content_hash(self.title, self.text, *shared)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of one text with their vectors.

    ``starts`` and ``ends`` are int32 ``[N]`` character offsets into the text; ``vectors`` is
    float32 ``[N, d]``: row i is the **sum** of the contextual token vectors of word i, so that
    sums over words have the direction of the mean over tokens. ``pieces`` are the ids of the
    wordpieces of all words, int32 ``[T]``, without punctuation at a word's edges, and ``counts``,
    uint8 ``[N]``, how many are each word's (at most 255); both None where an encoder has none.
    """

    starts: Int32
    ends: Int32
    vectors: Float32
    pieces: Int32 | None = None
    counts: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Reject:
    """Something of the corpus that was skipped, and why.

    `place` names a file, a file and its row ("a.csv#12"), or a document and its passage;
    `document` is the document's id where a backend refuses a passage of it.
    """

    place: str
    reason: str
    document: str = ""


@dataclass(frozen=True, slots=True)
class SpanMatch:
    """A span of a hit's text with its degrees of similarity, each in [0, 1].

    `degree` is the verified degree where verification ran, else the in-context degree.
    `contributions` holds, word by word, the share of the indexed cosine; their sum is
    ``2 * in_context_degree - 1``. `opposition` is why a judge has lowered the degree: "negation",
    "antonym", "number", "modal", "role"; empty if none has, or none that can say.
    """

    start: int
    end: int
    text: str
    degree: float
    in_context_degree: float
    contributions: tuple[float, ...] = ()
    opposition: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit(Plain):
    """One passage of a search result, best spans first.

    `score` ranks (and may be fused); `degree` is the best span's true degree of similarity. `text`
    is characters `document_start` to `document_end` of the document, and so a span's `start` is
    ``document_start + start`` there. `probability` is that of a taught phrase, else None.
    """

    document: str
    passage: int
    title: str
    text: str
    score: float
    degree: float
    spans: tuple[SpanMatch, ...]
    metadata: Metadata
    document_start: int
    document_end: int
    probability: float | None = None

    @property
    def lowered(self) -> str:
        """Why a judge has lowered the degree, in brackets; empty if none has."""
        why = self.spans[0].opposition if self.spans else ()
        return f"(opposite: {', '.join(why)})" if why else ""

    def _repr_html_(self) -> str:
        """Return the degree, the document and the text with its spans marked, for notebooks."""
        head = f"<b>{self.degree:.3f}</b> {escape(self.document)} <i>{escape(self.title)}</i>"
        head = f"{head} {self.lowered}".rstrip()
        parts, at = [], 0
        for span in sorted(self.spans, key=lambda span: span.start):
            parts.append(f"{escape(self.text[at : span.start])}<mark>{escape(span.text)}</mark>")
            at = span.end
        return f"<p>{head}<br>{''.join(parts)}{escape(self.text[at:])}</p>"


@dataclass(frozen=True, slots=True)
class DocumentInfo(Plain):
    """A document of an index: its id and title, how much of it there is, its metadata."""

    document: str
    title: str
    words: int
    passages: int
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Excerpt(Plain):
    """Characters `start` to `end` of a document, as an index holds them.

    White space between passages is not stored: there are as many line ends, so that offsets hold.
    """

    document: str
    title: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Match(Plain):
    """One span of one passage that reaches the threshold of what is mined for.

    `name` is what was mined for, `phrase` which of its phrases the span is nearest to. `start`
    and `end` are offsets into the passage, `document_start` and `document_end` into the document.
    `probability` is that of a taught phrase, None of one that was not taught. `speaker` is who says
    it, of a conversation whose turns name their speakers.
    """

    name: str
    phrase: str
    document: str
    passage: int
    start: int
    end: int
    text: str
    degree: float
    document_start: int
    document_end: int
    probability: float | None = None
    speaker: str = ""
