"""What a topic says: phrases, sentences, passages with the words that matter, a place on a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.encoders import Encoder
from slice_os.lab.topics.learning import TopicMatrix
from slice_os.lab.topics.vocabulary import LONGEST, Prepared, Vocabulary, is_content
from slice_os.lab.train.contexts import sentences_in
from slice_os.spans import full_range, span_cosines, span_norms, spans_above, word_scores
from slice_os.text import phrasing
from slice_os.text.phrasing import CROSSING
from slice_os.types import Float32, Passage, Plain, Words

Ints = npt.NDArray[np.int64]

PHRASES, SENTENCES, EXAMPLES = 10, 3, 3
"""How many of each describe a topic."""
NEAREST = 2000
"""Items of the vocabulary among which those that say different things are chosen."""
SEARCHED = 10
"""Passages of a topic whose sentences may describe it."""
MARKS = 3
"""Spans marked in an example."""
WORTH = 0.8
"""The share of the best span's cosine that another span needs to be marked too."""
UNSAID = 1e-6
"""The weight of the cosine in what describes a topic: it orders what its passages do not say."""


@dataclass(frozen=True, slots=True)
class TopicPhrase(Plain):
    """A word or phrase of a topic: how often it occurs, and its cosine with the topic."""

    text: str
    count: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Example(Plain):
    """A passage of a topic: its share of the topic, and the spans of its text to mark."""

    document: str
    start: int
    end: int
    text: str
    share: float
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Topic(Plain):
    """A topic.

    Attributes:
        number: From 1: by size, the largest first; of random rows, the row's.
        passages: Of how many passages it is the largest topic.
        share: The mean share of all passages that it is.
        phrases: What it says, the best first.
        sentences: Sentences of its passages that say it best.
        examples: Passages that are most of this topic, of different documents.
        place: Where it is on a map of the topics, in two dimensions, each from -1 to 1.
    """

    number: int
    passages: int
    share: float
    phrases: tuple[TopicPhrase, ...]
    sentences: tuple[str, ...]
    examples: tuple[Example, ...]
    place: tuple[float, float]

    @property
    def name(self) -> str:
        """Its number and its first phrase."""
        return f"{self.number} {self.phrases[0].text}"


def describe(
    found: Prepared, matrix: TopicMatrix, encoder: Encoder, nearest: bool = False
) -> tuple[list[Topic], Ints]:
    """Return the topics that have a passage, the largest first, and the passages' topics.

    The latter are int64 ``[n]``: the place of each passage's largest topic. With `nearest`, topics
    are described by their nearest phrases, as published, whatever they repeat.
    """
    shares = matrix.shares()
    kept, topics_of = kept_topics(shares)
    shares, rows = shares[:, kept], matrix.rows[kept]
    cosines = matrix.cosines(found.items)[:, kept]
    scores = cosines if nearest else ratings(found, topics_of, cosines)
    phrases = [first_items(found.vocabulary, column, PHRASES, nearest) for column in scores.T]
    numbers = range(len(kept)) if matrix.apart else kept.tolist()
    best = []
    for k in range(len(kept)):
        own = np.flatnonzero(topics_of == k)
        best.append(own[np.argsort(-shares[own, k], kind="stable")])
    sentences = _sentences(found, matrix, encoder, best, rows)
    places = _places(rows)
    items, counts = found.vocabulary.items, found.vocabulary.counts
    topics = [
        Topic(
            numbers[k] + 1,
            len(best[k]),
            float(shares[:, k].mean()),
            tuple(
                TopicPhrase(items[row], int(counts[row]), float(cosines[row, k]))
                for row in phrases[k]
            ),
            tuple(sentences[k]),
            tuple(_examples(found.passages, shares[:, k], best[k], rows[k], encoder)),
            places[k],
        )
        for k in range(len(kept))
    ]
    return topics, topics_of


def kept_topics(shares: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the topics that are the largest of a passage, and which of these each passage has.

    `shares` ``[n, K]`` say how far each passage is of each topic. Topics are int64 ``[T]``, those
    of the most passages first, and passages have places in them, int64 ``[n]``.
    """
    largest = shares.argmax(axis=1)
    sizes = np.bincount(largest, minlength=shares.shape[1])
    kept = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    places = np.full(shares.shape[1], -1)
    places[kept] = np.arange(len(kept))
    return kept, places[largest]


def ratings(found: Prepared, topics_of: Ints, cosines: Float32) -> Float32:
    """Return how well each item describes each topic, float32 ``[V, T]``.

    By class TF-IDF, as in BERTopic (Grootendorst, 2022), of what a topic says more often than all
    texts do: (tf - s f) ln(1 + A / f), where the topic's passages say the item tf times, all
    passages f times, s is the topic's share of all words, and A the mean number of words and
    phrases of a topic. Times the root of the number of the item's words of content, since a phrase
    says more than a word of it and occurs less often. The cosine decides where that says nothing.

    Args:
        found: The passages and the vocabulary.
        topics_of: Each passage's topic, int ``[n]``.
        cosines: Of the items with the topics' rows, ``[V, T]``.
    """
    count = cosines.shape[1]
    said = np.stack([np.bincount(topics_of[rows], minlength=count) for rows in found.held])
    words = np.bincount(topics_of, np.diff(found.texts.bounds), count)
    everywhere = said.sum(axis=1, keepdims=True)
    more = np.maximum(said - everywhere * (words / words.sum()), 0)
    sizes = [sum(map(is_content, item.split(" "))) for item in found.vocabulary.items]
    weights = np.sqrt(sizes)[:, None] * np.log1p(said.sum() / count / everywhere)
    rated: Float32 = (more * weights + UNSAID * np.maximum(cosines, 0)).astype(np.float32)
    return rated


def first_items(
    vocabulary: Vocabulary, scores: Float32, count: int, alike: bool = False
) -> list[int]:
    """Return the rows of the items with the largest scores, the best first.

    Unless `alike`, one that shares half of its words with a better one, or scores nothing, is left
    out.
    """
    order = np.argsort(-scores, kind="stable")
    if alike:
        return [int(row) for row in order[:count]]
    chosen: list[int] = []
    words_of: list[frozenset[str]] = []
    for row in order[:NEAREST].tolist():
        if (chosen and scores[row] <= 0) or len(chosen) == count:
            break
        words = frozenset(filter(is_content, vocabulary.items[row].split(" ")))
        if all(2 * len(words & other) < len(words | other) for other in words_of):
            chosen.append(row)
            words_of.append(words)
    return chosen


def _places(rows: Float32) -> list[tuple[float, float]]:
    """Return the two principal components of the topics' directions, each scaled to -1 to 1."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    moved = unit - unit.mean(axis=0)
    left, sizes, _ = np.linalg.svd(moved, full_matrices=False)
    flat = np.zeros((len(rows), 2))
    axes = min(2, left.shape[1])
    flat[:, :axes] = left[:, :axes] * sizes[:axes]
    flat /= np.maximum(np.abs(flat).max(axis=0), 1e-9)
    return [(float(x), float(y)) for x, y in flat]


def _sentences(
    found: Prepared, matrix: TopicMatrix, encoder: Encoder, best: Sequence[Ints], rows: Float32
) -> list[list[str]]:
    """Return the sentences of each topic's best passages that are nearest to it.

    Wang et al. (2021), section A.4: sentences beside the phrases, encoded alone.
    """
    cut = []
    for passages in best:
        said = [sentences_in(found.passages[row].text) for row in passages[:SEARCHED]]
        cut.append([*dict.fromkeys(" ".join(each.split()) for each in chain.from_iterable(said))])
    places: dict[str, int] = {}
    for sentence in chain.from_iterable(cut):
        places.setdefault(sentence, len(places))
    vectors = matrix.prepared(encoder.encode(list(places)))
    chosen = []
    for sentences, row in zip(cut, rows, strict=True):
        scores = vectors[[places[sentence] for sentence in sentences]] @ row
        chosen.append([sentences[k] for k in np.argsort(-scores, kind="stable")[:SENTENCES]])
    return chosen


def _examples(
    passages: Sequence[Passage], shares: Float32, best: Ints, row: Float32, encoder: Encoder
) -> Iterator[Example]:
    chosen: dict[str, int] = {}
    for k in best.tolist():
        chosen.setdefault(passages[k].document, k)
        if len(chosen) == EXAMPLES:
            break
    shown = [passages[k] for k in chosen.values()]
    encoded = encoder.encode_words([passage.text for passage in shown])
    for k, passage, words in zip(chosen.values(), shown, encoded, strict=True):
        marks = tuple(_marks(passage.text, words, row))
        yield Example(
            passage.document, passage.start, passage.end, passage.text, float(shares[k]), marks
        )


def _marks(text: str, words: Words, row: Float32) -> list[tuple[int, int]]:
    """Return where the spans nearest to a topic are, those first in the text first.

    What all passages have in common adds the same to every span's cosine, nearly, and so changes
    no order: nothing is taken out of the words' vectors.
    """
    lengths = full_range(LONGEST)
    norms = span_norms(words.vectors, LONGEST)
    cosines = span_cosines(word_scores(words.vectors, row / np.linalg.norm(row)), norms, lengths)
    costs = phrasing(text, words.starts, words.ends, LONGEST).costs
    cosines[costs >= 2 * CROSSING] = -np.inf  # no mark goes on after the end of a sentence
    if not cosines.size or cosines.max() <= 0:
        return []
    spans = spans_above(cosines, lengths, float(cosines.max()) * WORTH, costs)[:MARKS]
    return sorted((int(words.starts[span.i]), int(words.ends[span.j - 1])) for span in spans)
