"""Baselines for the longest common subsequence, and weights of documents' lengths.

They are those of van Belle (2020), Length-agnostic document retrieval using sentence-level
embeddings, section 5; docs/ranking.md says where ours differ.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from slice_os.encoders.opposition import stem as english_stem
from slice_os.errors import QueryError, needs
from slice_os.lab.ranking.subsequence import (
    NOTHING,
    THRESHOLD,
    Stack,
    cosine_blocks,
)
from slice_os.text import K1, inverse_document_frequency, terms
from slice_os.types import Float32


def means(documents: Stack) -> Float32:
    """Return the mean of each document's sentence vectors, float32 ``[D, d]``, not of length 1."""
    sums: Float32 = np.add.reduceat(documents.vectors, documents.starts, axis=0)
    sums /= documents.counts[:, None]
    return sums


def maxima(documents: Stack) -> Float32:
    """Return the maximum of each document's sentence vectors in each dimension, ``[D, d]``."""
    most: Float32 = np.maximum.reduceat(documents.vectors, documents.starts, axis=0)
    return most


def best_pair_scores(query: Float32, documents: Stack) -> Float32:
    """Return the cosine of the pair of sentences that are most alike, float32 ``[D]``."""
    scores = np.empty(len(documents.counts), np.float32)
    for part, cosines in cosine_blocks(query, documents):
        lengths = documents.counts[part]
        starts = np.cumsum(lengths) - lengths
        np.maximum.reduceat(cosines.max(axis=0), starts, out=scores[part])
    return scores


def threshold_mean_scores(
    query: Float32, documents: Stack, threshold: float = THRESHOLD
) -> Float32:
    """Return the cosine of the query's mean with that of the sentences that any of its is like.

    A document's sentences count whose cosine with a sentence of the query reaches the threshold,
    in whatever order; -1 where none does. Float32 ``[D]``.
    """
    scores = np.empty(len(documents.counts), np.float32)
    mean = query.mean(axis=0)
    row = 0
    for part, cosines in cosine_blocks(query, documents):
        lengths = documents.counts[part]
        alike = cosines.max(axis=0) >= np.float32(threshold)
        vectors = documents.vectors[row : row + len(alike)] * alike[:, None]
        row += len(alike)
        sums = np.add.reduceat(vectors, np.cumsum(lengths) - lengths, axis=0)
        scores[part] = np.where(sums.any(axis=1), vector_scores(mean, sums), NOTHING)
    return scores


def vector_scores(query: Float32, documents: Float32) -> Float32:
    """Return the cosines of one vector ``[d]`` with those of documents ``[D, d]``, ``[D]``.

    They need not have length 1; a vector of zeros has the cosine 0.
    """
    norms = np.linalg.norm(documents, axis=1) * np.linalg.norm(query)
    scores = np.zeros(len(documents), np.float32)
    np.divide(documents @ query, norms, out=scores, where=norms > 0, casting="same_kind")
    return scores


class BM25:
    """BM25 with b = 0 over documents in memory: a document's length does not count.

    score(D) = sum over the query's terms t of qf(t) * idf(t) * tf / (tf + k1), the formula of
    `slice_os.text` with b = 0; qf and tf count t in the query and in D.

    Args:
        texts: The documents.
        stem: Count a term's English stem (Snowball's, also called Porter2) instead of the term.
        idf: Weigh terms by how few documents hold them; else each has the weight 1.
    """

    def __init__(self, texts: Sequence[str], *, stem: bool = True, idf: bool = True) -> None:
        self._stem = english_stem if stem else str
        self._idf = idf
        self._size = len(texts)
        postings: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(texts):
            for term, count in self._terms(text).items():
                postings.setdefault(term, []).append((number, count))
        self._postings = {term: np.array(rows, np.int64) for term, rows in postings.items()}

    def scores(self, query: str) -> Float32:
        """Return the score of each document, float32 ``[D]``; 0 where no term is shared."""
        scores = np.zeros(self._size)
        for term, asked in self._terms(query).items():
            if term in self._postings:
                numbers, counts = self._postings[term].T
                idf = inverse_document_frequency(self._size, len(numbers)) if self._idf else 1.0
                scores[numbers] += asked * idf * counts / (counts + K1)
        return scores.astype(np.float32)

    def _terms(self, text: str) -> Counter[str]:
        stemmed: Counter[str] = Counter()
        for term, count in terms(text).items():
            stemmed[self._stem(term)] += count
        return stemmed


class Doc2Vec:
    """Doc2vec, trained on texts: one vector for each text, float32 ``[dimension]``.

    Le and Mikolov (2014), Distributed Representations of Sentences and Documents, section 2.3
    (distributed bag of words), as gensim trains it, with van Belle's settings (section 5.2): 200
    epochs, a window of 3, 1,024 dimensions, a learning rate down to 1e-5, without stop words. The
    same texts and seed give the same vectors.

    Args:
        texts: What to train on: texts like those that are ranked, but others.
        seed: Of the first vectors and what is drawn.
        dimension: Of the vectors.
        epochs: Of the training, and of inferring a vector.

    Raises:
        MissingExtraError: It needs the extra ``ranking``.
        QueryError: The texts hold no word.
    """

    def __init__(
        self, texts: Iterable[str], seed: int = 0, *, dimension: int = 1024, epochs: int = 200
    ) -> None:
        with needs("Doc2vec", "ranking"):
            from gensim.models import doc2vec
        self._seed = seed
        tagged = [doc2vec.TaggedDocument(_content(text), [k]) for k, text in enumerate(texts)]
        if not any(text.words for text in tagged):
            raise QueryError("Doc2vec has no word to learn from: give texts to train it on.")
        # One worker and a hash of our own: threads and Python's salted hashes change the vectors.
        self._model = doc2vec.Doc2Vec(
            tagged,
            dm=0,
            vector_size=dimension,
            window=3,
            epochs=epochs,
            min_alpha=1e-5,
            min_count=1,
            workers=1,
            seed=seed,
            hashfxn=_hash,
        )

    def encode(self, texts: Iterable[str]) -> Float32:
        """Return the inferred vectors of texts, float32 ``[n, dimension]``; see `vector_scores`."""
        vectors = []
        for text in texts:
            self._model.random.seed(self._seed)
            vectors.append(self._model.infer_vector(_content(text)))
        return np.stack(vectors)


def _content(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and stop words."""
    from gensim.parsing.preprocessing import STOPWORDS
    from gensim.utils import simple_preprocess

    return [word for word in simple_preprocess(text) if word not in STOPWORDS]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
