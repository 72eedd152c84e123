"""Baselines for the longest common subsequence, and weights of documents' lengths.

They are those of van Belle (2020), Length-agnostic document retrieval using sentence-level
embeddings, section 5; docs/ranking.md says where ours differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.ranking.stack import BLOCK_BYTES, Int64, Stack, check_query, cosine_blocks
from slice_os.records import Float32


def means(documents: Stack) -> Float32:
    """Return the mean of each document's sentence vectors, float32 ``[D, d]``, not of length 1."""
    sums: Float32 = np.add.reduceat(documents.vectors, documents.starts, axis=0)
    sums /= documents.counts[:, None]
    return sums


def average_scores(query: npt.NDArray[Any], means: Float32) -> Float32:
    """Return the cosine of the query's mean vector with each of `means` ``[D, d]``, ``[D]``."""
    return vector_scores(check_query(query, means.shape[1]).mean(axis=0), means)


def all_pairs_scores(query: npt.NDArray[Any], means: Float32) -> Float32:
    """Return the mean cosine over all pairs of a query's and a document's sentence, ``[D]``.

    No pair is formed: the mean over pairs of q_i . d_j is the product of the two `means`.
    """
    found: Float32 = means @ check_query(query, means.shape[1]).mean(axis=0)
    return found


def maximum_scores(
    query: npt.NDArray[Any], documents: Stack, block_bytes: int = BLOCK_BYTES
) -> Float32:
    """Return the cosine of the pair of sentences that are most alike, float32 ``[D]``."""
    scores = np.empty(len(documents.counts), np.float32)
    for part, cosines in cosine_blocks(query, documents, block_bytes):
        lengths = documents.counts[part]
        starts = np.cumsum(lengths) - lengths
        np.maximum.reduceat(cosines.max(axis=0), starts, out=scores[part])
    return scores


def vector_scores(query: npt.NDArray[Any], documents: npt.NDArray[Any]) -> Float32:
    """Return the cosines of one vector ``[d]`` with those of documents ``[D, d]``, ``[D]``.

    They need not have length 1; a vector of zeros has the cosine 0.
    """
    vector = check_query(query[None], documents.shape[1])[0]
    norms = np.linalg.norm(documents, axis=1) * np.linalg.norm(vector)
    scores = np.zeros(len(documents), np.float32)
    np.divide(documents @ vector, norms, out=scores, where=norms > 0, casting="same_kind")
    return scores


def length_weights(sentences: int, counts: Int64) -> Float32:
    """Return ln(1 + min(m, n)) / ln(1 + max(m, n)) for m sentences and n = `counts`, ``[D]``.

    1 for documents as long as the query, 0.37 for 50 sentences and a query of 3.
    """
    shorter, longer = np.minimum(counts, sentences), np.maximum(counts, sentences)
    weights: Float32 = (np.log1p(shorter) / np.log1p(longer)).astype(np.float32)
    return weights


def weight_lengths(scores: Float32, weights: Float32) -> Float32:
    """Return `scores` times `weights`; what is negative stays, or a weight would raise it."""
    return np.where(scores > 0, scores * weights, scores)
