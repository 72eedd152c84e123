"""Ranking whole documents by the sentences that they share with a query.

Importing this loads nothing else; names are looked up when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slice_os.ranking.construction import DegreeSet, degree_set, mean_reciprocal_rank
    from slice_os.ranking.ranker import RankedDocument, SentencePair, SentenceRanker
    from slice_os.ranking.sentences import cut_sentences
    from slice_os.ranking.subsequence import MatchedPair, lcs_pairs, lcs_scores

_HOMES = {
    "DegreeSet": "construction",
    "MatchedPair": "subsequence",
    "RankedDocument": "ranker",
    "SentencePair": "ranker",
    "SentenceRanker": "ranker",
    "cut_sentences": "sentences",
    "degree_set": "construction",
    "lcs_pairs": "subsequence",
    "lcs_scores": "subsequence",
    "mean_reciprocal_rank": "construction",
}

__all__ = [
    "DegreeSet",
    "MatchedPair",
    "RankedDocument",
    "SentencePair",
    "SentenceRanker",
    "cut_sentences",
    "degree_set",
    "lcs_pairs",
    "lcs_scores",
    "mean_reciprocal_rank",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slice_os.ranking' has no attribute {name!r}")
    return getattr(import_module(f"slice_os.ranking.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
