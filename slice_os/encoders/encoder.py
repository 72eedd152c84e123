"""The encoder interface, the table of its kinds, and `load_encoder`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from threading import Lock
from typing import NamedTuple, TypeVar, overload

import numpy as np

from slice_os.encoders.info import DEFAULT_FOLDER, DESCRIPTION, GRAPH, EncoderInfo
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.errors import EncoderError
from slice_os.text.normal_form import plain
from slice_os.types import Float32, Int32, Words

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Self = TypeVar("Self", bound="Encoder")  # in typing since Python 3.11
REMEMBERED = 1 << 15
"""Vectors of texts that `StandaloneVectors` remembers: 50 MB of 384 dimensions."""


class Encoder(ABC):
    """Texts in, vectors out: `encode` for whole texts, `encode_words` for every word in context.

    A kind of encoder gives `info` and `encode_words`, and a row in `ENCODERS`; the rest has a
    default. `close` it, or use it as a context manager.

    Attributes:
        info: Its name, dimension and weights hash; vectors of the same weights may share an index.
        device: Where it runs.
        head: Its phrase head; None: a span's vector in context is taken for that of its words.
    """

    info: EncoderInfo
    device: str = "cpu"
    head: PhraseHead | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.info.name} {self.info.precision} on {self.device}>"

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - most kinds hold nothing that must be closed
        """Free what the encoder holds."""

    @abstractmethod
    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order and in bounded memory."""

    def encode_tokens(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the tokens of each text with their vectors, each with its word's characters.

        An encoder that has no tokens below words yields the words.
        """
        return self.encode_words(texts)

    @overload
    def encode(self, texts: str) -> Vector: ...  # type: ignore[overload-overlap]
    @overload
    def encode(self, texts: Sequence[str]) -> Matrix: ...
    def encode(self, texts: str | Sequence[str]) -> Vector | Matrix:
        """Return the unit vector of a text, float32 ``[d]``, or those of several, ``[n, d]``.

        The vector of a text is the mean of its words' vectors, as for a span, at unit length. A
        text that the encoder knows nothing of has zeros.

        Raises:
            EncoderError: A vector is not finite, or the encoder is closed.
        """
        vectors = self._vectors([texts] if isinstance(texts, str) else texts)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Matrix = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return unit[0] if isinstance(texts, str) else unit

    def knows(self, text: str) -> bool:
        """Tell whether a text holds a word with a vector."""
        return any(words.vectors.any() for words in self.encode_words([text]))

    def pieces(self, text: str) -> Int32:
        """Return the wordpieces of a text, int32 ``[T]``; an encoder without any has none."""
        (words,) = self.encode_words([text])
        return np.zeros(0, np.int32) if words.pieces is None else words.pieces

    def _vectors(self, texts: Sequence[str]) -> Float32:
        """Return vectors of whole texts, ``[n, d]``, of any norm: by default their words' sums."""
        sums = np.zeros((len(texts), self.info.dimension), np.float32)
        for row, words in enumerate(self.encode_words(texts)):
            sums[row] = words.vectors.sum(axis=0)
        return sums


class StandaloneVectors:
    """An encoder's vectors of texts by their words alone (`text.plain`), each encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._lock = Lock()
        self._rows: OrderedDict[str, int] = OrderedDict()
        # One block: arrays of their own would scatter, and the heap keep what lies between them.
        self._vectors = np.empty((REMEMBERED, encoder.info.dimension), np.float32)

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of texts, float32 ``[n, d]``, whatever their punctuation."""
        words = list(map(plain, texts))
        places = {text: place for place, text in enumerate(dict.fromkeys(words))}
        vectors = np.empty((len(places), self.encoder.info.dimension), np.float32)
        with self._lock:
            rows = {text: self._rows[text] for text in places if text in self._rows}
            vectors[[places[text] for text in rows]] = self._vectors[[*rows.values()]]
        missing = [text for text in places if text not in rows]
        if missing:
            vectors[[places[text] for text in missing]] = self.encoder.encode(missing)
            with self._lock:
                for text in missing:
                    if text in self._rows:  # another thread was first
                        continue
                    row = len(self._rows)
                    if row == REMEMBERED:
                        _, row = self._rows.popitem(last=False)
                    self._rows[text] = row
                    self._vectors[row] = vectors[places[text]]
        return vectors[[places[text] for text in words]]


EncoderLike = Encoder | str | os.PathLike[str] | None
"""An encoder, or where one is; None is the packaged one."""


class EncoderKind(NamedTuple):
    """A kind of encoder that `load_encoder` loads.

    `loader` is ``module:name`` of what is called with the path, the device and the number of
    threads; it is imported when it is used. `recognises` tells whether an existing path is one.
    """

    loader: str
    recognises: Callable[[Path], bool]


ENCODERS = {
    "static": EncoderKind("slice_os.encoders.static:StaticEncoder", Path.is_file),
    "onnx": EncoderKind(
        "slice_os.encoders.onnx:OnnxEncoder",
        lambda path: any((path / name).is_file() for name in (DESCRIPTION, GRAPH)),
    ),
    "torch": EncoderKind(
        "slice_os.exporters.pooled:CheckpointEncoder.load",
        lambda path: any((path / name).is_file() for name in ("config.json", "modules.json")),
    ),
}
"""Name -> kind; the last that recognises a path loads it, so that a new row comes first."""


def load_encoder(
    encoder: EncoderLike = None, device: str = "auto", threads: int | None = None
) -> Encoder:
    """Load an encoder; an encoder that is given is returned, and stays its owner's to close.

    >>> with slice_os.load_encoder() as encoder:
    ...     encoder.encode(["wants to cancel", "thank you"]).shape
    (2, 384)

    Args:
        encoder: An encoder folder (slice-os export makes one), a checkpoint folder, a file of word
            vectors in GloVe's text format, or what else `ENCODERS` knows; the packaged encoder
            (English, int8) if None.
        device: "auto" (a GPU where there is one that works), "cpu" or "cuda"; an encoder folder
            also runs on "tensorrt" and "openvino".
        threads: How many cores an encoder folder uses on a CPU; all that the process may if None.

    Raises:
        EncoderError: There is no encoder, it is not usable, or the device is not there.
        ExportError: The checkpoint is not usable.
        MissingExtraError: onnxruntime is not installed, or torch for a checkpoint.
    """
    if not isinstance(encoder, (str, os.PathLike, type(None))):
        return encoder
    path = DEFAULT_FOLDER if encoder is None else Path(encoder)
    loaded: Encoder = resolve_name(_kind_of(path).loader)(path, device, threads)
    return loaded


def _kind_of(path: Path) -> EncoderKind:
    for kind in reversed(ENCODERS.values()):
        if kind.recognises(path):
            return kind
    raise EncoderError(
        f"There is no encoder at {path}",
        hint="give an encoder folder (slice-os export makes one), a checkpoint folder or a file of "
        "word vectors in GloVe's text format.",
    )


@contextmanager
def open_encoder(
    encoder: EncoderLike = None, device: str = "auto", threads: int | None = None
) -> Iterator[Encoder]:
    """Give an encoder as `load_encoder` does, and close it afterwards unless it was given."""
    loaded = load_encoder(encoder, device, threads)
    try:
        yield loaded
    finally:
        if loaded is not encoder:
            loaded.close()


def encoder_info(encoder: EncoderLike = None, *, check: bool = False) -> EncoderInfo:
    """Return the name, dimension and weights hash of an encoder, by default of the packaged one.

    Of an encoder folder only the description is read; with `check`, `model.onnx` is read too and
    compared with its hash.

    >>> slice_os.encoder_info().dimension
    384

    Raises:
        EncoderError: There is no encoder, or its folder is incomplete or not as described.
    """
    path = DEFAULT_FOLDER if encoder is None else encoder
    if isinstance(path, (str, os.PathLike)) and _kind_of(Path(path)) is ENCODERS["onnx"]:
        return EncoderInfo.load(path, check=check)
    with open_encoder(encoder) as loaded:
        return loaded.info
