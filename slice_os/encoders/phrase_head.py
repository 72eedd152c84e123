"""The phrase head: what a span's words would have for a vector if they stood alone.

A span's vector in its context is not that of the same words alone, which is what a phrase is. The
head predicts the latter from the former c and from a static vector s of each wordpiece, which its
context does not change: ``h = A c + s``, summed over a span's words, so that all that is true of
sums of words is true of h (docs/architecture.md).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.errors import EncoderError
from slice_os.types import Float32, Int32

FILE = "phrase_head.npz"


@dataclass(frozen=True, eq=False)
class PhraseHead:
    """Two linear maps of a word: of its vector in context, and of its wordpieces.

    Attributes:
        context: float32 ``[d, d]``; a word's vector c ``[d]`` becomes ``c @ context``.
        codes: int8 ``[V, d]``; ``codes * scales`` are the static vectors of the wordpieces.
        scales: float32 ``[V]``.
    """

    context: Float32
    codes: npt.NDArray[np.int8]
    scales: Float32

    @classmethod
    def load(cls, path: Path) -> PhraseHead:
        """Read `FILE` of an encoder folder.

        Raises:
            EncoderError: it is not such a file.
        """
        try:
            with np.load(path, allow_pickle=False) as held:
                head = cls(*(held[name] for name in ("context", "codes", "scales")))
            dimension = head.context.shape[0]
            fits = (
                head.context.shape == (dimension, dimension)
                and head.codes.shape == (len(head.scales), dimension)
                and head.codes.dtype == np.int8
                and np.isfinite(head.context).all()
                and np.isfinite(head.scales).all()
            )
        except Exception as exc:  # zipfile and numpy's header parser raise many kinds
            raise EncoderError(f"{path} cannot be read ({exc}): export the encoder again.") from exc
        if not fits:
            raise EncoderError(f"The arrays of {path} do not fit: export the encoder again.")
        return cls(head.context.astype(np.float32), head.codes, head.scales.astype(np.float32))

    def to_bytes(self) -> bytes:
        """Return what `FILE` holds: equal heads give equal bytes."""
        stream = BytesIO()
        half = self.context.astype(np.float16)
        np.savez(stream, context=half, codes=self.codes, scales=self.scales)
        return stream.getvalue()

    @cached_property
    def hash(self) -> str:
        """What tells heads apart: the norms that an index stores are those of one head."""
        digest = hashlib.blake2b(digest_size=8)
        for part in (self.context.astype(np.float16), self.codes, self.scales):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def words(self, vectors: Float32, pieces: Int32, counts: npt.NDArray[Any]) -> Float32:
        """Return the head's vectors of a passage's words, float32 ``[N, d]``.

        Args:
            vectors: Their vectors in context, ``[N, d]``.
            pieces: The wordpieces of all of them, int ``[T]``.
            counts: How many of these are each word's, int ``[N]``; they sum to T.
        """
        static = self.codes[pieces] * self.scales[pieces, None]
        head_vectors: Float32 = vectors @ self.context + sum_by_word(static, counts)
        return head_vectors

    def project(self, queries: Float32) -> tuple[Float32, Float32]:
        """Return what unit `queries` ``[m, d]`` are for the vectors in context and for wordpieces.

        ``q . h = (A q) . c + q . s``: the first factor, float32 ``[m, d]``, and the products with
        the static vector of each wordpiece, ``[m, V]``.
        """
        import numkong

        # In 8 bits, as the scan of an embedded index: all rows of the table for every query.
        scales = np.maximum(np.abs(queries).max(axis=1), 1e-12).astype(np.float32) / 127
        codes = np.rint(queries / scales[:, None]).astype(np.int8)
        table = np.array(numkong.cdist(codes, self.codes, metric="dot", out_dtype="float32"))
        table *= scales[:, None] * self.scales
        # A row at a time: what a query gives does not depend on its company.
        return (queries[:, None] @ self.context.T)[:, 0], table


def sum_by_word(of_pieces: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the sums of what wordpieces have, ``[T, ...]``, by word: ``[N, ...]``.

    `counts` ``[N]`` says how many are each word's; they sum to T.
    """
    sums = np.zeros((len(counts), *of_pieces.shape[1:]), np.float32)
    held = np.flatnonzero(counts)
    if len(held):
        sizes = counts[held].astype(np.int64)
        sums[held] = np.add.reduceat(of_pieces, np.cumsum(sizes) - sizes, axis=0)
    return sums


def quantized(context: Float32, table: Float32) -> PhraseHead:
    """Return a head of a table of float vectors ``[V, d]``, each row rounded to 8 bits."""
    scales = (np.abs(table).max(axis=1) / 127).astype(np.float32)
    codes = np.rint(table / np.maximum(scales, 1e-12)[:, None]).astype(np.int8)
    return PhraseHead(context.astype(np.float16).astype(np.float32), codes, scales)
