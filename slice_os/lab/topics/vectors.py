"""The passages of a corpus, its vocabulary, and the vectors of both, from the last saved on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slice_os.encoders import Encoder
from slice_os.errors import CorpusError, TrainingError
from slice_os.lab.topics.vocabulary import Texts, Vocabulary, mine_vocabulary, read_texts
from slice_os.lab.train.run import RunFolder
from slice_os.text import split
from slice_os.types import Document, Float32, Passage

SECONDS = 60
"""Between states that an interrupted run goes on from."""
BLOCK = 512
"""Texts that are encoded together."""

Progress = Callable[[str, int, int], object]
"""Told what is done, how much of it, and of how much."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What topics are learnt from and described with.

    Attributes:
        passages: Those of which the encoder knows a word.
        texts: Their words.
        vocabulary: What topics are described with.
        vectors: float32 ``[n, d]``, the passages' unit vectors.
        items: float32 ``[V, d]``, the vocabulary's.
    """

    passages: list[Passage]
    texts: Texts
    vocabulary: Vocabulary
    vectors: Float32
    items: Float32


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
    """Return the passages of documents.

    Raises:
        CorpusError: There is none.
    """
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
    """Mine the vocabulary and encode it and the passages.

    Args:
        passages: Of all documents.
        encoder: What encodes them.
        folder: Where vectors are saved now and then, and at an interrupt.
        least: Occurrences of a word or phrase of the vocabulary.
        most: Phrases, at most.
        progress: Told how far it is.

    Raises:
        TrainingError: No word or phrase is frequent enough, the encoder knows none of the texts, or
            the folder holds something else.
    """
    texts = read_texts(passage.text for passage in passages)
    vocabulary = mine_vocabulary(texts, least, most)
    if not vocabulary.items:
        raise TrainingError(
            f"No word of the text, function words aside, occurs {least} times, so there is nothing "
            "to describe topics with: give more text, or a smaller --least."
        )
    state = State(folder, _about(passages, vocabulary, encoder))
    items = _encode(encoder, vocabulary.items, "phrases", state, progress)
    vectors = _encode(encoder, [one.text for one in passages], "passages", state, progress)
    known = np.flatnonzero(vectors.any(axis=1))
    if not len(known):
        raise TrainingError(
            f"The encoder {encoder.info.name} knows no word of the text: give another --encoder."
        )
    if len(known) < len(passages):
        passages = [passages[k] for k in known.tolist()]
        texts, vectors = read_texts(passage.text for passage in passages), vectors[known]
    return Prepared(list(passages), texts, vocabulary, vectors, items), state


def _about(passages: Sequence[Passage], vocabulary: Vocabulary, encoder: Encoder) -> dict[str, Any]:
    info = encoder.info
    return {
        "texts": _hash(part for one in passages for part in (one.document, one.text)),
        "vocabulary": _hash(vocabulary.items),
        "encoder": {
            "weights_hash": info.weights_hash,
            "precision": info.precision,
            "size": info.dimension,
        },
    }


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
            found = encoder.encode(texts[done : done + BLOCK])
            # As they are saved, so that a run that was interrupted ends like one that was not.
            vectors[done : done + len(found)] = found.astype(np.float16)
            done += len(found)
            progress(name, done, len(texts))
            if time.monotonic() - saved > SECONDS:
                save()
                saved = time.monotonic()
    finally:
        if done > begun:
            save()
    return vectors
