"""Ranking whole documents by the sentences that they share with a query.

Importing this loads nothing else; names are looked up when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slice_os.lazy import lazy_names

if TYPE_CHECKING:
    from slice_os.ranking.construction import DegreeSet, degree_set, mean_reciprocal_rank
    from slice_os.ranking.ranker import RankedDocument, SentencePair, SentenceRanker
    from slice_os.ranking.sentences import cut_sentences
    from slice_os.ranking.subsequence import MatchedPair, lcs_pairs, lcs_scores

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

__getattr__, __dir__ = lazy_names(__name__, __file__)
