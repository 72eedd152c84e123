"""A passage against what is asked: the cosines of all its spans, in context and by phrase head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slice_os.spans.degrees import Weights
from slice_os.spans.lengths import fit_window, full_range
from slice_os.spans.mining_scan import piece_runs
from slice_os.spans.norms import span_norms
from slice_os.spans.packed import PackedPassage
from slice_os.spans.scores import span_cosines, word_scores
from slice_os.text.normal_form import plain, same_words
from slice_os.text.phrasing import Phrasing, phrasing
from slice_os.types import Float32, Int32

Place = tuple[int, int]
"""Words i to j of a passage, half-open."""
VERBATIM = np.float32(4)
"""What the cost of a span that has the very words is lowered by: none is preferred to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A query or a phrase, and all that spans are compared with.

    Attributes:
        text: Its words (`encoder.plain`).
        vector: Its unit vector, float32 ``[d]``.
        asked: What the phrase head makes of it (`PhraseHead.ask`), ``[d]`` and ``[V]``; None
            without a head.
        pieces: Its wordpieces, int32 ``[t]``.
        lengths: The span lengths that it is compared with.
        weights: How much the context counts.
    """

    text: str
    vector: Float32
    asked: tuple[Float32, Float32] | None
    pieces: Int32
    lengths: range
    weights: Weights


class Cosines(NamedTuple):
    """The cosines of a passage's spans with a question, ``[L, N]``; -inf where a span is none.

    `context` in context, `head` by the phrase head. Verbatim spans have 1 in both.
    """

    context: Float32
    head: Float32


class SpanTables:
    """A stored passage with the norms of all its spans.

    With those that are counted to its neighbours (`spans.sharing`) if it is for mining: of what
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
        self.phrasing: Phrasing = phrasing(text, packed.starts, packed.ends, packed.max_words)
        self.costs = self.phrasing.costs + self.phrasing.loose
        self.lengths = full_range(packed.max_words)

    def place_text(self, place: Place) -> str:
        """Return the words of a span as they stand in the passage."""
        packed = self.packed
        return self.text[int(packed.starts[place[0]]) : int(packed.ends[place[1] - 1])]

    def cosines(self, question: Question) -> Cosines:
        """Return the cosines with a question, of all spans of the lengths that count for it."""
        window = fit_window(question.lengths, len(self.vectors))
        scores = word_scores(self.vectors, question.vector)
        context = self.phrasing.within(span_cosines(scores, self.norms, self.lengths), window)
        if question.asked is None or not len(self.head_norms):
            return Cosines(context, context)
        asked, table = question.asked
        by_head = word_scores(self.vectors, asked)
        held = np.flatnonzero(self.packed.counts)
        if len(held):
            counts = self.packed.counts[held].astype(np.int64)
            by_head[held] += np.add.reduceat(table[self.packed.pieces], np.cumsum(counts) - counts)
        head = span_cosines(by_head, self.head_norms, self.lengths)
        return Cosines(context, self.phrasing.within(head, window))

    def verbatim(self, question: Question) -> list[Place]:
        """Return the spans that have the question's very words."""
        owner = np.repeat(np.arange(len(self.packed.counts)), self.packed.counts)
        runs = piece_runs(self.packed.pieces, question.pieces)
        places = {
            (int(owner[run]), int(owner[run + len(question.pieces) - 1]) + 1)
            for run in runs.tolist()
        }
        return sorted(
            (i, j)
            for i, j in places
            if j - i <= len(self.norms)
            and self.norms[j - i - 1, i] > 0
            and same_words(self.place_text((i, j)), question.text)
        )


def questions(
    texts: Sequence[str],
    vectors: Float32,
    lengths: Sequence[range],
    asked: tuple[Float32, Float32] | None,
    pieces: Callable[[str], Int32],
) -> list[Question]:
    """Return what is asked by some texts, with their unit vectors ``[m, d]``."""
    return [
        Question(
            words := plain(text),
            vectors[row],
            None if asked is None else (asked[0][row], asked[1][row]),
            pieces(words),
            lengths[row],
            Weights.of(len(words.split())),
        )
        for row, text in enumerate(texts)
    ]
