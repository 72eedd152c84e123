"""Scorers: ways to score a passage for a query, which phrase-in-context sets compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import regex

from slice_os.encoders import Encoder, StandaloneVectors
from slice_os.encoders.judge import Judge, Placed
from slice_os.spans import (
    MAX_WORDS,
    VERBATIM,
    EncodedQuery,
    PackedPassage,
    ScoredSpan,
    SpanTables,
    best_span,
    degree,
    enumerate_spans,
    full_range,
    length_window,
    prepare_queries,
    span_cosines,
    span_norms,
    top_spans,
    word_scores,
)
from slice_os.text import K1, B, count_words, inverse_document_frequency, placed, terms
from slice_os.text.normal_form import same_words
from slice_os.types import Float32, Int32, Passage, Words

JUDGED = "judged"
"""The scorer that asks a judge."""
BLOCK = 32
"""Passages whose n-grams are encoded at once: memory, against texts that occur twice."""


class ShownSpan(NamedTuple):
    """Characters `start` to `end` of a passage, their degree, and whether they are broken.

    That is, whether they cross the end of a sentence or begin or end on a dangling word.
    """

    start: int
    end: int
    degree: float
    broken: bool


class Encoded:
    """Queries and passages, whose vectors are computed once, when they are first needed."""

    def __init__(
        self,
        encoder: Encoder,
        queries: Sequence[str],
        passages: Sequence[str],
        targets: Sequence[str],
        progress: Callable[[str, int, int], None],
        *,
        max_words: int = MAX_WORDS,
        judge: Judge | None = None,
    ) -> None:
        """Take pairs of a query and a passage.

        Args:
            encoder: What encodes both.
            queries: The queries.
            passages: The passages, one for each query.
            targets: The words of each passage that paraphrase its query.
            progress: Called with a scorer's name, how much is done, and of how much.
            max_words: The longest span.
            judge: What `judged` asks.
        """
        self.judge = judge
        self.encoder = encoder
        self.queries = queries
        self.passages = passages
        self.progress = progress
        self.lengths = full_range(max_words)
        self._targets = targets

    @cached_property
    def places(self) -> list[tuple[int, int] | None]:
        """Where each target begins and ends in its passage; None if it is not found."""
        return [find_words(*one) for one in zip(self.passages, self._targets, strict=True)]

    @cached_property
    def targets(self) -> list[str]:
        """The targets, as they stand in their passages."""
        return [
            passage[slice(*place)] if place else target
            for passage, target, place in zip(
                self.passages, self._targets, self.places, strict=True
            )
        ]

    @cached_property
    def asked(self) -> Float32:
        """The queries' unit vectors, float32 ``[n, d]``."""
        rows = {query: row for row, query in enumerate(dict.fromkeys(self.queries))}
        return self.encoder.encode(list(rows))[[rows[query] for query in self.queries]]

    @cached_property
    def words(self) -> list[Words]:
        """The passages' words with their vectors."""
        of_passage: dict[str, Words] = {}
        unique = list(dict.fromkeys(self.passages))
        for passage, words in zip(unique, self.encoder.encode_words(unique), strict=True):
            of_passage[passage] = words
            self.progress("single pass", len(of_passage), len(unique))
        return [of_passage[passage] for passage in self.passages]

    def cosines(self, row: int, lengths: range) -> Float32:
        """Return the cosines ``[lengths, N]`` of a passage's spans with its query."""
        vectors = self.words[row].vectors
        scores = word_scores(vectors, self.asked[row])
        return span_cosines(scores, span_norms(vectors, self.lengths[-1]), lengths)

    @cached_property
    def asking(self) -> list[EncodedQuery]:
        """What the passages' spans are compared with, as in a search."""
        encoder = self.encoder
        rows = {query: row for row, query in enumerate(self.queries)}  # each query once
        vectors = self.asked[list(rows.values())]
        lengths = [length_window(max(1, count_words(query)), self.lengths[-1]) for query in rows]
        encoded = prepare_queries(encoder, list(rows), vectors, lengths)
        of_query = dict(zip(rows, encoded, strict=True))
        return [of_query[query] for query in self.queries]

    def best(self, row: int, shown: bool = False) -> tuple[SpanTables, ScoredSpan, float] | None:
        """Return the span of a passage that is shown, its cosine, and that in its context.

        That without rescoring; None of a passage without words. With `shown` the one that is
        rescored, which a person would rather mark.
        """
        words, question = self.words[row], self.asking[row]
        if not len(words):
            return None
        passage = Passage("", 0, 0, len(self.passages[row]), self.passages[row])
        head = self.encoder.head
        packed = PackedPassage.pack(words, self.lengths[-1], passage, head)
        tables = SpanTables(packed, passage.text)
        own = tables.cosines(question)
        values = question.weights.combine(own.context, own.head)
        costs = tables.costs.copy() if shown else np.zeros_like(tables.costs)
        for i, j in tables.verbatim(question):
            values[j - i - 1, i], costs[j - i - 1, i] = 1, -VERBATIM
        best = top_spans(values, tables.lengths, 1, costs)
        if not best:
            return None
        return tables, best[0], float(own.context[best[0].j - best[0].i - 1, best[0].i])

    @cached_property
    def shown(self) -> list[ShownSpan]:
        """The span that a search shows of each passage: the best, encoded alone."""
        spans = [self.best(row, shown=True) for row in range(len(self.queries))]
        alone = StandaloneVectors(self.encoder)
        asked = alone.encode([question.text for question in self.asking]).astype(np.float64)
        texts = [span[0].span_text(span[1][:2]) if span else "" for span in spans]
        vectors = alone.encode(texts)
        shown = []
        for row, span in enumerate(spans):
            if span is None:
                shown.append(ShownSpan(0, 0, 0.0, False))
                continue
            tables, (i, j, cosine), context = span
            if not same_words(texts[row], self.asking[row].text):
                by_words = np.float64(min(float(asked[row] @ vectors[row]), 1.0))
                weights = self.asking[row].weights
                cosine = float(weights.combine(np.float64(context), by_words))
            start, end = int(tables.packed.starts[i]), int(tables.packed.ends[j - 1])
            broken = bool(tables.phrasing.costs[j - i - 1, i] > 0)
            shown.append(ShownSpan(start, end, degree(cosine), broken))
        return shown

    def text(self, row: int, i: int, j: int) -> str:
        """Return words i to j (half-open) of a passage as they stand there."""
        words = self.words[row]
        return self.passages[row][words.starts[i] : words.ends[j - 1]]


def full_context(encoded: Encoded) -> list[float]:
    """Score the whole passage, encoded as one text."""
    vectors = encoded.encoder.encode(list(encoded.passages))
    return _dots(vectors, encoded.asked)


def single_pass(encoded: Encoded) -> list[float]:
    """Score the best span of 1 to 20 words, or `max_words`, the passage encoded once.

    Orbach et al. (2023), section 3.1.
    """
    lengths, scores = encoded.lengths, []
    for row, words in enumerate(encoded.words):
        cosine = best_span(encoded.cosines(row, lengths), lengths).cosine if len(words) else -1.0
        scores.append(max(cosine, -1.0))  # -inf, where no span points anywhere
    return scores


def window(encoded: Encoded) -> list[float]:
    """Score the best span of a length near the query's, as a search without rescoring does."""
    spans = (encoded.best(row) for row in range(len(encoded.queries)))
    return [span[1].cosine if span else -1.0 for span in spans]


def rescored(encoded: Encoded) -> list[float]:
    """Score the span that a search shows: the best of the window, encoded alone."""
    return [span.degree for span in encoded.shown]


def judged(encoded: Encoded) -> list[float]:
    """Score the span that a search shows as the judge does, which reads it with the query."""
    judge, shown = cast(Judge, encoded.judge), encoded.shown
    pairs = [
        (query, Placed(*placed(passage, words.starts, words.ends, span.start, span.end)))
        if span.end
        else (query, Placed(""))
        for query, passage, words, span in zip(
            encoded.queries, encoded.passages, encoded.words, shown, strict=True
        )
    ]
    degrees: list[float] = judge.degrees(pairs, np.array(rescored(encoded), np.float32)).tolist()
    return degrees


def n_grams(encoded: Encoded) -> list[float]:
    """Score the best of all spans of 1 to 20 words, each encoded alone (hours without a GPU)."""
    best = np.full(len(encoded.queries), -1.0)
    for start in range(0, len(best), BLOCK):
        block: dict[str, set[int]] = {}  # the text of each span -> whose it is
        for row in range(start, min(start + BLOCK, len(best))):
            for i, j in _spans(encoded, row).tolist():
                block.setdefault(encoded.text(row, i, j), set()).add(row)
        # Sorted by length, so that a batch pads little.
        order = sorted(block, key=len)
        for first in range(0, len(order), 4096):
            texts = order[first : first + 4096]
            for text, vector in zip(texts, encoded.encoder.encode(texts), strict=True):
                for row in block[text]:
                    best[row] = max(best[row], float(encoded.asked[row] @ vector))
        encoded.progress("n-grams", min(start + BLOCK, len(best)), len(best))
    scores: list[float] = best.tolist()
    return scores


def start_and_end(encoded: Encoded) -> list[float]:
    """Score the best span by the vectors of its first and its last token, joined.

    So does DensePhrases: Lee et al. (2021), Learning Dense Representations of Phrases at Scale,
    section 3.2. The query is taken likewise.
    """
    scores = []
    queries = encoded.encoder.encode_tokens(encoded.queries)
    passages = encoded.encoder.encode_tokens(encoded.passages)
    for row, (query, tokens) in enumerate(zip(queries, passages, strict=True)):
        if not len(query) or not len(tokens):
            scores.append(-1.0)
            continue
        begins = encoded.words[row].starts
        first = tokens.starts.searchsorted(begins)
        last = tokens.starts.searchsorted(begins, side="right") - 1
        heads, tails = tokens.vectors @ query.vectors[0], tokens.vectors @ query.vectors[-1]
        squares = np.einsum("nd,nd->n", tokens.vectors, tokens.vectors)
        size = np.sqrt((query.vectors[[0, -1]] ** 2).sum())
        spans = _spans(encoded, row)
        i, j = first[spans[:, 0]], last[spans[:, 1] - 1]
        norms = np.maximum(np.sqrt(squares[i] + squares[j]) * size, 1e-12)
        scores.append(float(((heads[i] + tails[j]) / norms).max()))
    return scores


def target_in_context(encoded: Encoded) -> list[float]:
    """Score the target's own span, the passage encoded once: the upper limit of one pass.

    A target that is not found in its passage has no score, NaN.
    """
    scores = []
    for row, place in enumerate(encoded.places):
        if place is None:
            scores.append(float("nan"))
            continue
        vector = vector_between(encoded.words[row], *place)
        norm = float(np.linalg.norm(vector))
        scores.append(float(vector @ encoded.asked[row]) / norm if norm else -1.0)
    return scores


def target_alone(encoded: Encoded) -> list[float]:
    """Score the target encoded alone: the upper limit of the encoder."""
    return _dots(encoded.encoder.encode(encoded.targets), encoded.asked)


def bm25(encoded: Encoded) -> list[float]:
    """Score the passage by BM25 as searches have it, all passages being the collection."""
    return _bm25(encoded, terms, K1, B, inverse_document_frequency)


def okapi(encoded: Encoded) -> list[float]:
    """Score the passage by BM25 as SLICE's table 1 has it (Orbach et al., 2023, section 5).

    That is rank-bm25's Okapi: words are cut by `str.split`, the passages are the collection, k1 is
    1.5, b .75, and idf ln(N - n + 0.5) - ln(n + 0.5); a negative one becomes a quarter of the mean.
    """
    scores = _bm25(
        encoded,
        str.split,
        1.5,
        0.75,
        lambda n, held: math.log(n - held + 0.5) - math.log(held + 0.5),
    )
    return [(1.5 + 1) * score for score in scores]


def _bm25(
    encoded: Encoded,
    cut: Callable[[str], Iterable[str]],
    k1: float,
    b: float,
    idf_of: Callable[[int, int], float],
) -> list[float]:
    passages = [Counter(cut(text)) for text in encoded.passages]
    mean = sum(passage.total() for passage in passages) / len(passages)
    holding = Counter(word for passage in passages for word in passage)
    idf = {word: idf_of(len(passages), count) for word, count in holding.items()}
    floor = 0.25 * sum(idf.values()) / max(1, len(idf))
    return [
        sum(
            (idf[word] if idf[word] >= 0 else floor)
            * passage[word]
            / (passage[word] + k1 * (1 - b + b * passage.total() / mean))
            for word in cut(query)
            if word in passage
        )
        for query, passage in zip(encoded.queries, passages, strict=True)
    ]


SCORERS: Mapping[str, Callable[[Encoded], list[float]]] = {
    "bm25": bm25,
    "okapi": okapi,
    "full context": full_context,
    "start and end": start_and_end,
    "single pass": single_pass,
    "window": window,
    "rescored": rescored,
    JUDGED: judged,
    "n-grams": n_grams,
    "target in context": target_in_context,
    "target alone": target_alone,
}
LEXICAL = ("bm25", "okapi")
"""The scorers that need no encoder."""
DEFAULT_SCORERS = tuple(name for name in SCORERS if name not in (JUDGED, "n-grams"))


def find_words(passage: str, words: str) -> tuple[int, int] | None:
    """Return where `words` begin and end in a passage; None if they are not in it.

    Case, spaces and punctuation at the edges of `words` do not count. Whole words come first: "art"
    is found in "party" only if it does not stand alone anywhere.
    """
    bare = regex.sub(r"^[\p{P}\s]+|[\p{P}\s]+$", "", words)
    for target in filter(None, (words.strip(), bare)):
        escaped = r"\s+".join(map(regex.escape, target.split()))
        whole = rf"(?<!\w){escaped}(?!\w)"
        for pattern, flags in ((whole, 0), (whole, regex.IGNORECASE), (escaped, regex.IGNORECASE)):
            if match := regex.search(pattern, passage, flags):
                return match.span()
    return None


def vector_between(words: Words, start: int, end: int) -> Float32:
    """Return the sum, ``[d]``, of the words that overlap characters `start` to `end`."""
    i = int(words.ends.searchsorted(start, side="right"))
    j = int(words.starts.searchsorted(end, side="left"))
    total: Float32 = words.vectors[i:j].sum(axis=0)
    return total


def _spans(encoded: Encoded, row: int) -> Int32:
    return enumerate_spans(len(encoded.words[row]), max_words=encoded.lengths[-1])


def _dots(first: Float32, second: Float32) -> list[float]:
    dots: list[float] = np.einsum("nd,nd->n", first, second).tolist()
    return dots
