"""Measuring topics against labels and rates, with LDA beside them, averaged over seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import regex

from slice_os.encoders import Encoder, EncoderLike, open_encoder
from slice_os.errors import EvaluationError, needs
from slice_os.lab.topics.measures import (
    DESCRIBED,
    KNOWN,
    coherence,
    cooccurrence,
    intrusion,
    nmi,
    purity,
    relatedness,
)
from slice_os.lab.topics.modelling import largest_topics, learn
from slice_os.lab.topics.vocabulary import LEAST, MOST, Vocabulary, occurrences
from slice_os.types import Document, Float32, Plain

if TYPE_CHECKING:
    from slice_os.lab.topics.vectors import Prepared, Progress

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
    from slice_os.lab.topics.vectors import prepare, read_passages

    if seeds < 1 or not k or min(k) < 2:
        raise EvaluationError("Topics are measured of 1 seed or more, and 2 topics or more.")
    told = progress or (lambda name, done, count: None)
    models = MODELS if models is None else models
    labels: dict[str, str] = {}
    passages = read_passages(_labelled(corpus, label, pattern, labels))
    if label and len(set(labels.values())) < 2:
        raise EvaluationError(f"All documents have the same {label}: give labels that differ.")
    with open_encoder(encoder, device, threads) as loaded:
        found, _ = prepare(passages, loaded, None, least, MOST, told)
        with open_encoder(loaded if rater is None else rater, device, threads) as rating:
            rated = _Rated(found, rating)
        runs = [(number, name, seed) for number in k for name in models for seed in range(seeds)]
        measured: dict[tuple[int, str], list[dict[str, float]]] = {}
        for done, (number, name, seed) in enumerate(runs):
            told("models", done, len(runs))
            begun = time.monotonic()
            one = models[name](found, number, seed)
            taken = time.monotonic() - begun
            figures = {**_against(one, found, labels), **rated.measure(one, seed)}
            measured.setdefault((number, name), []).append({**figures, "seconds": taken})
    return [
        TopicMeasures(
            name,
            number,
            {key: float(np.mean([one[key] for one in some])) for key in some[0]},
            {key: float(np.std([one[key] for one in some])) for key in some[0]},
        )
        for (number, name), some in measured.items()
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
            said = str(document.id if label == "id" else document.metadata.get(label, ""))
            found = part.search(said) if part else None
            said = (found[0] if found else "") if part else said
            if not said:
                raise EvaluationError(
                    f"{document.id!r} has no label in {label}: name the field that holds one."
                )
            labels[document.id] = said
        yield document


def _against(one: Found, found: Prepared, labels: Mapping[str, str]) -> dict[str, float]:
    """Compare the documents' largest topics with their labels."""
    figures = {"topics": float(len(one.items)), "NMI": np.nan, "purity": np.nan}
    if labels:
        largest = largest_topics(found, one.topics, len(one.items))
        known = np.unique([labels[name] for name in largest], return_inverse=True)[1]
        topics = np.array([*largest.values()])
        figures |= {"NMI": nmi(topics, known), "purity": purity(topics, known)}
    return figures


class _Rated:
    """What stands in for people: texts that hold two items, and the vectors of an encoder."""

    def __init__(self, found: Prepared, rater: Encoder) -> None:
        self._found = found
        rng = np.random.default_rng(0)
        count = len(found.passages)
        self._sample = rng.choice(count, min(SAMPLE, count), replace=False)
        self._passages = rater.encode([found.passages[row].text for row in self._sample.tolist()])
        self._items: Float32 = rater.encode(found.vocabulary.items)
        self._rows = {item: row for row, item in enumerate(found.vocabulary.items)}

    def measure(self, one: Found, seed: int) -> dict[str, float]:
        """Return NPMI of the topics' words, and what the rates say of their items."""
        every = [item for some in (*one.items, *one.words) for item in some]
        together = cooccurrence(occurrences(self._found.texts, every), len(self._found.passages))
        described = np.stack([self._vectors(some[:DESCRIBED]).sum(axis=0) for some in one.items])
        return {
            "NPMI": coherence([some[:DESCRIBED] for some in one.words], together),
            "intrusion, texts": intrusion(one.items, together, seed),
            "intrusion, rater": intrusion(one.items, self._likeness, seed),
            "relatedness, rater": relatedness(
                self._passages, one.topics[self._sample], described, seed
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


def _ours(found: Prepared, k: int, seed: int, *, nearest: bool = False, **settings: Any) -> Found:
    from slice_os.lab.topics.describing import first_items, kept_topics
    from slice_os.lab.topics.learning import Learning
    from slice_os.lab.topics.vectors import State

    wanted = Learning(k=k, seed=seed, **settings)
    matrix = learn(found, wanted, State(None, {}), lambda name, done, count: None)
    kept, topics = kept_topics(matrix.shares())
    cosines = matrix.cosines(found.items)[:, kept]
    known = found.vocabulary
    only = Vocabulary(known.items[: known.words], known.counts[: known.words])

    def first(some: Vocabulary) -> list[list[str]]:
        return [
            [some.items[row] for row in first_items(some, column, KNOWN, nearest=nearest)]
            for column in cosines[: len(some)].T
        ]

    return Found(topics, first(known), first(only))


def _published(found: Prepared, k: int, seed: int) -> Found:
    return _ours(found, k, seed, nearest=True, centred=False, apart=False)


def _lda(found: Prepared, k: int, seed: int) -> Found:
    """Blei et al. (2003) by gensim, of the vocabulary's words, in batches of all passages."""
    from gensim.models import LdaModel

    from slice_os.lab.topics.describing import kept_topics

    texts, known = found.texts, found.vocabulary
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
    first = [[words[row] for row in np.argsort(-one, kind="stable")[:KNOWN]] for one in weights]
    return Found(topics, first, first)


MODELS: dict[str, Callable[[Prepared, int, int], Found]] = {
    "topics": _ours,
    "topics, nearest phrases": lambda found, k, seed: _ours(found, k, seed, nearest=True),
    "as published": _published,
    "LDA": _lda,
}
"""Name -> what finds topics: of a corpus, so many, with a seed."""
