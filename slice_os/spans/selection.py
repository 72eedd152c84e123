"""Which spans of a passage answer a query: the cosines of all, what is shown, the best of a table.

The degree that is shown is what a span's words say alone, raised by what they say in context. With
cosines c (the span in its context) and r (its words alone) and a query of n words:

    cos = r + share(n) max(0, offset(n) + (1 - offset(n)) c - r)

so that a span is never below what its words say alone, and of short queries, whose words mean much
in one context and little in another, the context decides nearly all above that. Words that are the
query's have 1. Where nothing was encoded alone, the phrase head's cosine h is taken for r. The four
numbers were chosen on development sets of four kinds, each left out in turn (docs/results.md).

Tables are those of `slice_os.spans.cosines`. Ties are always broken alike: higher cosine, then
fewer words, then further to the front, which is the order of the cells in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders import Encoder
from slice_os.encoders.phrase_head import sum_by_word
from slice_os.spans.cosines import fit_window, full_range, span_cosines, span_norms, word_scores
from slice_os.spans.packed import PackedPassage
from slice_os.text.normal_form import plain, same_words
from slice_os.text.phrasing import phrasing
from slice_os.types import Float32, Int32

Int64 = npt.NDArray[np.int64]
SHORT, LONG = 4, 7
"""Queries of up to SHORT words have the first of the values below, from LONG words on the second;
between them they change evenly."""
SHARE = (0.9, 0.5)
OFFSET = (0.2, 0.3)
MARGIN = 0.14
"""How far the cosine of a span's words alone is above that of the phrase head, of a query of four
words or more: with it mining finds more than 0.99 of all (`benchmarks/rescoring.py`)."""
MARGINS = (2.0, 1.5, 1.2, 1.0)
"""By what that is multiplied for queries of one to four words, whose spans have few words."""
VERBATIM = np.float32(4)
"""What the cost of a span that has the very words is lowered by: none is preferred to it."""
CHUNK = 4096
"""Candidates examined between two removals of those that overlap a chosen span."""
Place = tuple[int, int]
"""Words i to j of a passage, half-open."""


class Weights(NamedTuple):
    """How much the context counts: `share` and `offset` of the formula above."""

    share: float
    offset: float

    @classmethod
    def of(cls, query_words: int) -> Weights:
        """Return the weights for a query of so many words."""
        between = (SHORT, LONG)
        return cls(
            float(np.interp(query_words, between, SHARE)),
            float(np.interp(query_words, between, OFFSET)),
        )

    def combine(
        self, in_context: npt.NDArray[Any], standalone: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """Return the cosines that are shown, of the shape and dtype of both; -inf stays -inf."""
        kind = standalone.dtype.type
        lifted = kind(self.offset) + kind(1 - self.offset) * in_context
        # Not `standalone + share * ...`: what is not there is -inf in both.
        raised = kind(1 - self.share) * standalone + kind(self.share) * lifted
        shown: npt.NDArray[Any] = np.maximum(standalone, raised)
        return shown


def margin(query_words: int, cosine: float) -> float:
    """Return how far below `cosine` the phrase head's may be of a span that is to be encoded."""
    wide = MARGINS[min(max(query_words, 1), len(MARGINS)) - 1]
    return wide * (MARGIN + max(0.0, 0.6 - cosine) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQuery:
    """A query or a phrase, and all that spans are compared with.

    Attributes:
        text: As it was asked, without operators.
        n_words: How many words it has.
        vector: Its unit vector, float32 ``[d]``.
        head_query: What the phrase head makes of it (`PhraseHead.project`), ``[d]`` and ``[V]``;
            None without a head.
        pieces: Its wordpieces, int32 ``[t]``.
        lengths: The span lengths that it is compared with.
        weights: How much the context counts.
    """

    text: str
    n_words: int
    vector: Float32
    head_query: tuple[Float32, Float32] | None
    pieces: Int32
    lengths: range
    weights: Weights


def prepare_queries(
    encoder: Encoder, texts: Sequence[str], vectors: Float32, lengths: Sequence[range]
) -> list[EncodedQuery]:
    """Return what spans are compared with for some texts, with their unit vectors ``[m, d]``."""
    head_queries = encoder.head.project(vectors) if encoder.head else None
    return [
        EncodedQuery(
            text,
            n_words := len((words := plain(text)).split()),
            vectors[row],
            None if head_queries is None else (head_queries[0][row], head_queries[1][row]),
            encoder.pieces(words),
            lengths[row],
            Weights.of(n_words),
        )
        for row, text in enumerate(texts)
    ]


class SpanCosines(NamedTuple):
    """The cosines of a passage's spans with a query, ``[L, N]``; -inf where a span is none.

    `context` in context, `head` by the phrase head.
    """

    context: Float32
    head: Float32


class SpanTables:
    """A stored passage with the norms of all its spans.

    With those that are counted to its neighbours (`own_norms`) if it is for mining: of what
    overlaps only the best stays, whosever it is, so that no part of a match is one, too.
    """

    def __init__(
        self, packed: PackedPassage, text: str, *, head_words: Callable[[], Float32] | None = None
    ) -> None:
        """Unpack a passage; `head_words` gives the head's vectors where norms are to be computed.

        Without it a span that is a neighbour's has none.
        """
        self.packed, self.text, self.vectors = packed, text, packed.vectors
        self.norms, self.head_norms = packed.span_norms, packed.phrase_span_norms
        if head_words is not None and not packed.norms[0].all():
            self.norms = span_norms(self.vectors, packed.max_words)
            if len(self.head_norms):
                self.head_norms = span_norms(head_words(), packed.max_words)
        self.phrasing = phrasing(text, packed.starts, packed.ends, packed.max_words)
        self.costs = self.phrasing.costs + self.phrasing.loose
        self.lengths = full_range(packed.max_words)

    def span_text(self, place: Place) -> str:
        """Return the words of a span as they stand in the passage."""
        packed = self.packed
        return self.text[int(packed.starts[place[0]]) : int(packed.ends[place[1] - 1])]

    def cosines(self, query: EncodedQuery) -> SpanCosines:
        """Return the cosines with a query, of all spans of the lengths that count for it."""
        window = fit_window(query.lengths, len(self.vectors))
        scores = word_scores(self.vectors, query.vector)
        context = self.phrasing.within(span_cosines(scores, self.norms, self.lengths), window)
        if query.head_query is None or not len(self.head_norms):
            return SpanCosines(context, context)
        vector, products = query.head_query
        by_head = word_scores(self.vectors, vector)
        by_head += sum_by_word(products[self.packed.pieces], self.packed.counts)
        head = span_cosines(by_head, self.head_norms, self.lengths)
        return SpanCosines(context, self.phrasing.within(head, window))

    def verbatim(self, query: EncodedQuery) -> list[Place]:
        """Return the spans that have the query's very words."""
        owner = np.repeat(np.arange(len(self.packed.counts)), self.packed.counts)
        runs = piece_runs(self.packed.pieces, query.pieces)
        places = {
            (int(owner[run]), int(owner[run + len(query.pieces) - 1]) + 1) for run in runs.tolist()
        }
        return sorted(
            (i, j)
            for i, j in places
            if j - i <= len(self.norms)
            and self.norms[j - i - 1, i] > 0
            and same_words(self.span_text((i, j)), query.text)
        )


def piece_runs(pieces: Int32, sought: Int32) -> Int64:
    """Return where a run of wordpieces begins in others, int64 ``[n]``."""
    if not len(sought) or len(pieces) < len(sought):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(pieces[: len(pieces) - len(sought) + 1] == sought[0])
    for place, piece in enumerate(sought[1:].tolist(), start=1):
        starts = starts[pieces[starts + place] == piece]
    return starts


class ScoredSpan(NamedTuple):
    """Words ``i..j`` (half-open) and the cosine of their span with the query."""

    i: int
    j: int
    cosine: float


def best_span(cosines: npt.NDArray[Any], lengths: range) -> ScoredSpan:
    """Return the best span of `cosines` ``[len(lengths), N]``; ``(0, 0, -inf)`` if there is none.

    Raises:
        ValueError: `cosines` has not one row a length.
    """
    best = top_spans(cosines, lengths, 1)
    return best[0] if best else ScoredSpan(0, 0, -np.inf)


def top_spans(
    cosines: npt.NDArray[Any],
    lengths: range,
    k: int,
    costs: npt.NDArray[Any] | float = 0.0,
) -> list[ScoredSpan]:
    """Return the `k` best spans of `cosines` ``[len(lengths), N]``, best first; fewer if so few.

    The best are those of the highest cosines less their `costs`, of the same shape.

    Raises:
        ValueError: `cosines` has not one row a length, or `k` is negative.
    """
    _check(cosines, lengths)
    if k < 0:
        raise ValueError(f"There are no {k} spans.")
    flat = (cosines - costs).ravel()
    if 0 < k < flat.size:
        cells = np.flatnonzero(flat >= np.partition(flat, flat.size - k)[flat.size - k])
    else:
        cells = np.arange(flat.size if k else 0)
    cells = cells[flat[cells] > -np.inf]
    cells = cells[np.argsort(-flat[cells], kind="stable")[:k]]
    rows, starts = np.divmod(cells, max(cosines.shape[1], 1))
    return [
        ScoredSpan(i, i + lengths[row], float(cosines[row, i]))
        for row, i in zip(rows.tolist(), starts.tolist(), strict=True)
    ]


def spans_above(
    cosines: npt.NDArray[Any],
    lengths: range,
    threshold: float,
    costs: npt.NDArray[Any] | float = 0.0,
) -> list[ScoredSpan]:
    """Return the matches of `cosines` ``[len(lengths), N]``, best first.

    Spans with a cosine of at least `threshold` (rounded to the table's dtype); of those that
    overlap only the best stays, by its cosine less its cost: greedy non-maximum suppression, so
    every span above the threshold is a match or shares a word with a better one. Work: one sort of
    the candidates, and for every `CHUNK` of them one pass over the words.

    Raises:
        ValueError: `cosines` has not one row a length.
    """
    _check(cosines, lengths)
    flat = cosines.ravel()
    cells = np.flatnonzero((flat >= flat.dtype.type(threshold)) & (flat > -np.inf))
    order = np.argsort(-(cosines - costs).ravel()[cells], kind="stable")
    cells = cells[order]
    count = cosines.shape[1]
    taken = bytearray(count)
    matches = []
    for begin in range(0, len(cells), CHUNK):
        chunk = cells[begin : begin + CHUNK]
        rows, starts = np.divmod(chunk, count)
        ends = starts + rows + lengths.start
        before = np.zeros(count + 1, np.int64)
        np.cumsum(np.frombuffer(taken, np.uint8), dtype=np.int64, out=before[1:])
        free = before[ends] == before[starts]
        for i, j, value in zip(
            starts[free].tolist(), ends[free].tolist(), flat[chunk[free]].tolist(), strict=True
        ):
            if taken.find(1, i, j) < 0:
                taken[i:j] = b"\1" * (j - i)
                matches.append(ScoredSpan(i, j, value))
    return matches


def _check(cosines: npt.NDArray[Any], lengths: range) -> None:
    if cosines.ndim != 2 or len(cosines) != len(lengths) or lengths.step != 1:
        raise ValueError(f"A table {cosines.shape} has not one row a length of {lengths}.")
