"""Finding the topics of a corpus: reading, encoding, learning, describing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.encoders import EncoderLike, open_encoder
from slice_os.errors import TrainingError, needs
from slice_os.lab.topics.vocabulary import LEAST, MOST
from slice_os.types import Document, Plain

if TYPE_CHECKING:
    from slice_os.lab.topics.describing import Topic
    from slice_os.lab.topics.learning import Learning, TopicMatrix
    from slice_os.lab.topics.vectors import Prepared, Progress, State


@dataclass(frozen=True, slots=True)
class TopicReport(Plain):
    """What `topics` found.

    Attributes:
        k: How many topics were asked for; those of no passage are left out.
        encoder: Its name.
        passages: What topics were learnt from: of so many passages.
        words: With so many words.
        vocabulary: How many words and phrases topics could be described with.
        seconds: What it took.
        topics: The largest first.
        documents: Of each document the number of its largest topic.
    """

    k: int
    encoder: str
    passages: int
    words: int
    vocabulary: int
    seconds: float
    topics: tuple[Topic, ...]
    documents: Mapping[str, int]


def topics(
    corpus: Iterable[Document],
    k: int = 50,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    seed: int = 42,
    epochs: int = 20,
    least: int = LEAST,
    most: int = MOST,
    nearest: bool = False,
    output: str | Path | None = None,
    progress: Progress | None = None,
) -> TopicReport:
    """Find the topics of a corpus and the phrases that say what they are.

    Wang et al. (2021), section 6: topics are directions among the vectors of passages, and each is
    described with the phrases of the corpus that are near it (docs/topics.md). The same texts,
    encoder and seed give the same topics. All texts are held in memory.

    Args:
        corpus: The documents, such as `slice_os.read` gives.
        k: How many topics, 2 or more; each needs two different passages.
        encoder: What `slice_os.load_encoder` takes.
        device: Where an encoder that is loaded here runs.
        threads: Of an encoder that is loaded here.
        seed: Of what is random.
        epochs: How often each passage is learnt from.
        least: How often a word or phrase has to occur to describe topics.
        most: Phrases among which topics are described, the most frequent ones.
        nearest: Describe topics by the nearest phrases, as published.
        output: A folder in which vectors and rows are saved; the same call, or one of another `k`,
            goes on from there.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        CorpusError: There is no text.
        TrainingError: The text is too little or all the same, or `output` holds something else.
        EncoderError: The encoder is not usable.
        MissingExtraError: torch is not installed.
    """
    with needs("Finding topics", "train"):
        import torch  # noqa: F401
    from slice_os.lab.topics.describing import describe
    from slice_os.lab.topics.learning import Learning
    from slice_os.lab.topics.vectors import prepare, read_passages

    if k < 2 or epochs < 1 or least < 2 or most < 0:
        raise TrainingError(
            f"{k} topics, {epochs} epochs, words that occur {least} times and {most} phrases were "
            "asked for: give 2 topics, 1 epoch, 2 times and 0 phrases, or more."
        )
    begun = time.monotonic()
    told = progress or (lambda name, done, count: None)
    passages = read_passages(corpus)
    with open_encoder(encoder, device, threads) as loaded:
        folder = Path(output) if output is not None else None
        found, state = prepare(passages, loaded, folder, least, most, told)
        matrix = learn(found, Learning(k=k, seed=seed, epochs=epochs), state, told)
        described, of_passages = describe(found, matrix, loaded, nearest)
    return TopicReport(
        k,
        loaded.info.name,
        len(found.passages),
        len(found.texts.ids),
        len(found.vocabulary),
        time.monotonic() - begun,
        tuple(described),
        {
            document: place + 1
            for document, place in largest_topics(found, of_passages, len(described)).items()
        },
    )


def learn(found: Prepared, wanted: Learning, state: State, progress: Progress) -> TopicMatrix:
    """Return the topics' rows, learnt from the last saved epoch on."""
    from slice_os.lab.topics.learning import TopicMatrix
    from slice_os.lab.topics.vectors import SECONDS

    matrix = TopicMatrix(wanted, found.vectors)
    if saved := state.get("learning"):
        matrix.restore(saved)
    last, count = time.monotonic(), wanted.epochs * len(found.passages)
    begun = matrix.epoch
    while matrix.epoch < wanted.epochs:
        matrix.learn(lambda done: progress("topics", done, count))
        if time.monotonic() - last > SECONDS:
            state.save(learning=matrix.state())
            last = time.monotonic()
    if matrix.epoch > begun:
        state.save(learning=matrix.state())
    return matrix


def largest_topics(found: Prepared, of_passages: Any, count: int) -> dict[str, int]:
    """Return of each document the topic that most of its passages have, as a place from 0.

    Of topics of as many passages, the first.

    Args:
        found: The passages.
        of_passages: int ``[n]``, the topic of each.
        count: How many topics there are.
    """
    votes: dict[str, Any] = {}
    for passage, topic in zip(found.passages, of_passages.tolist(), strict=True):
        votes.setdefault(passage.document, np.zeros(count, np.int64))[topic] += 1
    return {document: int(some.argmax()) for document, some in votes.items()}
