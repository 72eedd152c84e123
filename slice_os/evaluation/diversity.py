"""Lexical diversity of paraphrases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex

from slice_os.errors import EvaluationError, needs

_TOKEN = regex.compile(r"[\p{L}\p{N}]+")


@dataclass(frozen=True, slots=True)
class Diversity:
    """Lexical diversity of paraphrases: means over pairs, each from 0 to 1.

    Attributes:
        new_tokens: Share of the second text's tokens that are not in the first.
        lcs_precision: Longest common subsequence of tokens, divided by the second's length.
        levenshtein: Edit distance in characters, divided by the longer text's length.
    """

    new_tokens: float
    lcs_precision: float
    levenshtein: float


def lexical_diversity(pairs: Sequence[tuple[str, str]]) -> Diversity:
    """Return the lexical diversity of pairs of a text and its paraphrase.

    Tokens are runs of letters and digits in lower case.

    Raises:
        EvaluationError: There is no pair.
    """
    if not pairs:
        raise EvaluationError("There is no pair to compare.")
    with needs("Measuring diversity", "evaluate"):
        from rapidfuzz.distance import LCSseq, Levenshtein
    rows = []
    for first, second in pairs:
        ours, theirs = (_TOKEN.findall(text.lower()) for text in (first, second))
        count = max(1, len(theirs))
        rows.append(
            (
                sum(token not in set(ours) for token in theirs) / count,
                LCSseq.similarity(ours, theirs) / count,
                Levenshtein.normalized_distance(first, second),
            )
        )
    return Diversity(*np.mean(rows, axis=0).tolist())
