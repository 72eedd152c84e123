"""Lexical diversity: of paraphrases, or of the nearest neighbours of phrases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import fmean

import numpy as np
import regex

from slice_os.encoders import Encoder
from slice_os.errors import EvaluationError, needs

_TOKEN = regex.compile(r"[\p{L}\p{N}]+")
NEAREST, PHRASES, SEED = 10, 1_000, 42
_BLOCK = 200


@dataclass(frozen=True, slots=True)
class Diversity:
    """Lexical diversity as in Wang et al. (2021), section 5.3: means over phrases.

    Attributes:
        new_tokens: Distinct tokens of a phrase's neighbours that it does not have, divided by the
            number of its own.
        lcs_precision: The longest common substring of a phrase and a neighbour, in characters,
            divided by the neighbour's; less is more diverse.
        levenshtein: Edit distance of a phrase and a neighbour, in characters.
    """

    new_tokens: float
    lcs_precision: float
    levenshtein: float


def lexical_diversity(groups: Sequence[tuple[str, Sequence[str]]]) -> Diversity:
    """Return the lexical diversity of phrases, each with its neighbours or paraphrases.

    Case does not count; tokens are runs of letters and digits.

    Raises:
        EvaluationError: There is no phrase, or one without neighbours.
        MissingExtraError: rapidfuzz is not installed.
    """
    if not groups or not all(others for _, others in groups):
        raise EvaluationError("There is no phrase to compare, or one has nothing beside it.")
    with needs("Measuring diversity", "evaluate"):
        from rapidfuzz.distance import Levenshtein
    rows = []
    for phrase, others in groups:
        one, rest = phrase.lower(), [other.lower() for other in others]
        own = _TOKEN.findall(one)
        new = {token for other in rest for token in _TOKEN.findall(other)} - set(own)
        rows.append(
            (
                len(new) / max(1, len(own)),
                fmean(_common(one, other) / max(1, len(other)) for other in rest),
                fmean(Levenshtein.distance(one, other) for other in rest),
            )
        )
    return Diversity(*np.mean(rows, axis=0).tolist())


def neighbour_diversity(encoder: Encoder, vocabulary: Sequence[str]) -> Diversity:
    """Return the diversity of the ten nearest neighbours of 1,000 random phrases of a vocabulary.

    Nearest is the highest cosine; phrases have at least two words.

    Raises:
        EvaluationError: The vocabulary has no phrase, or ten words and phrases or fewer.
        MissingExtraError: rapidfuzz is not installed.
    """
    known = list(dict.fromkeys(vocabulary))
    phrases = [row for row, text in enumerate(known) if len(text.split()) > 1]
    if not phrases or len(known) <= NEAREST:
        raise EvaluationError(
            f"A vocabulary of {len(known)} words and phrases is too small: give more than "
            f"{NEAREST}, among them phrases of two words or more."
        )
    chosen = np.random.default_rng(SEED).permutation(phrases)[:PHRASES]
    vectors = encoder.encode(known)
    groups = []
    for start in range(0, len(chosen), _BLOCK):
        rows = chosen[start : start + _BLOCK]
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        for row, near in zip(rows, np.argpartition(-cosines, NEAREST)[:, :NEAREST], strict=True):
            groups.append((known[row], [known[k] for k in near]))
    return lexical_diversity(groups)


def _common(one: str, other: str) -> int:
    """Return the length of the longest common substring."""
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size
