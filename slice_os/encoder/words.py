"""From token offsets to words."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.records import Int32

Int64 = npt.NDArray[np.int64]

_SCRIPTS = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")


class WordMap(NamedTuple):
    """Which tokens make which word of a text.

    Word i has characters ``starts[i]:ends[i]`` (int32) and tokens ``first[i]:first[i + 1]``
    (int64), the last word up to `owned`. Tokens from `owned` on (white space) have no word.
    """

    first: Int64
    starts: Int32
    ends: Int32
    owned: int

    @property
    def by_token(self) -> WordMap:
        """The same with each token on its own, which has its word's characters."""
        sizes = np.diff(self.first, append=self.owned)
        starts, ends = np.repeat(self.starts, sizes), np.repeat(self.ends, sizes)
        return WordMap(np.arange(self.owned), starts, ends, self.owned)


@lru_cache(maxsize=1)
def _patterns() -> tuple[Any, Any, Any]:
    """Return the patterns of a run without spaces, of a spaceless script, and of both's pieces."""
    import regex

    # Script extensions, so that the long vowel mark belongs to kana; without punctuation, because
    # the middle dot of Catalan and Greek counts among Han's extensions.
    scripts = "".join(rf"\p{{scx={name}}}" for name in _SCRIPTS)
    dense = rf"[[{scripts}]--[\p{{P}}\p{{S}}]]"
    spaced = rf"[\S--[{dense}]]"
    return (
        regex.compile(r"\S+"),
        regex.compile(f"(?V1){dense}"),
        regex.compile(f"(?V1)(?P<dense>{dense}+)|{spaced}+"),
    )


def words_of(text: str, tokens: Int32) -> WordMap:
    r"""Assign tokens to words.

    A word is a run of non-space characters (``\S+``); inside such a run every token of a script
    that is written without spaces is a word of its own. A token belongs to the word that holds its
    start or, where it starts in white space (as SentencePiece's do), to the next word. Words
    without a token are left out.

    Args:
        text: The text.
        tokens: int32 ``[T, 2]``: start and end of each token, in order.
    """
    run, dense, _ = _patterns()
    bounds = np.array([m.span() for m in run.finditer(text)], np.int32).reshape(-1, 2)
    # Tokens never go back in a text; a normaliser that reorders marks must not break the search.
    starts = np.maximum.accumulate(tokens[:, 0])
    if not text.isascii() and dense.search(text):
        # A token that begins in white space counts from the word after it.
        run_of = bounds[:, 1].searchsorted(starts, side="right")
        inside = run_of < len(bounds)
        starts[inside] = np.maximum(starts[inside], bounds[run_of[inside], 0])
        bounds = _split_dense(text, bounds, starts, tokens[:, 1])
    word = bounds[:, 1].searchsorted(starts, side="right")
    owned = int(word.searchsorted(len(bounds)))
    word = word[:owned]
    first = np.flatnonzero(np.diff(word, prepend=-1))
    kept = bounds[word[first]]
    return WordMap(first, kept[:, 0], kept[:, 1], owned)


def _split_dense(text: str, runs: Int32, starts: Int32, ends: Int32) -> Int32:
    """Return int32 ``[N, 2]``: `runs`, cut at every token of a spaceless script.

    A character that no token starts at goes with the word before it (a mark that the normaliser
    drops, the tail of a token that began in another script).
    """
    begins = np.unique(starts)
    # A token may start in one piece and end in the next: the next piece then starts after it.
    reach = np.zeros(len(begins), np.int32)
    np.maximum.at(reach, begins.searchsorted(starts), ends)
    cuts: set[int] = set()
    for piece in _patterns()[2].finditer(text):
        start, end = piece.span()
        low, high = begins.searchsorted([start, end])
        inside = begins[low : high if piece["dense"] is not None else min(low + 1, high)].tolist()
        if inside and (low == 0 or reach[low - 1] <= start):
            inside[0] = start
        cuts.update(inside)
    cuts.update(runs[:, 0].tolist())
    bounds: list[tuple[int, int]] = []
    ordered = np.array(sorted(cuts), np.int32)
    for low, high in runs.tolist():
        own = ordered[slice(*ordered.searchsorted([low, high]))].tolist()
        bounds.extend(pairwise([*own, high]))
    return np.array(bounds, np.int32).reshape(-1, 2)
