"""Static word vectors: a word has one vector, whatever stands around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import regex

from slice_os.encoders.encoder import Encoder
from slice_os.encoders.info import EncoderInfo
from slice_os.errors import EncoderError
from slice_os.text.normal_form import normal_form
from slice_os.types import Float32, Words

_WORD = regex.compile(r"\S+")
_INNER = regex.compile(r"[\p{L}\p{N}]+(?:['\u2019.-][\p{L}\p{N}]+)*")


class StaticEncoder(Encoder):
    """Word vectors from GloVe's text format (a word and its numbers a line), as word2vec's too.

    Words are looked up in lower case, without punctuation around them; unknown ones are nothing.
    """

    def __init__(self, path: Path, device: str = "auto", threads: int | None = None) -> None:
        """Read the vectors; they run on one thread of the CPU, whatever is asked for.

        Raises:
            EncoderError: The file cannot be read, or a line of it is not a word and numbers.
        """
        self._rows: dict[str, int] = {}
        rows: list[Float32] = []
        digest = hashlib.blake2b(digest_size=16)
        try:
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, start=1):
                    digest.update(line.encode())
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
                        count = f"{len(rows[0])} " if rows else ""
                        raise EncoderError(
                            f"{path}, line {number}, is not a word and its {count}numbers: give a "
                            "file in GloVe's text format."
                        )
                    self._rows.setdefault(word, len(rows))
                    rows.append(row)
        except (OSError, UnicodeDecodeError) as exc:
            raise EncoderError(f"{path} cannot be read as UTF-8 text ({exc}).") from exc
        if not rows:
            raise EncoderError(f"{path} holds no vector: give a file in GloVe's text format.")
        self._table = np.stack(rows)
        self.info = EncoderInfo(path.stem, "1", digest.hexdigest(), "fp32", self._table.shape[1])

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order."""
        for text in texts:
            runs = list(_WORD.finditer(text))
            known = [
                [
                    self._rows[one]
                    for one in _INNER.findall(normal_form(run.group()).lower())
                    if one in self._rows
                ]
                for run in runs
            ]
            vectors = np.zeros((len(runs), self.info.dimension), np.float32)
            for row, rows in enumerate(known):
                vectors[row] = self._table[rows].sum(axis=0)
            starts = np.array([run.start() for run in runs], np.int32)
            ends = np.array([run.end() for run in runs], np.int32)
            pieces = [rows[:255] for rows in known]
            counts = np.array([len(rows) for rows in pieces], np.uint8)
            yield Words(starts, ends, vectors, np.array([*chain(*pieces)], np.int32), counts)


def _number(field: str) -> bool:
    return field.lstrip("-")[:1].isdecimal()
