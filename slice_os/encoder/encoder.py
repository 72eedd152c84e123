"""The encoder: texts in, word vectors or text vectors out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np

from slice_os.encoder.batching import Segment, batches, segments
from slice_os.encoder.chunk import Chunk
from slice_os.encoder.info import DEFAULT_FOLDER, GRAPH, TOKENIZER, EncoderInfo
from slice_os.encoder.pool import Pool
from slice_os.encoder.runtime import Graph, usable_cores
from slice_os.encoder.tokens import TextTokenizer, TokenizedText
from slice_os.errors import EncoderError
from slice_os.records import Float32, Words

# Padded tokens a batch. On a CPU a text is a batch of its own: more is not faster, and an int8
# graph has one scale a batch, so that a text's vectors would depend on its neighbours.
_CPU_BUDGET, _GPU_BUDGET = 1, 16384
# What is read ahead: two chunks of this many texts or characters, whichever is less.
_CHUNK_TEXTS, _CHUNK_CHARACTERS = 64, 1 << 18


def load_encoder(
    folder: str | Path | None = None, device: str = "auto", threads: int | None = None
) -> Encoder:
    """Load the encoder in `folder`, or the packaged one (English, int8).

    Args:
        folder: An encoder folder, such as slice-os export makes.
        device: "auto" (a GPU where there is one that works), "cpu", "cuda", "tensorrt" or
            "openvino".
        threads: How many cores to use on a CPU; all that the process may use if None.

    Raises:
        EncoderError: The folder or the device is not usable.
        MissingExtraError: onnxruntime is not installed.
    """
    return Encoder(DEFAULT_FOLDER if folder is None else Path(folder), device, threads)


class Encoder:
    """A loaded encoder, which many threads may use at once.

    It owns a pool of threads; `close` it, use it as a context manager, or leave it to the
    interpreter's exit.

    Attributes:
        info: What the encoder's folder says about it.
        device: "cpu", "cuda", "tensorrt" or "openvino".
        threads: How many batches run at once.
    """

    def __init__(self, folder: Path, device: str = "auto", threads: int | None = None) -> None:
        """See `load_encoder`."""
        if threads is not None and threads < 1:
            raise EncoderError(f"An encoder cannot run on {threads} threads: use 1 or more.")
        self.info = EncoderInfo.load(folder)
        self._tokenizer = TextTokenizer(folder / TOKENIZER)
        self._graph = Graph(
            folder / GRAPH, device, self.info.dimension, self.info.precision == "int8"
        )
        self.device = self._graph.device
        # On a GPU one thread runs the graph while the other pools.
        self.threads = 2 if self._graph.on_gpu else threads or usable_cores()
        self._special = len(self._tokenizer.prefix) + len(self._tokenizer.suffix)
        self._capacity = self.info.max_tokens - self._special
        self._pool = Pool(self.threads)
        self._closed = False

    def __repr__(self) -> str:
        return f"<Encoder {self.info.name} {self.info.precision} on {self.device}>"

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the threads; batches that have not begun are dropped."""
        self._closed = True
        self._pool.close()

    def knows(self, text: str) -> bool:
        """Tell whether a text holds anything of the vocabulary.

        What is not in it is one token, whatever it is: to the encoder all such texts are the same.
        """
        return self._tokenizer.knows(text)

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order.

        Reads ahead by at most two chunks of 64 texts (more with many threads) or 262,144
        characters. Long texts are encoded in overlapping windows, and none of their tokens is
        lost. A text without words gives empty `Words`.

        Raises:
            EncoderError: The graph gave a vector that is not finite, or the encoder is closed.
        """
        running: deque[Chunk] = deque()
        try:
            # The next chunk is tokenized while the one before runs on the pool.
            for chunk in _chunks(texts, max(_CHUNK_TEXTS, 32 * self.threads)):
                running.append(self._start(self._tokenizer.split(chunk)))
                if len(running) > 1:
                    yield from running[0].words()
                    running.popleft()
            while running:
                yield from running[0].words()
                running.popleft()
        finally:
            for left in running:
                left.cancel()

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``.

        The vector of a text is the mean of its own tokens' vectors, as for a span; special tokens
        do not count. A text without tokens has a row of zeros.

        Raises:
            EncoderError: The graph gave a vector that is not finite, or the encoder is closed.
        """
        vectors = np.zeros((len(texts), self.info.dimension), np.float32)
        at = 0
        for chunk in _chunks(texts, 4 * max(_CHUNK_TEXTS, 32 * self.threads)):
            running = self._start(self._tokenizer.whole(chunk))
            try:
                running.add_to(vectors[at : at + len(chunk)])
            finally:
                running.cancel()
            at += len(chunk)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors

    def _start(self, texts: list[TokenizedText]) -> Chunk:
        """Put the batches of `texts` on the pool."""
        if self._closed:
            raise EncoderError("This encoder is closed: load it again.")
        rows = [row for i, text in enumerate(texts) for row in segments(i, text, self._capacity)]
        budget = _GPU_BUDGET if self._graph.on_gpu else _CPU_BUDGET
        planned = list(batches(rows, budget, self._special))
        chunk = Chunk(texts, self.info.dimension)
        if len(planned) == 1:
            # One query: a thread would only add its own delay.
            done: Future[list[Float32]] = Future()
            done.set_result(self._run(planned[0], texts))
            chunk.expect(planned[0], done)
            return chunk
        for batch in planned:
            chunk.expect(batch, self._pool.submit(partial(self._run, batch, texts)))
        return chunk

    def _run(self, batch: list[Segment], texts: list[TokenizedText]) -> list[Float32]:
        """Return, for each row of `batch`, the sums of its words' token vectors, ``[W, d]``."""
        prefix, suffix = self._tokenizer.prefix, self._tokenizer.suffix
        width = max(len(row.ids) for row in batch) + self._special
        ids = np.full((len(batch), width), self.info.pad_id, np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for i, row in enumerate(batch):
            filled = np.concatenate((prefix, row.ids, suffix))
            ids[i, : len(filled)] = filled
            mask[i, : len(filled)] = 1
        hidden = self._graph.run(ids, mask)
        sums = []
        for i, row in enumerate(batch):
            own = hidden[i, len(prefix) + row.skip : len(prefix) + row.stop]
            pooled = np.add.reduceat(own, row.first, axis=0)
            if not np.isfinite(pooled.sum()):
                raise EncoderError(
                    f"The encoder {self.info.name} gave a vector that is not finite for the text "
                    f"that begins with {texts[row.owner].text[:60]!r}: export it again with "
                    "another precision."
                )
            sums.append(pooled)
        return sums


def _chunks(texts: Iterable[str], most: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for text in texts:
        chunk.append(text)
        characters += len(text)
        if len(chunk) >= most or characters >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
