"""Word vectors and span norms in few bytes: int8 codes and 16-bit inverse norms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.spans.norms import checked
from slice_os.types import Float32

Int8 = npt.NDArray[np.int8]
Uint16 = npt.NDArray[np.uint16]

_SHIFT = 11  # bits of a float32's 23-bit mantissa that a code leaves out
_OCTAVES = 16  # powers of two that a code's 4 exponent bits tell apart
_LOWEST, _HIGHEST = -126, 127  # exponents of normal float32 numbers
_BIAS = 127


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


def unpack_inverse_norms(codes: Uint16, exponent: int | npt.NDArray[np.int64]) -> Float32:
    """Return the inverse norms, float32 of the shape of `codes`, that `pack_norms` stored.

    The exponent may be another one for each column. Code 0 gives ``2^exponent``: not 0, but far
    below the inverse of any norm, unless some saturate. One conversion, one shift and one addition,
    because numpy converts uint16 to uint32 ten times as fast as float16 to float32.
    """
    bits = codes.astype(np.uint32)
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
