"""Documents in memory, ranked by how their sentences compare with a query's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from slice_os.encoders import Encoder, EncoderLike, load_encoder
from slice_os.errors import QueryError, needs
from slice_os.lab.ranking import baselines
from slice_os.lab.ranking.baselines import BM25, Doc2Vec
from slice_os.lab.ranking.subsequence import (
    THRESHOLD,
    Score,
    Stack,
    check_threshold,
    lcs_pairs,
    lcs_scores,
)
from slice_os.text import unwrap
from slice_os.types import Document, Float32, Plain

DEFAULT = "lcs-sum"
"""By it the text that shares most comes first; docs/results.md has what others give."""
Text = str | Sequence[str]
"""A text, which is cut into sentences, or its sentences."""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence of the query, one of the document that matches it, and their cosine."""

    query: str
    document: str
    cosine: float


@dataclass(frozen=True, slots=True)
class RankedDocument(Plain):
    """A document, its score by the method that ranked it, and the sentences that match.

    `pairs` are those of the best matching of `slice_os.lab.ranking.subsequence`, whatever ranked.
    """

    id: str
    score: float
    pairs: tuple[SentencePair, ...]


@dataclass(frozen=True)
class _Query:
    sentences: list[str]
    encoder: Encoder

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    @cached_property
    def vectors(self) -> Float32:
        return self.encoder.encode(self.sentences)

    @cached_property
    def mean(self) -> Float32:
        mean: Float32 = self.vectors.mean(axis=0)
        return mean


class SentenceRanker:
    """Documents, encoded sentence by sentence, that are ranked for one query after the other.

    Their vectors are held in memory, float32: 77 MB for 1,000 documents of 50 sentences and 384
    dimensions. A sentence that occurs again is encoded once. What a baseline needs beyond that is
    made when it is first asked for.

    Args:
        encoder: What `slice_os.load_encoder` takes.
        documents: By id, or `Document` records, or texts alone, which then have their numbers from
            0 as ids. A text is a string or a list of its sentences.
        threshold: The least cosine of two sentences that match.
        language: The language whose rules cut texts into sentences, a code such as "en".
        doc2vec: The model of the method "doc2vec", trained on other texts; trained on the
            documents themselves if None.

    Raises:
        QueryError: There is no document, one has no sentence, two have one id, or the threshold is
            not above 0 and at most 1.
        MissingExtraError: A text has to be cut; it needs the extra ``ranking``.
        EncoderError: The encoder gave a vector that is not finite, or is closed.
    """

    def __init__(
        self,
        encoder: EncoderLike,
        documents: Mapping[str, Text] | Iterable[Document | Text],
        *,
        threshold: float = THRESHOLD,
        language: str = "en",
        doc2vec: Doc2Vec | None = None,
    ) -> None:
        check_threshold(threshold)
        if isinstance(documents, str):
            raise QueryError("The documents to rank are one text: give a list of them.")
        self._encoder = load_encoder(encoder)
        self._threshold = threshold
        self._language = language
        named = list(_named(documents))
        if not named:
            raise QueryError("There is no document to rank: give at least one.")
        self.ids = [name for name, _ in named]
        if len(set(self.ids)) < len(self.ids):
            raise QueryError("Two documents have the same id: give each its own.")
        self._sentences = [self._cut(f"Document {name!r}", text) for name, text in named]
        places: dict[str, int] = {}
        rows = [places.setdefault(s, len(places)) for text in self._sentences for s in text]
        counts = np.array([len(text) for text in self._sentences], np.int64)
        self._stack = Stack(self._encoder.encode(list(places))[rows], counts)
        self._doc2vec = doc2vec
        self._methods: dict[str, Callable[[_Query], Float32]] = {
            "lcs": partial(self._lcs, score="cosine"),
            "lcs-sum": partial(self._lcs, score="sum"),
            "lcs-count": partial(self._lcs, score="count"),
            "threshold-mean": lambda query: baselines.threshold_mean_scores(
                query.vectors, self._stack, self._threshold
            ),
            "average": lambda query: baselines.vector_scores(query.mean, self._means),
            "maximum": lambda query: baselines.vector_scores(
                query.vectors.max(axis=0), self._maxima
            ),
            "best-pair": lambda query: baselines.best_pair_scores(query.vectors, self._stack),
            # The mean over pairs of q_i . d_j is the product of the two means: no pair is formed.
            "all-pairs": lambda query: self._means @ query.mean,
            "vector": self._vector,
            "doc2vec": self._by_doc2vec,
            "bm25": partial(self._bm25, stem=True, idf=True),
            "bm25-no-stem": partial(self._bm25, stem=False, idf=True),
            "bm25-no-idf": partial(self._bm25, stem=True, idf=False),
            "bm25-no-stem-no-idf": partial(self._bm25, stem=False, idf=False),
        }
        self._postings: dict[tuple[bool, bool], BM25] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that rank."""
        return tuple(self._methods)

    def rank(
        self, query: Text, method: str = DEFAULT, size: int = 10, *, length_weighted: bool = False
    ) -> list[RankedDocument]:
        """Return the best `size` documents for a query, best first, equal ones in their order.

        Documents that score 0 or less share nothing with the query and are left out.

        Args:
            query: A text, or its sentences.
            method: One of `methods`; docs/ranking.md has their formulas.
            size: At most how many.
            length_weighted: Multiply scores by n / m, the numbers of sentences of document and
                query: as published, a document five times as long scores five times as much.

        Raises:
            QueryError: The query has no sentence, the method is unknown, or the size is below 1.
            MissingExtraError: The method, or cutting the query, needs the extra ``ranking``.
            EncoderError: The encoder gave a vector that is not finite, or is closed.
        """
        if size < 1:
            raise QueryError(f"{size} documents cannot be shown: ask for at least 1.")
        cut = _Query(self._cut("The query", query), self._encoder)
        scores = self._scored(cut, method, length_weighted)
        best = np.argsort(-evened(scores), kind="stable")[:size]
        return [
            RankedDocument(self.ids[k], float(scores[k]), self._pairs(cut, k))
            for k in best.tolist()
            if scores[k] > 0
        ]

    def scores(
        self, query: Text, method: str = DEFAULT, *, length_weighted: bool = False
    ) -> Float32:
        """Return all documents' scores in the order of `ids`, float32 ``[D]``; see `rank`."""
        cut = _Query(self._cut("The query", query), self._encoder)
        return self._scored(cut, method, length_weighted)

    def _cut(self, name: str, text: Text) -> list[str]:
        cut = cut_sentences(text, self._language) if isinstance(text, str) else text
        sentences = [sentence for sentence in cut if sentence.strip()]
        if not sentences:
            raise QueryError(f"{name} holds no sentence: leave it out, or write at least one.")
        return sentences

    def _scored(self, query: _Query, method: str, length_weighted: bool) -> Float32:
        if method not in self._methods:
            raise QueryError(
                f"There is no method {method!r}: use one of {', '.join(self.methods)}."
            )
        scores = self._methods[method](query)
        if length_weighted:
            weights = self._stack.counts / len(query.sentences)
            scores = scores * weights.astype(np.float32)
        return scores

    def _pairs(self, query: _Query, number: int) -> tuple[SentencePair, ...]:
        sentences = self._sentences[number]
        pairs = lcs_pairs(query.vectors, self._stack.document(number), self._threshold)
        return tuple(
            SentencePair(query.sentences[pair.query], sentences[pair.document], pair.cosine)
            for pair in pairs
        )

    def _lcs(self, query: _Query, score: Score) -> Float32:
        return lcs_scores(query.vectors, self._stack, self._threshold, score=score)

    def _vector(self, query: _Query) -> Float32:
        return baselines.vector_scores(self._encoder.encode([query.text])[0], self._whole)

    def _by_doc2vec(self, query: _Query) -> Float32:
        model, vectors = self._doc2vec_vectors
        return baselines.vector_scores(model.encode([query.text])[0], vectors)

    def _bm25(self, query: _Query, stem: bool, idf: bool) -> Float32:
        if (stem, idf) not in self._postings:
            self._postings[stem, idf] = BM25(self._texts, stem=stem, idf=idf)
        return self._postings[stem, idf].scores(query.text)

    @property
    def _texts(self) -> list[str]:
        return [" ".join(sentences) for sentences in self._sentences]

    @cached_property
    def _means(self) -> Float32:
        return baselines.means(self._stack)

    @cached_property
    def _maxima(self) -> Float32:
        return baselines.maxima(self._stack)

    @cached_property
    def _whole(self) -> Float32:
        return self._encoder.encode(self._texts)

    @cached_property
    def _doc2vec_vectors(self) -> tuple[Doc2Vec, Float32]:
        model = self._doc2vec or Doc2Vec(self._texts)
        return model, model.encode(self._texts)


def _named(
    documents: Mapping[str, Text] | Iterable[Document | Text],
) -> Iterable[tuple[str, Text]]:
    if isinstance(documents, Mapping):
        yield from documents.items()
        return
    for number, document in enumerate(documents):
        if isinstance(document, Document):
            yield document.id, document.text
        else:
            yield str(number), document


def evened(scores: Float32) -> Float32:
    """Return scores to rank by: of equal rows a matrix product may differ in the last bit."""
    return np.round(scores / max(float(np.abs(scores).max()), 1e-9), 6)


def cut_sentences(text: str, language: str = "en") -> list[str]:
    """Return the sentences of `text`, without the space around them.

    The cutting is sentencex's (Wikimedia's, for some 300 languages). Line ends end a sentence too,
    unless they only come from hard wrapping. (The splitter of passages knows
    English alone, and where in doubt lets two passages share words.)

    Raises:
        MissingExtraError: It needs the extra ``ranking``.
    """
    with needs("Cutting texts into sentences", "ranking"):
        from sentencex import segment
    lines = unwrap(text).splitlines()
    cut = (sentence.strip() for line in lines for sentence in segment(language, line))
    return [sentence for sentence in cut if sentence]
