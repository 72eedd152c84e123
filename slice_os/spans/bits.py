"""One bit a dimension of every word vector: what a scan of a large index reads first.

This is RaBitQ (Gao and Long, 2024). A word's vector w is turned by a rotation R that is the same
for all, and the signs of Rw are kept. With s the vector of these signs (1 or -1),

    q . w  is about  |w|^2 / |Rw|_1 * (Rq . s)

which is unbiased for a rotation taken at random; in 384 dimensions its standard deviation is about
0.04 |w|, and the errors of a span's words cancel in part. A query is rounded to eight levels, so
that Rq . s is made of the bits that word and query have in common (section 3.3 of the paper).
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import numpy.typing as npt

from slice_os.spans.packed import Int8, Uint8
from slice_os.types import Float32

PLANES = 4
"""Rows of bits that a query becomes: three of its levels, and one that counts a word's bits."""
_BLOCK = 4096
_STEP = 0.586
"""How far apart eight levels are best, in standard deviations of what is rounded (Max, 1960)."""


@cache
def rotation(dimension: int) -> Float32:
    """Return the rotation of vectors, float32 ``[d, D]``, D the next multiple of 8.

    Three times some signs are changed and a cosine transform is taken: made of numbers that are the
    same everywhere, and as good as one taken at random.
    """
    width = -(-dimension // 8) * 8
    numbers = np.arange(width)
    cosines = np.cos(np.pi / width * (numbers[:, None] + 0.5) * numbers) * np.sqrt(2 / width)
    cosines[:, 0] /= np.sqrt(2)
    digest = hashlib.shake_128(b"slice-os").digest(3 * width // 8)
    turned = np.eye(dimension, width)
    for bits in np.unpackbits(np.frombuffer(digest, np.uint8)).reshape(3, width):
        turned = (turned * (2.0 * bits - 1)) @ cosines
    return turned.astype(np.float32)


def word_bits(codes: Int8) -> tuple[Uint8, Uint8]:
    """Return the bits of word vectors, uint8 ``[N, D / 8]``, and ``|w|^2 / |Rw|_1``, uint8 ``[N]``.

    `codes` are the vectors' int8 codes ``[N, d]``; times a word's scale, the second is that of its
    vector. It is some 50, and varies by less than what rounding it adds.
    """
    turn = rotation(codes.shape[1])
    bits = np.empty((len(codes), turn.shape[1] // 8), np.uint8)
    ratios = np.empty(len(codes), np.uint8)
    for first in range(0, len(codes), _BLOCK):
        block = slice(first, first + _BLOCK)
        vectors = codes[block].astype(np.float32)
        turned = vectors @ turn
        bits[block] = np.packbits(turned >= 0, axis=1)
        sizes = np.maximum(np.abs(turned).sum(axis=1), 1)
        ratios[block] = np.minimum(np.rint(np.einsum("nd,nd->n", vectors, vectors) / sizes), 255)
    return bits, ratios


def query_planes(query: npt.NDArray[np.float32]) -> tuple[Uint8, Float32, np.float32]:
    """Return what a query ``[d]`` has to be compared with bits: planes, weights and a constant.

    With c the bits that a word has in common with each plane, uint8 ``[PLANES, D / 8]``, and the
    word's ratio r and scale, its product with the query is about ``(c . weights + constant) r
    scale``.
    """
    turned = query @ rotation(len(query))
    step = _STEP * max(float(np.sqrt(np.mean(turned**2))), 1e-12)
    levels = np.clip(np.floor(turned / step) + 4, 0, 7).astype(np.uint8)
    rounded = levels - np.float32(3.5)
    # So that the rounded query is neither longer nor shorter along the query itself.
    step = float(turned @ turned) / max(float(rounded @ turned), 1e-12)
    planes = [levels & 1, levels >> 1 & 1, levels >> 2, np.ones_like(levels)]
    weights = np.array([2, 4, 8, -7], np.float32) * np.float32(step)
    constant = step * (3.5 * len(levels) - float(levels.sum()))
    return np.packbits(planes, axis=1), weights, np.float32(constant)
