"""Measuring topics against labels and rates, with LDA beside them, averaged over seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from slice_os.encoders import Encoder, EncoderLike, open_encoder
from slice_os.errors import EvaluationError, needs
from slice_os.lab.topics.modelling import (
    Progress,
    State,
    largest_topics,
    learn,
    prepare,
    read_passages,
)
from slice_os.lab.topics.vocabulary import LEAST, MOST, Prepared
from slice_os.types import Document, Float32, Plain

Ints = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Likeness = Callable[[Sequence[str]], npt.NDArray[Any]]
"""Gives how alike each of some items is to each, ``[n, n]``."""

SHOWN = 5
"""Items of a topic among which an intruder is sought (Chang et al., 2009)."""
DESCRIBED = 10
"""Items of a topic that count in NPMI and in what a passage is compared with."""
KNOWN = 50
"""An intruder is none of this many items nearest to the topic."""
DRAWS = 10
"""Intruders tried for each topic."""


def nmi(topics: Ints, labels: Ints) -> float:
    """Return the normalised mutual information 2 I(T; L) / (H(T) + H(L)), 0 to 1.

    Of the topic and the label of each document, int ``[n]``.
    """
    joint = _joint(topics, labels)
    joint /= joint.sum()
    by_topic, by_label = joint.sum(axis=1), joint.sum(axis=0)
    both = joint > 0
    shared = float((joint[both] * np.log(joint[both] / np.outer(by_topic, by_label)[both])).sum())
    entropies = _entropy(by_topic) + _entropy(by_label)
    return 2 * shared / entropies if entropies else 1.0


def purity(topics: Ints, labels: Ints) -> float:
    """Return the share of documents whose label is the most frequent one of their topic."""
    joint = _joint(topics, labels)
    return float(joint.max(axis=1).sum() / joint.sum())


def _joint(topics: Ints, labels: Ints) -> Floats:
    joint = np.zeros((int(topics.max()) + 1, int(labels.max()) + 1))
    np.add.at(joint, (topics, labels), 1)
    return joint


def _entropy(shares: Floats) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def cooccurrence(held: Mapping[str, Ints], count: int) -> Likeness:
    """Return a function that gives the NPMI of items with each other.

    Bouma (2009): ln(p(a, b) / (p(a) p(b))) / -ln p(a, b), -1 where no text holds both, 1 where none
    holds one of them alone. `held` are the rows of the texts that hold an item, of `count` texts.
    """
    sets = {item: frozenset(rows.tolist()) for item, rows in held.items()}

    def npmi(items: Sequence[str]) -> Floats:
        found = np.full((len(items), len(items)), -1.0)
        for a, one in enumerate(items):
            for b, other in enumerate(items[:a]):
                both = len(sets[one] & sets[other]) / count
                if both == 1:
                    found[a, b] = 1
                elif both:
                    apart = len(sets[one]) * len(sets[other]) / count**2
                    found[a, b] = np.log(both / apart) / -np.log(both)
                found[b, a] = found[a, b]
        return found

    return npmi


def coherence(described: Sequence[Sequence[str]], likeness: Likeness) -> float:
    """Return the mean likeness of two of a topic's items, over all pairs and topics."""
    pairs = [np.triu_indices(len(items), 1) for items in described]
    means = [
        likeness(items)[rows].mean()
        for items, rows in zip(described, pairs, strict=True)
        if len(items) > 1
    ]
    return float(np.mean(means))


def intrusion(described: Sequence[Sequence[str]], likeness: Likeness, seed: int) -> float:
    """Return how often an intruder among six items is the one least like the others.

    As people are asked in Wang et al. (2021), section 6.2.1: five of a topic's first items, and one
    of another topic's that is none of its first 50. Here the rater is a measure of likeness.
    `described` are the first items of each topic, best first.
    """
    rng = np.random.default_rng(seed)
    right = asked = 0
    for k, items in enumerate(described):
        known = set(items[:KNOWN])
        others = [item for j, more in enumerate(described) if j != k for item in more[:SHOWN]]
        strangers = sorted(set(others) - known)
        if not strangers or len(items) < SHOWN:
            continue
        for stranger in rng.choice(strangers, DRAWS).tolist():
            alike = likeness([*items[:SHOWN], stranger]).astype(np.float64)
            np.fill_diagonal(alike, 0)
            right += int(alike.sum(axis=1).argmin()) == SHOWN
            asked += 1
    return right / asked if asked else float("nan")


def relatedness(passages: Float32, topics: Ints, described: Float32, seed: int) -> float:
    """Return how often a passage is nearer to its topic's items than to another topic's.

    As people are asked in Wang et al. (2021), section 6.2.1: which of two topics, the passage's
    most probable one and a random other one, goes with it. Here a rater's vectors answer: unit
    vectors of `passages` ``[n, d]``, and sums of each topic's items', `described` ``[K, d]``.
    """
    count = len(described)
    shift = np.random.default_rng(seed).integers(1, count, len(passages))
    scores = passages @ described.T
    rows = np.arange(len(passages))
    return float((scores[rows, topics] > scores[rows, (topics + shift) % count]).mean())


SAMPLE = 2000
"""Passages whose relatedness is rated, at most."""
PASSES, ITERATIONS = 20, 200
"""Of LDA; the best of five settings that were tried on conversations of six domains."""


@dataclass(frozen=True, slots=True)
class TopicMeasures(Plain):
    """What was measured of one model, the means and standard deviations over the seeds.

    Attributes:
        model: Its name.
        k: How many topics were asked for.
        means: NaN of what could not be measured.
        deviations: The same, 0 of one seed.
    """

    model: str
    k: int
    means: Mapping[str, float]
    deviations: Mapping[str, float]


class Found(NamedTuple):
    """What a model found: the topic of each passage, and each topic's first items and words."""

    topics: Any
    items: list[list[str]]
    words: list[list[str]]


def evaluate_topics(
    corpus: Iterable[Document],
    k: Sequence[int] = (50,),
    *,
    label: str | None = None,
    pattern: str | None = None,
    encoder: EncoderLike = None,
    rater: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    seeds: int = 3,
    least: int = LEAST,
    models: Mapping[str, Callable[[Prepared, int, int], Found]] | None = None,
    progress: Progress | None = None,
) -> list[TopicMeasures]:
    """Measure topics as `slice_os.topics` finds and describes them, as published, and LDA's.

    Args:
        corpus: The documents.
        k: Numbers of topics.
        label: The metadata field that holds a document's label, or "id"; without, topics are not
            compared with labels.
        pattern: What of it is the label, a regular expression; all of it if None.
        encoder: What `slice_os.load_encoder` takes; of the topics.
        rater: The encoder that stands in for people; that of the topics if None, which favours
            them.
        device: Where encoders that are loaded here run.
        threads: Of these.
        seeds: How many seeds, from 0.
        least: How often a word or phrase has to occur.
        models: What finds topics, by name: of a corpus, so many, with a seed; `MODELS` if None.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        EvaluationError: A document has no label, all have the same, or `k` or `seeds` is too small.
        TrainingError: The text is too little.
        MissingExtraError: torch or gensim is not installed.
    """
    with needs("Measuring topics", "train,ranking"):
        import gensim  # noqa: F401
        import torch  # noqa: F401
    if seeds < 1 or not k or min(k) < 2:
        raise EvaluationError("Topics are measured of 1 seed or more, and 2 topics or more.")
    show = progress or (lambda name, done, count: None)
    models = MODELS if models is None else models
    labels: dict[str, str] = {}
    passages = read_passages(_labelled(corpus, label, pattern, labels))
    if label and len(set(labels.values())) < 2:
        raise EvaluationError(f"All documents have the same {label}: give labels that differ.")
    with open_encoder(encoder, device, threads) as loaded:
        prepared, _ = prepare(passages, loaded, None, least, MOST, show)
        with open_encoder(loaded if rater is None else rater, device, threads) as rating:
            rater_of_items = _Rater(prepared, rating)
        runs = [(number, name, seed) for number in k for name in models for seed in range(seeds)]
        measured: dict[tuple[int, str], list[dict[str, float]]] = {}
        for done, (number, name, seed) in enumerate(runs):
            show("models", done, len(runs))
            begun = time.monotonic()
            found = models[name](prepared, number, seed)
            seconds = {"seconds": time.monotonic() - begun}
            figures = {**_against(found, prepared, labels), **rater_of_items.measure(found, seed)}
            measured.setdefault((number, name), []).append(figures | seconds)
    return [
        TopicMeasures(
            name,
            number,
            {key: float(np.mean([figures[key] for figures in by_seed])) for key in by_seed[0]},
            {key: float(np.std([figures[key] for figures in by_seed])) for key in by_seed[0]},
        )
        for (number, name), by_seed in measured.items()
    ]


def _labelled(
    corpus: Iterable[Document], label: str | None, pattern: str | None, labels: dict[str, str]
) -> Iterable[Document]:
    """Yield the documents; note the label of each."""
    try:
        part = regex.compile(pattern) if pattern else None
    except regex.error as exc:
        raise EvaluationError(f"{pattern!r} is no regular expression ({exc}): correct it.") from exc
    for document in corpus:
        if label:
            value = str(document.id if label == "id" else document.metadata.get(label, ""))
            if part:
                match = part.search(value)
                value = match[0] if match else ""
            if not value:
                raise EvaluationError(
                    f"{document.id!r} has no label in {label}: name the field that holds one."
                )
            labels[document.id] = value
        yield document


def _against(found: Found, prepared: Prepared, labels: Mapping[str, str]) -> dict[str, float]:
    """Compare the documents' largest topics with their labels."""
    figures = {"topics": float(len(found.items)), "NMI": np.nan, "purity": np.nan}
    if labels:
        largest = largest_topics(prepared, found.topics, len(found.items))
        known = np.unique([labels[name] for name in largest], return_inverse=True)[1]
        topics = np.array([*largest.values()])
        figures |= {"NMI": nmi(topics, known), "purity": purity(topics, known)}
    return figures


class _Rater:
    """What stands in for people: texts that hold two items, and the vectors of an encoder."""

    def __init__(self, prepared: Prepared, rater: Encoder) -> None:
        self._prepared = prepared
        rng = np.random.default_rng(0)
        count = len(prepared.passages)
        self._sample = rng.choice(count, min(SAMPLE, count), replace=False)
        texts = [prepared.passages[row].text for row in self._sample.tolist()]
        self._passages = rater.encode(texts)
        self._items: Float32 = rater.encode(prepared.vocabulary.items)
        self._rows = {item: row for row, item in enumerate(prepared.vocabulary.items)}

    def measure(self, found: Found, seed: int) -> dict[str, float]:
        """Return NPMI of the topics' words, and what the rates say of their items."""
        items = {item for of_topic in (*found.items, *found.words) for item in of_topic}
        held = {item: self._prepared.held[self._rows[item]] for item in items}
        together = cooccurrence(held, len(self._prepared.passages))
        described = np.stack([self._vectors(ten[:DESCRIBED]).sum(axis=0) for ten in found.items])
        return {
            "NPMI": coherence([words[:DESCRIBED] for words in found.words], together),
            "intrusion, texts": intrusion(found.items, together, seed),
            "intrusion, rater": intrusion(found.items, self._likeness, seed),
            "relatedness, rater": relatedness(
                self._passages, found.topics[self._sample], described, seed
            )
            if len(described) > 1
            else np.nan,
        }

    def _vectors(self, items: Sequence[str]) -> Float32:
        return self._items[[self._rows[item] for item in items]]

    def _likeness(self, items: Sequence[str]) -> Float32:
        vectors = self._vectors(items)
        alike: Float32 = vectors @ vectors.T
        return alike


def _ours(
    prepared: Prepared, k: int, seed: int, *, nearest: bool = False, **settings: Any
) -> Found:
    from slice_os.lab.topics.describing import first_items, kept_topics, ratings
    from slice_os.lab.topics.learning import Learning

    settings_of_topics = Learning(k=k, seed=seed, **settings)
    matrix = learn(prepared, settings_of_topics, State(None, {}), lambda name, done, count: None)
    kept, topics = kept_topics(matrix.shares())
    scores, known = matrix.cosines(prepared.items)[:, kept], prepared.vocabulary
    if not nearest:
        scores = ratings(prepared, topics, scores)

    def first(count: int) -> list[list[str]]:
        return [
            [known.items[row] for row in first_items(known, column, KNOWN, nearest)]
            for column in scores[:count].T
        ]

    return Found(topics, first(len(known)), first(known.words))


def _lda(prepared: Prepared, k: int, seed: int) -> Found:
    """Blei et al. (2003) by gensim, of the vocabulary's words, in batches of all passages."""
    from gensim.models import LdaModel

    from slice_os.lab.topics.describing import kept_topics

    texts, known = prepared.texts, prepared.vocabulary
    words = known.items[: known.words]
    row_of = {word: row for row, word in enumerate(words)}
    ids = np.array([row_of.get(word, -1) for word in texts.words])[texts.ids]
    bags = []
    for k_text in range(len(texts.bounds) - 1):
        own = ids[texts.bounds[k_text] : texts.bounds[k_text + 1]]
        rows, counts = np.unique(own[own >= 0], return_counts=True)
        bags.append(list(zip(rows.tolist(), counts.tolist(), strict=True)))
    model = LdaModel(
        bags,
        num_topics=k,
        id2word=dict(enumerate(words)),
        passes=PASSES,
        iterations=ITERATIONS,
        chunksize=len(bags),
        random_state=seed,
    )
    shares, _ = model.inference(bags)
    kept, topics = kept_topics(shares)
    weights = model.get_topics()[kept]
    first = [
        [words[row] for row in np.argsort(-of_topic, kind="stable")[:KNOWN]] for of_topic in weights
    ]
    return Found(topics, first, first)


MODELS: dict[str, Callable[[Prepared, int, int], Found]] = {
    "topics": _ours,
    "topics, nearest phrases": partial(_ours, nearest=True),
    "as published": partial(_ours, nearest=True, centred=False, apart=False),
    "LDA": _lda,
}
"""Name -> what finds topics: of a corpus, so many, with a seed."""
