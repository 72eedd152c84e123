"""A vector segment: one file of .npy arrays one after the other, memory-mapped when read.

A word takes some d + 98 bytes: its int8 vector and scale, for each of the two heads the 20 norms of
the spans that begin with it (16 bits each), its wordpieces (4 bytes each) and its two offsets. The
file ends in a checksum of all before it, which the database holds too: it tells this segment from
every other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numkong
import numpy as np
import numpy.typing as npt

from slice_os.errors import IndexDamagedError
from slice_os.files import sync_folder
from slice_os.spans import (
    PackedPassage,
    PassageBlock,
    best_span,
    common_exponent,
    dequantize,
    fit_window,
    present_norms,
    quantize,
    rebase,
    stored_cosines,
    unpack_inverse_norms,
)
from slice_os.types import Float32

ALIGNMENT = 64
_ARRAYS: dict[str, np.dtype[Any]] = {
    "bounds": np.dtype(np.int64),
    "vectors": np.dtype(np.int8),
    "scales": np.dtype(np.float32),
    "norms": np.dtype(np.uint16),
    "exponent": np.dtype(np.int64),
    "starts": np.dtype(np.uint32),
    "ends": np.dtype(np.uint32),
    "piece_bounds": np.dtype(np.int64),
    "pieces": np.dtype(np.uint32),
    "counts": np.dtype(np.uint8),
    "phrase_norms": np.dtype(np.uint16),
    "phrase_exponent": np.dtype(np.int64),
}
_EXPONENTS = range(-127, 128)
CHECKSUM_BYTES = 16


class Recorded(NamedTuple):
    """A segment's row in the database."""

    number: int
    passages: int
    words: int
    size: int
    checksum: bytes


def write_segment(file: Path, passages: Sequence[PackedPassage]) -> tuple[int, bytes]:
    """Write passages as a segment; when this returns the segment is on the disk, whole.

    Returns:
        Its bytes and its checksum.
    """
    exponent = common_exponent([(p.norms, p.exponent) for p in passages])
    norms = [rebase(p.norms, p.exponent, exponent) for p in passages]
    phrase_exponent = common_exponent([(p.phrase_norms, p.phrase_exponent) for p in passages])
    phrase_norms = [rebase(p.phrase_norms, p.phrase_exponent, phrase_exponent) for p in passages]
    arrays: dict[str, npt.NDArray[Any]] = {
        "bounds": np.cumsum([0, *map(len, passages)]),
        "vectors": np.concatenate([p.codes for p in passages]),
        "scales": np.concatenate([p.scales for p in passages]),
        "norms": np.concatenate(norms, axis=1),
        "exponent": np.array([exponent]),
        "starts": np.concatenate([p.starts for p in passages]),
        "ends": np.concatenate([p.ends for p in passages]),
        "piece_bounds": np.cumsum([0, *(len(p.pieces) for p in passages)]),
        "pieces": np.concatenate([p.pieces for p in passages]),
        "counts": np.concatenate([p.counts for p in passages]),
        "phrase_norms": np.concatenate(phrase_norms, axis=1),
        "phrase_exponent": np.array([phrase_exponent]),
    }
    with file.open("w+b") as stream:
        for name, kind in _ARRAYS.items():
            np.save(stream, arrays[name].astype(kind, order="C", copy=False))
            stream.write(bytes(-stream.tell() % ALIGNMENT))
        checksum = _checksum(stream, stream.tell())
        stream.write(checksum)
        stream.flush()
        os.fsync(stream.fileno())
        size = stream.tell()
    sync_folder(file.parent)
    return size, checksum


def _checksum(stream: IO[bytes], size: int) -> bytes:
    """Return the BLAKE2 hash of the first `size` bytes of a file, and leave it there."""
    digest = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    stream.seek(0)
    while size and (chunk := stream.read(min(size, 1 << 20))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def is_intact(file: Path, recorded: Recorded) -> bool:
    """Read a whole segment, and tell whether it is what was written."""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        return size == recorded.size and (
            _checksum(stream, size - CHECKSUM_BYTES) == recorded.checksum
        )


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment's arrays, mapped: nothing is read until it is used.

    ``bounds`` is int64 ``[passages + 1]`` (words of passage p: bounds[p] to bounds[p + 1]),
    ``vectors`` int8 ``[N, d]``, ``scales`` float32 ``[N]``, ``norms`` uint16 ``[max_words, N]``
    (packed), ``starts`` and ``ends`` uint32 ``[N]``, ``pieces`` uint32 ``[T]`` (of passage p:
    piece_bounds[p] to piece_bounds[p + 1]), ``counts`` uint8 ``[N]``, ``phrase_norms`` uint16
    ``[max_words, N]`` or ``[0, N]``.
    """

    bounds: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    norms: npt.NDArray[np.uint16]
    exponent: npt.NDArray[np.int64]
    starts: npt.NDArray[np.uint32]
    ends: npt.NDArray[np.uint32]
    piece_bounds: npt.NDArray[np.int64]
    pieces: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint8]
    phrase_norms: npt.NDArray[np.uint16]
    phrase_exponent: npt.NDArray[np.int64]

    @classmethod
    def open(cls, file: Path, recorded: Recorded) -> Segment:
        """Map a segment file; FileNotFoundError if a merge has just replaced it.

        What is free is compared with what the database has `recorded` of it: its size, its
        identity, its shape. The vectors are not read.

        Raises:
            IndexDamagedError: it is not what was written.
        """
        try:
            with file.open("rb") as stream:
                end = _check_identity(stream, recorded)
                try:
                    segment = cls(**dict(zip(_ARRAYS, _map_arrays(stream, end), strict=True)))
                    segment._check_shape(recorded)
                except (OSError, ValueError, ImportError, MemoryError):
                    raise
                except Exception as exc:  # numpy parses a header as Python: any error there is
                    raise ValueError("a header of it is none") from exc
        except ValueError as exc:
            raise IndexDamagedError(
                f"The segment {file} is damaged ({exc}): {mending(file.parent.parent)}."
            ) from exc
        return segment

    def _check_shape(self, recorded: Recorded) -> None:
        """Raise ValueError unless the arrays fit each other; the vectors are not read."""
        words = len(self.starts)
        lengths = (
            len(self.vectors),
            len(self.scales),
            len(self.ends),
            len(self.counts),
            self.norms.shape[-1],
            self.phrase_norms.shape[-1],
        )
        dimensions = {self.vectors.ndim, self.norms.ndim, self.phrase_norms.ndim}
        whole = {*lengths} == {words} and dimensions == {2}
        bounds = self.bounds
        if not whole or not len(bounds) or bounds[0] or bounds[-1] != words:
            raise ValueError("its arrays do not fit each other")
        pieces, exponents = self.piece_bounds, {*self.exponent[:1], *self.phrase_exponent[:1]}
        if len(pieces) != len(bounds) or pieces[0] or pieces[-1] != len(self.pieces):
            raise ValueError("its wordpieces are not those of its passages")
        if (
            np.diff(pieces).min(initial=0) < 0
            or np.diff(bounds).min(initial=1) < 1
            or not exponents <= {*_EXPONENTS}
        ):
            raise ValueError("its numbers are none of a segment")
        if (len(bounds) - 1, words) != (recorded.passages, recorded.words):
            raise ValueError("it is another one")

    def inverse_norms(
        self, words: slice | npt.NDArray[np.int64], length: int | None = None
    ) -> Float32:
        """Return 1 / norm of the spans that begin with some words, ``[max_words, n]``.

        Of one `length` alone, ``[n]``.
        """
        norms = self.norms[:, words] if length is None else self.norms[length - 1, words]
        return unpack_inverse_norms(norms, int(self.exponent[0]))

    def passage(self, ordinal: int) -> PackedPassage:
        """Return a passage; its arrays are views of the file."""
        part = self.slice(ordinal)
        pieces = self.pieces[self.piece_bounds[ordinal] : self.piece_bounds[ordinal + 1]]
        return PackedPassage(
            self.vectors[part],
            self.scales[part],
            self.norms[:, part],
            int(self.exponent[0]),
            self.starts[part].view(np.int32),
            self.ends[part].view(np.int32),
            pieces.view(np.int32),
            self.counts[part],
            self.phrase_norms[:, part],
            int(self.phrase_exponent[0]),
        )

    def block(self, first: int, last: int) -> PassageBlock:
        """Return what mining reads of the passages `first` to `last`, half-open."""
        part = slice(int(self.bounds[first]), int(self.bounds[last]))
        pieces = slice(int(self.piece_bounds[first]), int(self.piece_bounds[last]))
        return PassageBlock(
            dequantize(self.vectors[part], self.scales[part]),
            present_norms(self.norms[:, part], int(self.exponent[0])),
            present_norms(self.phrase_norms[:, part], int(self.phrase_exponent[0])),
            self.pieces[pieces].view(np.int32),
            self.counts[part],
        )

    def slice(self, ordinal: int) -> slice:
        """Return where a passage's words lie."""
        return slice(int(self.bounds[ordinal]), int(self.bounds[ordinal + 1]))


def mending(folder: Path) -> str:
    """Return what to do about a damaged index."""
    return f"'slice-os doctor --repair --index {folder}' encodes what it held anew"


def _check_identity(stream: IO[bytes], recorded: Recorded) -> int:
    """Return where the arrays of a segment end; ValueError unless it is the recorded one."""
    size = stream.seek(0, os.SEEK_END)
    if size != recorded.size:
        raise ValueError(f"it has {size:,} bytes, not {recorded.size:,}")
    end = stream.seek(-CHECKSUM_BYTES, os.SEEK_END)
    if stream.read() != recorded.checksum:
        raise ValueError("it is another one, or its end is not what was written")
    return end


def _map_arrays(stream: IO[bytes], size: int) -> Iterator[npt.NDArray[Any]]:
    """Map the file once (a map holds a file descriptor) and yield views of its arrays."""
    whole = np.memmap(stream, np.uint8, mode="r").view(np.ndarray)[:size]
    stream.seek(0)
    for kind in _ARRAYS.values():
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"array version {version}")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
        end = start + dtype.itemsize * int(np.prod(shape))
        if end > len(whole) or fortran or dtype != kind or min(shape) < 0:
            raise ValueError("it is cut short")
        yield whole[start:end].view(dtype).reshape(shape)
        stream.seek(end + -end % ALIGNMENT)


DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""
TOGETHER = 64
"""Queries for which the vectors are read once."""
BLOCK = 4096
"""Words in one product: it stays in the processor's cache until each query has its row of it."""


def best_cosines(segment: Segment, queries: Float32, lengths: Sequence[range]) -> Float32:
    """Return the best span's cosine of every passage for each query, float32 ``[m, passages]``.

    The unit `queries`, float32 ``[m, d]``, are rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.
    """
    inverse: Callable[[int], Float32] = partial(segment.inverse_norms, slice(None))
    if len(queries) > 1:
        inverse = cache(inverse)
    best = np.empty((len(queries), len(segment.bounds) - 1), np.float32)
    for first in range(0, len(queries), TOGETHER):
        part = slice(first, first + TOGETHER)
        codes, scales = quantize(queries[part])
        best[part] = [
            _best_of_passages(segment, word_scores, float(scale), inverse, window)
            for word_scores, scale, window in zip(
                _word_scores(segment, codes), scales, lengths[part], strict=True
            )
        ]
    return best


def _word_scores(segment: Segment, queries: npt.NDArray[np.int8]) -> Float32:
    """Return the products of int8 queries ``[m, d]`` with all words, float32 ``[m, words]``."""
    products = np.empty((len(queries), len(segment.vectors)), np.float32)
    if len(queries) == 1:
        products[:] = numkong.cdist(queries, segment.vectors, metric="dot", out_dtype="float32")
    else:
        packed = numkong.dots_pack(queries)
        for first in range(0, len(segment.vectors), BLOCK):
            block = slice(first, first + BLOCK)
            products[:, block] = np.asarray(numkong.dots_packed(segment.vectors[block], packed)).T
    products *= segment.scales
    return products


def _best_of_passages(
    segment: Segment,
    scores: Float32,
    scale: float,
    inverse: Callable[[int], Float32],
    lengths: range,
) -> Float32:
    """Return the best span's cosine of every passage, ``[passages]``, of its words' scores.

    Long arrays, made once: two threads that allocate, or that meet at the GIL, for every
    operation on a small block take longer together than one of them alone.
    """
    starts, counts = segment.bounds[:-1], np.diff(segment.bounds)
    best = np.full(len(scores), -np.inf, dtype=np.float32)
    sums, cosines = scores.copy(), np.empty_like(best)
    for length in range(1, min(lengths.stop, len(scores) + 1)):
        first = len(scores) - length + 1
        sums = sums[:first]
        if length > 1:
            sums += scores[length - 1 :]
        if length >= lengths.start:
            np.multiply(sums, inverse(length)[:first], out=cosines[:first])
            np.maximum(best[:first], cosines[:first], out=best[:first])
        elif len(whole := starts[counts == length]):  # too short for any other span
            best[whole] = sums[whole] * segment.inverse_norms(whole, length)
    highest: Float32 = np.maximum.reduceat(best, starts) * np.float32(scale)
    # A span that would leave its passage counts as next to 0 above: that matters only where no true
    # span is better.
    for passage in np.flatnonzero(highest < DOUBTFUL).tolist():
        part = segment.slice(passage)
        window = fit_window(lengths, part.stop - part.start)
        inverse_norms = segment.passage(passage).inverse_norms
        highest[passage] = (
            scale * best_span(stored_cosines(scores[part], inverse_norms, window), window).cosine
        )
    return highest
