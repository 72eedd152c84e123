"""How differently paraphrases say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex

from slice_os.errors import EvaluationError, MissingExtraError

_TOKEN = regex.compile(r"[\p{L}\p{N}]+")


@dataclass(frozen=True, slots=True)
class Diversity:
    """How differently paraphrases say it, means over pairs, each from 0 to 1.

    Attributes:
        new_tokens: The share of the second's tokens that the first has not.
        lcs_precision: The longest common subsequence of tokens, of the second's length.
        levenshtein: Edits of characters from one to the other, of the longer one's length.
    """

    new_tokens: float
    lcs_precision: float
    levenshtein: float


def lexical_diversity(pairs: Sequence[tuple[str, str]]) -> Diversity:
    """Return how differently the pairs' second texts say what the first ones do.

    Tokens are runs of letters and digits in lower case.

    Raises:
        EvaluationError: There is no pair.

    """
    if not pairs:
        raise EvaluationError("There is no pair to compare.")
    try:
        from rapidfuzz.distance import LCSseq, Levenshtein
    except ImportError as exc:
        raise MissingExtraError("Measuring diversity", "evaluate") from exc
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
