"""A vector segment: one file of .npy arrays one after the other, memory-mapped when read.

A word takes some 1.125 d + 91 bytes: its int8 vector and scale, one bit a dimension of the vector
(`spans.bits`), for each of the two heads the 20 norms of the spans that begin with it (16 bits
each), its wordpieces (2 bytes each) and its place. The file ends in a checksum of all before it,
which the database holds too: it tells this segment from every other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import IndexDamagedError
from slice_os.files import sync_folder
from slice_os.spans import (
    PackedPassage,
    PassageBlock,
    common_exponent,
    dequantize,
    present_norms,
    rebase,
    unpack_inverse_norms,
    word_bits,
)
from slice_os.types import Float32, Int32

ALIGNMENT = 64
_SMALLEST = tuple(np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32))
_ARRAYS: dict[str, tuple[np.dtype[Any], ...]] = {  # the first kind that holds all numbers of it
    "bounds": (np.dtype(np.int64),),
    "vectors": (np.dtype(np.int8),),
    "scales": (np.dtype(np.float32),),
    "bits": (np.dtype(np.uint8),),
    "ratios": (np.dtype(np.uint8),),
    "norms": (np.dtype(np.uint16),),
    "exponent": (np.dtype(np.int64),),
    "steps": _SMALLEST,
    "widths": _SMALLEST,
    "piece_bounds": (np.dtype(np.int64),),
    "pieces": _SMALLEST,
    "counts": (np.dtype(np.uint8),),
    "phrase_norms": (np.dtype(np.uint16),),
    "phrase_exponent": (np.dtype(np.int64),),
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
    vectors = np.concatenate([p.codes for p in passages])
    bits, ratios = word_bits(vectors)
    arrays: dict[str, npt.NDArray[Any]] = {
        "bounds": np.cumsum([0, *map(len, passages)]),
        "vectors": vectors,
        "scales": np.concatenate([p.scales for p in passages]),
        "bits": bits,
        "ratios": ratios,
        "norms": np.concatenate(norms, axis=1),
        "exponent": np.array([exponent]),
        "steps": np.concatenate([np.diff(p.starts, prepend=0) for p in passages]),
        "widths": np.concatenate([p.ends - p.starts for p in passages]),
        "piece_bounds": np.cumsum([0, *(len(p.pieces) for p in passages)]),
        "pieces": np.concatenate([p.pieces for p in passages]),
        "counts": np.concatenate([p.counts for p in passages]),
        "phrase_norms": np.concatenate(phrase_norms, axis=1),
        "phrase_exponent": np.array([phrase_exponent]),
    }
    with file.open("w+b") as stream:
        for name, kinds in _ARRAYS.items():
            array = arrays[name]
            kind = next(
                k for k in kinds if k == kinds[-1] or array.max(initial=0) <= np.iinfo(k).max
            )
            np.save(stream, array.astype(kind, order="C", copy=False))
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
    ``vectors`` int8 ``[N, d]``, ``scales`` float32 ``[N]``, ``bits`` uint8 ``[N, d / 8]`` and
    ``ratios`` uint8 ``[N]`` (`spans.bits`), ``norms`` uint16 ``[max_words, N]`` (packed), ``steps``
    ``[N]`` (characters from where the word before begins, in its passage) and ``widths`` ``[N]``
    (characters of the word), ``pieces`` ``[T]`` (of passage p: piece_bounds[p] to
    piece_bounds[p + 1]), these three unsigned, ``counts`` uint8 ``[N]``, ``phrase_norms`` uint16
    ``[max_words, N]`` or ``[0, N]``.
    """

    bounds: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    bits: npt.NDArray[np.uint8]
    ratios: npt.NDArray[np.uint8]
    norms: npt.NDArray[np.uint16]
    exponent: npt.NDArray[np.int64]
    steps: npt.NDArray[Any]
    widths: npt.NDArray[Any]
    piece_bounds: npt.NDArray[np.int64]
    pieces: npt.NDArray[Any]
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

    def __len__(self) -> int:
        return len(self.scales)

    def _check_shape(self, recorded: Recorded) -> None:
        """Raise ValueError unless the arrays fit each other; the vectors are not read."""
        words = len(self)
        lengths = (
            len(self.vectors),
            len(self.bits),
            len(self.ratios),
            len(self.steps),
            len(self.widths),
            len(self.counts),
            self.norms.shape[-1],
            self.phrase_norms.shape[-1],
        )
        dimensions = {self.vectors.ndim, self.bits.ndim, self.norms.ndim, self.phrase_norms.ndim}
        whole = {*lengths} == {words} and dimensions == {2}
        whole = whole and self.bits.shape[1] == -(-self.vectors.shape[1] // 8)
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
        self, words: slice | npt.NDArray[np.int64], length: int, out: Float32 | None = None
    ) -> Float32:
        """Return 1 / norm of the spans of a length that begin with some words, ``[n]``."""
        return unpack_inverse_norms(self.norms[length - 1, words], int(self.exponent[0]), out)

    def passage(self, ordinal: int) -> PackedPassage:
        """Return a passage; its arrays are views of the file."""
        part = self.slice(ordinal)
        pieces = self.pieces[self.piece_bounds[ordinal] : self.piece_bounds[ordinal + 1]]
        starts, ends = self.offsets(ordinal)
        return PackedPassage(
            self.vectors[part],
            self.scales[part],
            self.norms[:, part],
            int(self.exponent[0]),
            starts,
            ends,
            pieces.astype(np.int32),
            self.counts[part],
            self.phrase_norms[:, part],
            int(self.phrase_exponent[0]),
        )

    def offsets(self, ordinal: int) -> tuple[Int32, Int32]:
        """Return where the words of a passage begin and end in its text, int32 ``[n]`` each."""
        part = self.slice(ordinal)
        starts = np.cumsum(self.steps[part], dtype=np.int32)
        return starts, starts + self.widths[part].astype(np.int32)

    def block(self, first: int, last: int) -> PassageBlock:
        """Return what mining reads of the passages `first` to `last`, half-open."""
        part = slice(int(self.bounds[first]), int(self.bounds[last]))
        pieces = slice(int(self.piece_bounds[first]), int(self.piece_bounds[last]))
        return PassageBlock(
            dequantize(self.vectors[part], self.scales[part]),
            present_norms(self.norms[:, part], int(self.exponent[0])),
            present_norms(self.phrase_norms[:, part], int(self.phrase_exponent[0])),
            self.pieces[pieces].astype(np.int32),
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
    for kinds in _ARRAYS.values():
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"array version {version}")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
        end = start + dtype.itemsize * int(np.prod(shape))
        if end > len(whole) or fortran or dtype not in kinds or min(shape) < 0:
            raise ValueError("it is cut short")
        yield whole[start:end].view(dtype).reshape(shape)
        stream.seek(end + -end % ALIGNMENT)
