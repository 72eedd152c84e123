"""Spans of words that two passages share: each is that of one of the two.

Where a sentence was cut, a passage begins with the last words of the one before it. A span that
both hold would be found twice. It belongs to the later passage if it begins in the second half of
the shared words, and to the earlier one if not; so each sees some words around its own spans, too.
"""

from __future__ import annotations

import numpy as np

from slice_os.records import Float32, Int32, Passage, Words


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
