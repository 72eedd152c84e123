"""What can be evaluated: an encoder folder, a checkpoint, a file of static word vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import numpy as np

from slice_os.encoder import load_encoder
from slice_os.encoder.info import DESCRIPTION
from slice_os.errors import EvaluationError
from slice_os.records import Float32, Words


class WordEncoder(Protocol):
    """What turns texts into unit vectors and into word vectors, as `slice_os.encoder.Encoder`."""

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``."""

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors."""


class StaticVectors:
    """Averaged static word vectors, from GloVe's text format: a word and its numbers a line.

    Words are looked up in lower case, without punctuation around them; unknown ones are nothing.
    """

    def __init__(self, path: Path) -> None:
        """Read the vectors.

        Raises:
            EvaluationError: The file cannot be read, or a line of it is not a word and numbers.
        """
        import regex

        self._word = regex.compile(r"\S+")
        self._inner = regex.compile(r"[\p{L}\p{N}]+(?:['\u2019.-][\p{L}\p{N}]+)*")
        self._places: dict[str, int] = {}
        rows: list[Float32] = []
        try:
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, start=1):
                    word, *numbers = line.rstrip().split(" ")
                    if number == 1 and len(numbers) == 1:  # word2vec's first line: counts
                        continue
                    if rows:  # some words of GloVe hold spaces, of which none is looked up
                        more = max(0, len(numbers) - len(rows[0]))
                        if not any(map(_number, numbers[:more])):
                            word, numbers = " ".join([word, *numbers[:more]]), numbers[more:]
                    try:
                        row = np.array(numbers, np.float32)
                    except ValueError:
                        row = np.zeros(0, np.float32)
                    if not len(row) or (rows and len(row) != len(rows[0])):
                        raise EvaluationError(
                            f"{path}, line {number}, is not a word and its "
                            f"{len(rows[0]) if rows else ''} numbers: give a file in GloVe's text "
                            "format."
                        )
                    self._places.setdefault(word, len(rows))
                    rows.append(row)
        except (OSError, UnicodeDecodeError) as exc:
            raise EvaluationError(f"{path} cannot be read as UTF-8 text ({exc}).") from exc
        if not rows:
            raise EvaluationError(f"{path} holds no vector: give a file in GloVe's text format.")
        self._vectors = np.stack(rows)

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``; a row of zeros if unknown."""
        sums = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for row, words in enumerate(self.encode_words(texts)):
            sums[row] = words.vectors.sum(axis=0)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: Float32 = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
        return unit

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order."""
        for text in texts:
            runs = list(self._word.finditer(text))
            vectors = np.zeros((len(runs), self._vectors.shape[1]), np.float32)
            for row, run in enumerate(runs):
                for piece in self._inner.findall(run.group().lower()):
                    if (place := self._places.get(piece)) is not None:
                        vectors[row] += self._vectors[place]
            starts = np.array([run.start() for run in runs], np.int32)
            yield Words(starts, np.array([run.end() for run in runs], np.int32), vectors)


def opened(
    encoder: str | Path | WordEncoder | None = None, device: str = "auto"
) -> AbstractContextManager[WordEncoder]:
    """Load an encoder folder, a checkpoint folder or static vectors; what is loaded stays open.

    Args:
        encoder: A place, or a loaded encoder, which its owner closes; the packaged one if None.
        device: Where an encoder folder runs.

    Raises:
        EvaluationError: There is nothing at the place, or static vectors that cannot be used.
        EncoderError: The encoder folder is not usable.
        ExportError: The checkpoint is not usable.
        MissingExtraError: A checkpoint, but torch or transformers is not installed.

    """
    if encoder is None:
        return load_encoder(None, device)
    if not isinstance(encoder, (str, Path)):
        return nullcontext(encoder)
    path = Path(encoder)
    if (path / DESCRIPTION).is_file():
        return load_encoder(path, device)
    if path.is_dir():
        from slice_os.exporters.pooled import CheckpointEncoder

        return nullcontext(CheckpointEncoder.load(path))
    if path.is_file():
        return nullcontext(StaticVectors(path))
    raise EvaluationError(
        f"There is no encoder at {path}: give an encoder folder, a checkpoint folder or a file of "
        "word vectors in GloVe's text format."
    )


def _number(field: str) -> bool:
    return field.lstrip("-")[:1].isdecimal()


def said_vector(words: Words, start: int, end: int) -> Float32:
    """Return the sum ``[d]`` of the words that characters `start` to `end` of their text touch."""
    i = int(words.ends.searchsorted(start, side="right"))
    j = int(words.starts.searchsorted(end, side="left"))
    total: Float32 = words.vectors[i:j].sum(axis=0)
    return total
