"""Which spans there are, and which of their lengths a query is compared with.

A span is a half-open run ``i < j`` of word indices of one passage, of at most `max_words` words.
"""

from __future__ import annotations

import numpy as np

from slice_os.errors import QueryError
from slice_os.types import Float32, Int32, Passage, Words

MAX_WORDS = 20
"""Default maximum words of a span."""


def enumerate_spans(n_words: int, min_words: int = 1, max_words: int = MAX_WORDS) -> Int32:
    """Return every span of `min_words` to `max_words` words of a passage of `n_words` words.

    The result is int32 ``[S, 2]``: rows ``(i, j)``, ordered by start, then by length.

    Raises:
        ValueError: `n_words` is negative, or not ``1 <= min_words <= max_words``.
    """
    if n_words < 0:
        raise ValueError(f"A passage cannot have {n_words} words.")
    if not 1 <= min_words <= max_words:
        raise ValueError(f"No span has {min_words} to {max_words} words.")
    starts = np.arange(n_words, dtype=np.int32)
    ends = starts[:, None] + np.arange(min_words, max_words + 1, dtype=np.int32)
    inside = ends <= n_words
    firsts = np.broadcast_to(starts[:, None], ends.shape)
    return np.stack((firsts[inside], ends[inside]), axis=1)


def full_range(max_words: int = MAX_WORDS) -> range:
    """Return every span length, ``1..max_words``.

    Raises:
        ValueError: `max_words` is below 1.
    """
    if max_words < 1:
        raise ValueError(f"The longest span cannot have {max_words} words.")
    return range(1, max_words + 1)


def length_window(query_words: int, max_words: int = MAX_WORDS) -> range:
    """Return the span lengths that a query of `query_words` words is compared with.

    About 0.75 to 1.4 times the query's words n,

        floor(0.75 n) .. max(ceil(1.4 n), n + 3)

    additive at the small end, so that one word still reaches a span of four. A query longer than
    `max_words` is treated as one of `max_words` words, so the range is never empty (15..20 of 20).

    Raises:
        QueryError: the query has no word.
        ValueError: `max_words` is below 1.
    """
    if query_words < 1:
        raise QueryError("The query holds no words: give at least one.")
    words = min(query_words, full_range(max_words)[-1])
    shortest = max(1, 3 * words // 4)
    longest = min(max_words, max((14 * words + 9) // 10, words + 3))
    return range(shortest, longest + 1)


def fit_window(lengths: range, n_words: int) -> range:
    """Return `lengths` for a passage of `n_words` words: a shorter passage counts as a whole.

    Without this a passage of five words could never answer a query of fifteen.
    """
    return range(max(min(lengths.start, n_words), 1), lengths.stop)


def shared_words(starts: Int32, ends: Int32, passage: Passage) -> tuple[int, int]:
    """Return how many words of a passage are also the last of that before, the first of the next.

    `Passage.before` and `after` say so in characters, as the words' offsets, int32 ``[N]``, do.
    """
    first = int(np.searchsorted(ends, passage.before, side="right"))
    last = len(starts) - int(np.searchsorted(starts, len(passage.text) - passage.after))
    return first, last if passage.after else 0


def own_norms(norms: Float32, words: Words, passage: Passage) -> Float32:
    """Return span norms, float32 ``[L, N]``, that are 0 where a neighbour has the span."""
    first, last = shared_words(words.starts, words.ends, passage)
    if not first and not last:
        return norms
    own: Float32 = norms.copy()
    for length in range(1, min(len(norms), first) + 1):
        own[length - 1, : min(first // 2, first - length + 1)] = 0
    if last:
        own[:, len(words) - last + last // 2 :] = 0
    return own
