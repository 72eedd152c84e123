"""The scan of mining: which passages have a span that reaches a phrase's threshold.

Passages lie one after the other; a block of whole ones is compared with a batch of phrases at once,
so that what is formed, ``[phrases, words]``, stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders.phrase_head import sum_by_word
from slice_os.host import one_blas_thread
from slice_os.spans.packed import PackedPassage, Uint8, present_norms
from slice_os.spans.selection import Int64, Weights, piece_runs
from slice_os.types import Float32, Int32

BLOCK_WORDS = 4096
BATCH_PHRASES = 256
TOLERANCE = 0.002
"""How far below the threshold a cosine may be: float32 prefix sums are not exact."""


class PassageBlock(NamedTuple):
    """The words of some passages, N of them.

    `vectors` float32 ``[N, d]``; `inverse` float32 ``[L, N]``, 1 / norm of the spans that begin
    with each, by length, 0 where there is none; `phrase_inverse` the same of the phrase head,
    ``[0, N]`` without one; `pieces` and `counts` their wordpieces (`types.Words`).
    """

    vectors: Float32
    inverse: Float32
    phrase_inverse: Float32
    pieces: Int32
    counts: Uint8

    @classmethod
    def of(cls, passages: Sequence[PackedPassage]) -> PassageBlock:
        """Return the words of some packed passages."""
        return cls(
            np.concatenate([passage.vectors for passage in passages]),
            np.concatenate(
                [present_norms(passage.norms, passage.exponent) for passage in passages], axis=1
            ),
            np.concatenate(
                [
                    present_norms(passage.phrase_norms, passage.phrase_exponent)
                    for passage in passages
                ],
                axis=1,
            ),
            np.concatenate([passage.pieces for passage in passages]),
            np.concatenate([passage.counts for passage in passages]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PhraseBatch:
    """What spans are compared with: some phrases.

    Attributes:
        vectors: The unit vectors of the phrases, float32 ``[m, d]``.
        lengths: The span lengths that each is compared with.
        cosines: The least cosine that is to be shown, for each, float32 ``[m]``.
        weights: How much the context counts, for each (`spans.selection`).
        margins: By how much the cosine of a span's words alone may be above that of the phrase
            head, for each; none where nothing is encoded alone.
        pieces: The wordpieces of each, int32 ``[t]``.
        head_queries: What the phrase head makes of the phrases (`PhraseHead.project`); None: the
            vectors in context are taken for its own.

    Without `weights`, `margins` and `pieces` spans are compared by their vectors alone.
    """

    vectors: Float32
    lengths: Sequence[range]
    cosines: Float32
    weights: Sequence[Weights] = ()
    margins: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))
    pieces: Sequence[Int32] = ()
    head_queries: tuple[Float32, Float32] | None = None


def scan_passages(
    bounds: Int64, read: Callable[[int, int], PassageBlock], phrases: PhraseBatch
) -> Iterator[tuple[int, list[int]]]:
    """Yield (passage, phrases) where a span's cosine with the phrase may reach its threshold.

    Every passage that qualifies is yielded, those that hold a phrase's very words included, and few
    others: what is within 0.002 of it, and where a threshold is not above 0, passages without such
    a span.

    Args:
        bounds: Which words are a passage's: ``bounds[p]`` to ``bounds[p + 1]``; ``[passages + 1]``.
        read: Returns the words of the passages `first` to `last`, half-open.
        phrases: The phrases and their thresholds.
    """
    thresholds = phrases.cosines - np.float32(TOLERANCE)
    head_vectors, piece_products = phrases.head_queries or (phrases.vectors, None)
    groups: dict[tuple[range, Weights, float], list[int]] = {}
    weights = phrases.weights or [Weights(0, 0)] * len(head_vectors)
    margins = phrases.margins.tolist() or [0.0] * len(head_vectors)
    for k, group in enumerate(zip(phrases.lengths, weights, margins, strict=True)):
        groups.setdefault(group, []).append(k)
    parts = [
        (*group, np.array(members[first : first + BATCH_PHRASES]))
        for group, members in groups.items()
        for first in range(0, len(members), BATCH_PHRASES)
    ]
    for first, last in _blocks(bounds):
        block = read(first, last)
        starts = bounds[first : last + 1] - bounds[first]
        reached = _verbatim(block, starts, phrases.pieces, len(phrases.vectors))
        static = None
        if piece_products is not None:  # the products of the phrases with the words' static vectors
            static = sum_by_word(piece_products.T[block.pieces], block.counts).T
        with one_blas_thread():
            for window, share, margin, members in parts:
                context = phrases.vectors[members] @ block.vectors.T, block.inverse
                head = context
                if static is not None:
                    by_head = head_vectors[members] @ block.vectors.T
                    by_head += static[members]
                    head = by_head, block.phrase_inverse
                best = _best(context, head, starts, window, share, margin)
                reached[members] |= best >= thresholds[members, None]
        for passage in np.flatnonzero(reached.any(axis=0)).tolist():
            yield first + passage, np.flatnonzero(reached[:, passage]).tolist()


ScoresAndNorms = tuple[Float32, Float32]
"""The words' scores ``[m, N]`` and the inverse norms of their spans ``[L, N]``, of one head."""


def _best(
    context: ScoresAndNorms,
    head: ScoresAndNorms,
    starts: Int64,
    lengths: range,
    weights: Weights,
    margin: float,
) -> Float32:
    """Return the most that the cosine of each passage's best span may be, ``[m, passages]``."""
    count = context[0].shape[1]
    sums = [_prefix(scores) for scores, _ in (context, head)]
    best = np.full((len(context[0]), count), -np.inf, np.float32)

    def cosines(of_head: int, length: int, first: int) -> Float32:
        spans: Float32 = sums[of_head][:, length:] - sums[of_head][:, :first]
        spans *= (context, head)[of_head][1][length - 1, :first]
        return spans

    def likely(in_context: Float32, by_head: Float32) -> Float32:
        by_head += np.float32(margin)
        return weights.combine(in_context, by_head)

    for length in range(lengths.start, min(lengths.stop, count + 1)):
        first = count - length + 1
        spans = likely(cosines(0, length, first), cosines(1, length, first))
        # What leaves its passage has a cosine of 0 here, which would be lifted.
        spans[:, context[1][length - 1, :first] == 0] = -np.inf
        np.maximum(best[:, :first], spans, out=best[:, :first])
    of_passages: Float32 = np.maximum.reduceat(best, starts[:-1], axis=1)
    sizes = np.diff(starts)
    (short,) = np.nonzero(sizes < lengths.start)
    if len(short):
        at = sizes[short] - 1, starts[short]
        whole = [
            (total[:, starts[short + 1]] - total[:, starts[short]]) * inverse[at]
            for total, (_, inverse) in zip(sums, (context, head), strict=True)
        ]
        of_passages[:, short] = likely(*whole)
    return of_passages


def _prefix(scores: Float32) -> Float32:
    sums = np.zeros((len(scores), scores.shape[1] + 1), np.float32)
    np.cumsum(scores, axis=1, out=sums[:, 1:])
    return sums


def _verbatim(
    block: PassageBlock, starts: Int64, phrases: Sequence[Int32], count: int
) -> npt.NDArray[np.bool_]:
    """Tell which passages hold the wordpieces of which phrases, bool ``[count, passages]``."""
    holds = np.zeros((count, len(starts) - 1), bool)
    if not len(block.pieces):
        return holds
    owner = np.repeat(np.arange(len(block.counts)), block.counts)
    for k, pieces in enumerate(phrases):
        words = owner[piece_runs(block.pieces, pieces)]
        holds[k, starts.searchsorted(words, side="right") - 1] = True
    return holds


def _blocks(bounds: Int64) -> Iterator[tuple[int, int]]:
    """Yield runs of passages of about `BLOCK_WORDS` words, so that what is formed stays small."""
    first = 0
    while first < len(bounds) - 1:
        last = int(np.searchsorted(bounds, bounds[first] + BLOCK_WORDS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
