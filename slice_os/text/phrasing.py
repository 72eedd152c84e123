"""Spans as a person would mark them: within a sentence, and not ending on "the".

Of spans that say about the same, the vectors do not tell which one is a phrase. So a span that
crosses the end of a sentence, or begins or ends on a word that belongs to what is left out, gives
way to another whose degree is lower by no more than a margin; and a sentence too short for a
query's window of lengths counts as a whole, as a short passage does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.text.splitting import sentence_ends
from slice_os.types import Float32

CROSSING = 0.1
"""The degree that may be given up for a span within one sentence, line or bullet."""
DANGLING = 0.03
"""The degree that may be given up for a span that neither begins nor ends on a dangling word."""
LOOSE = 0.015
"""The degree that may be given up for an end that is that of a sentence, line or bullet."""

_BEGINNING = frozenset(["and", "but", "nor", "of", "or", "than"])
_ENDING = frozenset([
    "a", "about", "after", "against", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "being", "between", "but", "by", "can", "could", "during", "each", "every",
    "for", "from", "had", "has", "have", "he", "her", "his", "i", "if", "in", "including", "into",
    "is", "its", "may", "might", "must", "my", "nor", "of", "on", "onto", "or", "our", "over",
    "per", "shall", "she", "should", "such", "than", "that", "the", "their", "they", "through",
    "to", "under", "unless", "until", "upon", "via", "was", "we", "were", "whether", "which",
    "while", "who", "whose", "will", "with", "within", "without", "would", "your",
])  # fmt: skip
AROUND = (6, 4)
"""Words before and after a span that are read with it."""
_NO_WORD = re.compile(r"\W+")


class Phrasing(NamedTuple):
    """What people would mark of a passage of N words, for spans of 1 to L words.

    Attributes:
        costs: float32 ``[L, N]``: by how much a span's cosine may be above that of the span that
            is preferred to it; 0 of one that neither crosses an end nor dangles.
        sentences: bool ``[L, N]``: spans from the beginning of a sentence to the end of one.
        loose: float32 ``[L, N]``: the same for spans that are not whole sentences.
    """

    costs: Float32
    sentences: npt.NDArray[np.bool_]
    loose: Float32

    def within(self, cosines: Float32, window: range) -> Float32:
        """Return cosines ``[L, N]`` with -inf where a span does not count for a window of lengths.

        Those of other lengths do not, but for whole sentences that are shorter.
        """
        counts = self.sentences.copy()
        counts[window.start - 1 :] = False
        counts[window.start - 1 : window.stop - 1] = True
        return np.where(counts, cosines, np.float32(-np.inf))


def phrasing(text: str, starts: npt.NDArray[Any], ends: npt.NDArray[Any], longest: int) -> Phrasing:
    """Return the phrasing of a passage for spans of 1 to `longest` words.

    `starts` and `ends` ``[N]`` are the character offsets of its words. The words that dangle are
    known for English alone; in other languages sentences count and nothing else does.
    """
    count = len(starts)
    ending = _sentence_ends(text, ends.tobytes(), ends.dtype)
    words = [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    words = [(word if word.isalpha() else _NO_WORD.sub("", word)).lower() for word in words]
    first = np.arange(count)
    last = np.minimum(first + np.arange(1, longest + 1)[:, None], count)  # half-open
    passed = np.cumsum(ending)
    crossing = passed[last - 1] > passed[first]
    dangling = np.array([word in _ENDING for word in words], bool)[last - 1]
    dangling |= np.array([word in _BEGINNING for word in words], bool)
    costs = 2 * np.where(crossing, CROSSING, np.where(dangling, DANGLING, 0))
    loose = 2 * LOOSE * (2 - ending[first].astype(np.float32) - ending[last])
    return Phrasing(costs.astype(np.float32), ending[first] & ending[last], loose)


@lru_cache(maxsize=1024)
def _sentence_ends(text: str, ends: bytes, kind: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    """Return the sentence ends of a passage, which each of its spans that is judged asks for."""
    return sentence_ends(text, np.frombuffer(ends, kind))


def placed(
    text: str, starts: npt.NDArray[Any], ends: npt.NDArray[Any], start: int, end: int
) -> tuple[str, str, str]:
    """Return characters `start` to `end` of a passage, and the words of their sentence around them.

    Few of those (`AROUND`): what stands before may deny the span.
    """
    i, j = int(starts.searchsorted(start)), int(ends.searchsorted(end)) + 1
    cuts = np.flatnonzero(_sentence_ends(text, ends.tobytes(), ends.dtype))
    first = max(i - AROUND[0], int(cuts[cuts <= i][-1]))
    last = min(j + AROUND[1], int(cuts[cuts >= j][0]))
    before = text[starts[first] : start] if first < i else ""
    after = text[end : ends[last - 1]] if j < last else ""
    return text[start:end], before.strip(), after.strip()
