"""The packed passage: what is made once, stored by every backend, and handed from index to index.

It holds a passage's word vectors as int8 codes, the inverse norms of its spans in 16 bits, and the
offsets of its words: all that any search of the passage needs besides its text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.encoders.phrase_head import PhraseHead
from slice_os.errors import IndexDamagedError
from slice_os.spans.cosines import checked, own_norms, shared_words, span_norms, stored_cosines
from slice_os.types import Float32, Int32, Passage, Words

VERSION = 2
_HEADER = struct.Struct("<BBHIhBIhB")
"""Version of this layout, bytes of an offset, dimension, words, exponent of the norms, lengths,
wordpieces, exponent of the phrase head's norms, their lengths."""
Int8 = npt.NDArray[np.int8]
Uint8 = npt.NDArray[np.uint8]
Uint16 = npt.NDArray[np.uint16]
_SHIFT = 11  # bits of a float32's 23-bit mantissa that a code leaves out
_OCTAVES = 16  # powers of two that a code's 4 exponent bits tell apart
_LOWEST, _HIGHEST = -126, 127  # exponents of normal float32 numbers
_BIAS = 127


@dataclass(frozen=True, slots=True, eq=False)
class PackedPassage:
    """The words of one passage, ready to be stored: some d + 94 bytes a word, for spans of 1 to 20.

    Attributes:
        codes: int8 ``[N, d]``; ``codes * scales`` are the sums of each word's token vectors.
        scales: float32 ``[N]``.
        norms: uint16 ``[L, N]``: 1 / norm of the span of l words that begins with word i in row
            l - 1, as `pack_norms` codes it; 0 where there is none, or where it is
            counted to the passage before or after (`own_norms`).
        exponent: That of the codes of the norms.
        starts: int32 ``[N]``, character offsets into the passage's text.
        ends: int32 ``[N]``.
        pieces: int32 ``[T]``, the wordpieces of all words (`Words.pieces`).
        counts: uint8 ``[N]``, how many are each word's.
        phrase_norms: uint16 ``[L, N]``, like `norms`, of the phrase head's vectors
            (`encoders.phrase_head`); ``[0, N]`` where the encoder has no such head.
        phrase_exponent: That of the codes of those.
    """

    codes: Int8
    scales: Float32
    norms: Uint16
    exponent: int
    starts: Int32
    ends: Int32
    pieces: Int32
    counts: Uint8
    phrase_norms: Uint16
    phrase_exponent: int = 0

    @classmethod
    def pack(
        cls, words: Words, max_words: int, passage: Passage, head: PhraseHead | None = None
    ) -> PackedPassage:
        """Quantize the words of a passage and work out the norms of its spans.

        Raises:
            EncoderError: a value is NaN or infinite.
        """
        codes, scales = quantize(words.vectors)
        norms, exponent = pack_norms(
            own_norms(span_norms(words.vectors, max_words), words, passage)
        )
        pieces = np.zeros(0, np.int32) if words.pieces is None else words.pieces
        counts = np.zeros(len(words), np.uint8) if words.counts is None else words.counts
        none = np.zeros((0, len(words)), np.uint16)
        plain = cls(codes, scales, norms, exponent, words.starts, words.ends, pieces, counts, none)
        return plain.with_head(head)

    def with_head(self, head: PhraseHead | None) -> PackedPassage:
        """Return the passage with the norms of a phrase head; it needs no run of the encoder."""
        if head is None:
            none = np.zeros((0, len(self)), np.uint16)
            return replace(self, phrase_norms=none, phrase_exponent=0)
        norms = span_norms(self.phrase_vectors(head), self.max_words)
        norms[self.norms == 0] = 0  # a neighbour's
        codes, exponent = pack_norms(norms)
        return replace(self, phrase_norms=codes, phrase_exponent=exponent)

    def phrase_vectors(self, head: PhraseHead) -> Float32:
        """Return the phrase head's vectors of the words, float32 ``[N, d]``."""
        return head.words(self.vectors, self.pieces, self.counts)

    def __len__(self) -> int:
        return len(self.starts)

    def own_words(self, passage: Passage) -> int:
        """Return how many of its words count to a passage: not those of the passage before it."""
        return len(self) - shared_words(self.starts, self.ends, passage)[0]

    @property
    def max_words(self) -> int:
        """The most words of a span."""
        return len(self.norms)

    @property
    def vectors(self) -> Float32:
        """The word vectors, float32 ``[N, d]``, dequantized at each call."""
        return dequantize(self.codes, self.scales)

    @property
    def inverse_norms(self) -> Float32:
        """1 / norm of the spans, float32 ``[L, N]``; next to 0 where there is none."""
        return unpack_inverse_norms(self.norms, self.exponent)

    @property
    def span_norms(self) -> Float32:
        """The norms of the spans, float32 ``[L, N]``; 0 where there is none."""
        norms: Float32 = np.where(self.norms > 0, 1 / self.inverse_norms, 0).astype(np.float32)
        return norms

    @property
    def phrase_span_norms(self) -> Float32:
        """The norms of the spans by the phrase head, float32 ``[L, N]``; ``[0, N]`` without one."""
        inverse = unpack_inverse_norms(self.phrase_norms, self.phrase_exponent)
        norms: Float32 = np.where(self.phrase_norms > 0, 1 / inverse, 0).astype(np.float32)
        return norms

    def to_bytes(self) -> bytes:
        """Return the passage as bytes: equal passages give equal bytes, wherever they have been."""
        # An index may have moved the exponent.
        exponent = common_exponent([(self.norms, self.exponent)])
        phrase_exponent = common_exponent([(self.phrase_norms, self.phrase_exponent)])
        offsets = np.stack((self.starts, self.ends))
        width = 2 if offsets.max(initial=0) < 1 << 16 else 4
        count, dimension = self.codes.shape
        about = (VERSION, width, dimension, count, exponent, self.max_words)
        head = _HEADER.pack(*about, len(self.pieces), phrase_exponent, len(self.phrase_norms))
        phrase_norms = rebase(self.phrase_norms, self.phrase_exponent, phrase_exponent)
        return b"".join(
            (
                head,
                self.codes.tobytes(),
                self.scales.astype("<f4").tobytes(),
                rebase(self.norms, self.exponent, exponent).astype("<u2").tobytes(),
                offsets.astype(f"<u{width}").tobytes(),
                self.pieces.astype("<u4").tobytes(),
                self.counts.tobytes(),
                phrase_norms.astype("<u2").tobytes(),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> PackedPassage:
        """Return the passage that `to_bytes` gave the bytes of.

        Raises:
            IndexDamagedError: they are of something else.
        """
        try:
            version, width, dimension, count, exponent, lengths, *rest = _HEADER.unpack_from(data)
        except struct.error as exc:
            raise _unreadable(str(exc)) from exc
        pieces_count, phrase_exponent, phrase_lengths = rest
        shapes: tuple[tuple[tuple[int, ...], str], ...] = (
            ((count, dimension), "i1"),
            ((count,), "<f4"),
            ((lengths, count), "<u2"),
            ((2, count), f"<u{width}"),
            ((pieces_count,), "<u4"),
            ((count,), "u1"),
            ((phrase_lengths, count), "<u2"),
        )
        parts: list[npt.NDArray[np.generic]] = []
        start = _HEADER.size
        if version == VERSION and width in (2, 4):
            for shape, kind in shapes:
                size = int(np.prod(shape)) * np.dtype(kind).itemsize
                if start + size <= len(data):
                    parts.append(np.frombuffer(data[start : start + size], kind).reshape(shape))
                start += size
        if len(parts) < len(shapes) or start != len(data):
            raise _unreadable(f"version {version}, {len(data)} bytes")
        codes, scales, norms, offsets, pieces, counts, phrase_norms = parts
        if int(counts.astype(np.int64).sum()) != pieces_count:
            raise _unreadable("its wordpieces are not those of its words")
        starts, ends = offsets.astype(np.int32)
        return cls(
            codes.astype(np.int8, copy=False),
            scales.astype(np.float32, copy=False),
            norms.astype(np.uint16, copy=False),
            exponent,
            starts,
            ends,
            pieces.astype(np.int32),
            counts.astype(np.uint8, copy=False),
            phrase_norms.astype(np.uint16, copy=False),
            phrase_exponent,
        )


def best_of_each(
    passages: Sequence[PackedPassage], word_scores: Sequence[Float32], lengths: range
) -> Float32:
    """Return the cosine of each passage's best span, float32 ``[n]``; -inf if it has none.

    `word_scores` are those of each, as `PackedPassage.scored` takes them. Spans of `lengths` count,
    of a passage that is shorter the whole, as `spans.fit_window` says.
    """
    counts = np.array([len(passage) for passage in passages], np.int64)
    best = np.full(len(passages), -np.inf, np.float32)
    if not counts.any():
        return best
    first = np.cumsum(counts) - counts
    norms = np.concatenate([passage.norms[: lengths.stop - 1] for passage in passages], axis=1)
    exponents = np.repeat([passage.exponent for passage in passages], counts)
    inverse = unpack_inverse_norms(norms, exponents)
    scores = np.concatenate(word_scores)
    cosines = stored_cosines(scores, inverse, lengths)
    cosines[norms[lengths.start - 1 :] == 0] = -np.inf
    held = counts > 0
    best[held] = np.maximum.reduceat(cosines.max(axis=0, initial=-np.inf), first[held])
    short = held & (counts < lengths.start)
    at = counts[short] - 1, first[short]
    sums = np.add.reduceat(scores, first[held], dtype=np.float64)[short[held]]
    best[short] = np.where(norms[at] > 0, sums * inverse[at], -np.inf)
    return best


def _unreadable(what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"A passage holds word vectors that this slice-os cannot read ({what}): index again."
    )


def quantize(vectors: npt.NDArray[Any]) -> tuple[Int8, Float32]:
    """Return int8 codes ``[N, d]`` and float32 scales ``[N]`` of word vectors ``[N, d]``.

    Symmetric, a scale a word: ``scale = max |w| / 127``, ``code = round(w / scale)`` in -127..127,
    so no value moves by more than half a scale. A zero vector has scale 0 and codes 0.

    Raises:
        ValueError: `vectors` has not two axes.
        EncoderError: a value is NaN or infinite.
    """
    largest = np.abs(checked(vectors)).max(axis=1, initial=0.0)
    scales = (largest / 127).astype(np.float32)
    # The scale as stored is what decodes: divide by it, in float64, where no scale overflows.
    divisors = np.where(scales > 0, scales, 1).astype(np.float64)
    codes = np.rint(vectors / divisors[:, None])
    codes[scales == 0] = 0
    return np.clip(codes, -127, 127).astype(np.int8), scales


def dequantize(codes: Int8, scales: Float32) -> Float32:
    """Return the float32 vectors ``[N, d]`` of codes ``[N, d]`` and scales ``[N]``."""
    vectors = codes.astype(np.float32)
    vectors *= scales[:, None]
    return vectors


def pack_norms(norms: npt.NDArray[Any]) -> tuple[Uint16, int]:
    """Return the inverses of span norms ``[L, N]`` as uint16 codes ``[L, N]`` and their exponent.

    A code is 4 exponent and 12 mantissa bits of ``1 / norm``, rounded to the nearest, above the
    array's exponent e: it stands for ``2^(e + code // 4096) (1 + (code % 4096) / 4096)``. The
    relative error is at most 2^-13. Norms 0 (no such span) have code 0, all others at least 1.
    The exponent is as low as the largest inverse allows, so that code 0 is next to nothing. If the
    norms span more than 15 octaves, the smallest ones saturate: their inverse is understated, so
    a cosine is never overstated.
    """
    inverse = np.zeros(norms.shape, np.float64)
    np.divide(1.0, norms, out=inverse, where=norms > 0, dtype=np.float64)
    present = inverse > 0
    if not present.any():
        return np.zeros(norms.shape, np.uint16), 0
    bits = _clipped(inverse).view(np.uint32)
    kept = (bits.astype(np.int64) + (1 << (_SHIFT - 1))) >> _SHIFT
    # Codes above the exponent -_BIAS, too large yet for 16 bits.
    kept[~present] = 0
    exponent = common_exponent([(kept, -_BIAS)])
    return rebase(kept, -_BIAS, exponent), exponent


def common_exponent(coded: Iterable[tuple[npt.NDArray[Any], int]]) -> int:
    """Return the exponent of `pack_norms` for several arrays of codes, each with its own."""
    lowest, highest = [], []
    for codes, exponent in coded:
        if (present := codes[codes > 0]).size:
            lowest.append(exponent + (int(present.min()) >> 12))
            highest.append(exponent + (int(present.max()) >> 12))
    if not lowest:
        return 0
    # Below every norm, so that no code of one is 0.
    return min(max(max(highest) - (_OCTAVES - 1), _LOWEST), min(lowest) - 1)


def rebase(codes: npt.NDArray[Any], exponent: int, to: int) -> Uint16:
    """Return codes that stand above another exponent for the same inverse norms.

    `to` is to be a `common_exponent` of theirs; what does not fit saturates.
    """
    moved = codes.astype(np.int64) + ((exponent - to) << 12)
    return np.where(codes > 0, np.minimum(moved, (1 << 16) - 1), 0).astype(np.uint16)


def unpack_inverse_norms(
    codes: Uint16, exponent: int | npt.NDArray[np.int64], out: Float32 | None = None
) -> Float32:
    """Return the inverse norms, float32 of the shape of `codes`, that `pack_norms` stored.

    They are written to `out`, if it is given. The exponent may be another one for each column. Code
    0 gives ``2^exponent``: not 0, but far below the inverse of any norm, unless some saturate. One
    conversion, one shift and one addition, because numpy converts uint16 to uint32 ten times as
    fast as float16 to float32.
    """
    bits = np.empty(codes.shape, np.uint32) if out is None else out.view(np.uint32)
    bits[...] = codes
    bits <<= np.uint32(_SHIFT)
    bits += np.asarray((exponent + _BIAS) << 23, np.uint32)
    return bits.view(np.float32)


def present_norms(codes: Uint16, exponent: int) -> Float32:
    """Return the inverse norms as `unpack_inverse_norms` does, but 0 for code 0."""
    inverse = unpack_inverse_norms(codes, exponent)
    inverse[codes == 0] = 0
    return inverse


def _clipped(inverse: npt.NDArray[np.float64]) -> Float32:
    """Return `inverse` as float32, within what a code can hold whatever the exponent."""
    largest = 2.0 ** (_HIGHEST + 1) * (1 - 2.0**-13)
    return np.clip(inverse, 2.0 ** (_LOWEST + 1), largest * (1 - 2.0**-13)).astype(np.float32)
