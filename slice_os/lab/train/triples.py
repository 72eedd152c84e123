"""Triples of a query, a passage that answers it and one that does not, as MS MARCO has them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from slice_os.errors import TrainingError

LONGEST_ROW = 1 << 20
"""Bytes. MS MARCO's longest row has some thousands; a file that is no text may have no line end."""

_FORM = "query<TAB>positive<TAB>negative, as in MS MARCO's triples.train.small.tsv"
_FIELDS = ("query", "positive passage", "negative passage")


class Triple(NamedTuple):
    """A query, a passage that answers it, a passage that does not."""

    query: str
    positive: str
    negative: str


def read_triples(path: str | Path) -> Iterator[Triple]:
    """Yield the triples of a file with rows ``query<TAB>positive<TAB>negative``, UTF-8.

    A name that ends in ``.gz`` is unpacked. Rows are read as they are asked for, so memory does not
    grow with the file. Errors come when the row that has them is asked for.

    Raises:
        TrainingError: The file is missing, empty or not text; a row has not three fields with
            text in UTF-8.
    """
    number = 0
    try:
        with _open(Path(path)) as file:
            while row := file.readline(LONGEST_ROW):
                number += 1
                if len(row) == LONGEST_ROW:
                    raise TrainingError(
                        f"{path}, line {number}, is longer than {LONGEST_ROW:,} bytes: give a text "
                        f"file with rows {_FORM}."
                    )
                yield _triple(row, f"{path}, line {number},", number)
    except FileNotFoundError as exc:
        raise TrainingError(f"There are no triples at {path}: check the path.") from exc
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise TrainingError(
            f"{path} cannot be unpacked past line {number} ({exc}): download or pack it again."
        ) from exc
    except OSError as exc:
        raise TrainingError(
            f"{path} cannot be read past line {number} ({exc.strerror or exc}): give a file that "
            "can be."
        ) from exc
    if not number:
        raise TrainingError(f"{path} is empty: give a file with rows {_FORM}.")


class TripleBatches:
    """A file's triples, `batch` at a time, in order and again from the start at its end."""

    def __init__(self, path: Path, batch: int, process: int = 0, processes: int = 1) -> None:
        """Open `path`; of so many processes that take batches this is number `process`."""
        self._path = path
        self._batch = batch
        self._process, self._processes = process, processes
        self._rows = read_triples(path)

    def skip(self, batches: int) -> None:
        """Leave out so many batches."""
        for _ in range(batches):
            self.take()

    def take(self) -> list[Triple]:
        """Return this process's share of as many rows as all processes take.

        Raises:
            TrainingError: The file holds no triple, or a row is none.
        """
        rows = self._batch * self._processes
        batch = list(islice(self._rows, rows))
        while len(batch) < rows:
            self._rows = read_triples(self._path)
            more = list(islice(self._rows, rows - len(batch)))
            if not more:
                raise TrainingError(f"{self._path} holds no triple: give another file.")
            batch += more
        # In one piece: a process that accumulates has the same triples side by side in a batch.
        start = self._process * self._batch
        return batch[start : start + self._batch]


def _open(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _triple(row: bytes, place: str, number: int) -> Triple:
    """Return the triple of a row, or raise; `place` begins a sentence about it."""
    if b"\0" in row:
        raise TrainingError(
            f"{place} holds zero bytes, so it is not UTF-8 text: give rows {_FORM}."
        )
    try:
        text = row.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as exc:
        raise TrainingError(
            f"{place} is not UTF-8 at byte {exc.start + 1}: convert the file to UTF-8 or remove "
            "the line."
        ) from exc
    fields = text.removesuffix("\n").removesuffix("\r").split("\t")
    if len(fields) != len(_FIELDS):
        raise TrainingError(
            f"{place} has {len(fields)} columns instead of 3: make it {_FORM}, or remove the line."
        )
    for name, field in zip(_FIELDS, fields, strict=True):
        if not field.strip():
            raise TrainingError(f"{place} has an empty {name}: fill it in or remove the line.")
    return Triple(*fields)
