"""Finding the topics of a corpus: reading, encoding, learning, describing."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.encoders import Encoder, EncoderLike, open_encoder
from slice_os.errors import CorpusError, TrainingError, needs
from slice_os.lab.topics.vocabulary import (
    LEAST,
    MOST,
    Prepared,
    mine_vocabulary,
    occurrences,
    read_texts,
)
from slice_os.lab.train.run import RunFolder
from slice_os.text import split
from slice_os.types import Document, Float32, Passage, Plain

if TYPE_CHECKING:
    from slice_os.lab.topics.describing import Topic
    from slice_os.lab.topics.learning import Learning, TopicMatrix


SECONDS = 60
"""Between states that an interrupted run goes on from."""
BLOCK = 512
"""Texts that are encoded together."""

Progress = Callable[[str, int, int], object]
"""Told what is done, how much of it, and of how much."""


class State:
    """What is saved of a run, in its folder if it has one."""

    def __init__(self, folder: Path | None, about: dict[str, Any]) -> None:
        """Open or make the folder; see `RunFolder`."""
        self._run = RunFolder(folder, about) if folder else None
        self._state: dict[str, Any] = (self._run and self._run.load()) or {}

    def get(self, name: str) -> Any:
        """Return what was saved under a name, or None."""
        return self._state.get(name)

    def save(self, **values: Any) -> None:
        """Save values beside those of other names."""
        self._state |= values
        if self._run:
            self._run.save(self._state)


def read_passages(corpus: Iterable[Document]) -> list[Passage]:
    """Return the passages of documents."""
    passages = [passage for document in corpus for passage in split(document)]
    if not passages:
        raise CorpusError("There is no text to find topics in: give files that hold some.")
    return passages


def prepare(
    passages: Sequence[Passage],
    encoder: Encoder,
    folder: Path | None,
    least: int,
    most: int,
    progress: Progress,
) -> tuple[Prepared, State]:
    """Mine the vocabulary, of `most` phrases that occur `least` times, and encode it and passages.

    Vectors are saved in the folder now and then, and at an interrupt.
    """
    texts = read_texts(passage.text for passage in passages)
    vocabulary = mine_vocabulary(texts, least, most)
    if not vocabulary.items:
        raise TrainingError(
            f"No word of the text, function words aside, occurs {least} times, so there is nothing "
            "to describe topics with",
            hint="give more text, or a smaller --least.",
        )
    info = encoder.info
    about = {
        "texts": _hash(part for passage in passages for part in (passage.document, passage.text)),
        "vocabulary": _hash(vocabulary.items),
        "encoder": [info.weights_hash, info.precision, info.dimension],
    }
    state = State(folder, about)
    items = _encode(encoder, vocabulary.items, "phrases", state, progress)
    vectors = _encode(encoder, [passage.text for passage in passages], "passages", state, progress)
    known = np.flatnonzero(vectors.any(axis=1))
    if not len(known):
        raise TrainingError(
            f"The encoder {encoder.info.name} knows no word of the text",
            hint="give another --encoder.",
        )
    if len(known) < len(passages):
        passages = [passages[k] for k in known.tolist()]
        texts, vectors = read_texts(passage.text for passage in passages), vectors[known]
    held = [*occurrences(texts, vocabulary.items).values()]
    return Prepared(list(passages), texts, vocabulary, vectors, items, held), state


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()


def _encode(
    encoder: Encoder, texts: Sequence[str], name: str, state: State, progress: Progress
) -> Float32:
    """Return the unit vectors of texts, ``[n, d]``; those saved are not encoded again."""
    import torch

    vectors = np.zeros((len(texts), encoder.info.dimension), np.float32)
    before = state.get(name)
    done = 0 if before is None else len(before)
    if before is not None:
        vectors[:done] = before.numpy()

    def save() -> None:
        state.save(**{name: torch.from_numpy(vectors[:done].astype(np.float16))})

    begun, saved = done, time.monotonic()
    try:
        while done < len(texts):
            block = encoder.encode(texts[done : done + BLOCK])
            # As they are saved, so that a run that was interrupted ends like one that was not.
            vectors[done : done + len(block)] = block.astype(np.float16)
            done += len(block)
            progress(name, done, len(texts))
            if time.monotonic() - saved > SECONDS:
                save()
                saved = time.monotonic()
    finally:
        if done > begun:
            save()
    return vectors


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
    random_rows: bool = False,
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
        random_rows: Begin at random directions, as published, and number topics by their rows: with
            the same seed and encoder a number stands for like topics of different corpora.
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

    if k < 2 or epochs < 1 or least < 2 or most < 0:
        raise TrainingError(
            f"{k} topics, {epochs} epochs, words that occur {least} times and {most} phrases were "
            "asked for: give 2 topics, 1 epoch, 2 times and 0 phrases, or more."
        )
    begun = time.monotonic()
    show = progress or (lambda name, done, count: None)
    passages = read_passages(corpus)
    with open_encoder(encoder, device, threads) as loaded:
        folder = Path(output) if output is not None else None
        found, state = prepare(passages, loaded, folder, least, most, show)
        wanted = Learning(k=k, seed=seed, epochs=epochs, apart=not random_rows)
        matrix = learn(found, wanted, state, show)
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
            document: described[place].number
            for document, place in largest_topics(found, of_passages, len(described)).items()
        },
    )


def learn(found: Prepared, wanted: Learning, state: State, progress: Progress) -> TopicMatrix:
    """Return the topics' rows, learnt from the last saved epoch on."""
    from slice_os.lab.topics.learning import TopicMatrix

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
    """Return of each document the topic that most of its passages have, the first of equal ones.

    `of_passages` is the topic of each passage, int ``[n]``, from 0 to `count`.
    """
    votes: dict[str, Any] = {}
    for passage, topic in zip(found.passages, of_passages.tolist(), strict=True):
        votes.setdefault(passage.document, np.zeros(count, np.int64))[topic] += 1
    return {document: int(counts.argmax()) for document, counts in votes.items()}
