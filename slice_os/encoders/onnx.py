"""An encoder folder, run by onnxruntime: windows of long texts, batches on a pool of threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from slice_os.encoders.batching import Pool, RunningWindow, Window, batches, windows_of
from slice_os.encoders.devices import PROVIDERS, open_session
from slice_os.encoders.encoder import Encoder
from slice_os.encoders.info import DESCRIPTION, GRAPH, TOKENIZER, EncoderInfo
from slice_os.encoders.phrase_head import FILE as HEAD
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.encoders.tokens import TextTokenizer, TokenizedText
from slice_os.errors import EncoderError
from slice_os.types import Float32, Int32, Words

Int64 = npt.NDArray[np.int64]
Loaded = TypeVar("Loaded")
_loaded: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def shared(load: Callable[..., Loaded], path: Path, *settings: object) -> Loaded:
    """Return ``load(path, *settings)``, or what that gave before, while somebody still has it.

    So encoders of one folder have its graph in memory once. A file that was written since is loaded
    anew; so does a forked process, to which what its parent has on a device is of no use.
    """
    try:
        status = path.stat()
    except OSError:
        return load(path, *settings)  # it says what is missing
    file = (path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns)
    key = (os.getpid(), load, *file, *settings)
    loaded: Loaded | None = _loaded.get(key)
    if loaded is None:
        loaded = _loaded[key] = load(path, *settings)
    return loaded


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Graph:
    """An ONNX graph from padded token ids to token vectors, safe to call from many threads.

    Every run uses one core (on a GPU: one run at a time); use as many threads as there are cores.

    Attributes:
        device: "cpu" or a key of `PROVIDERS`.
        on_gpu: Whether that is an NVIDIA GPU.
    """

    def __init__(self, path: Path, device: str, dimension: int, quantized: bool = False) -> None:
        """Load `path` on `device`, one of `DEVICES`; "auto" is a GPU by CUDA where there is one.

        On a GPU a `quantized` graph runs in half precision.

        Raises:
            EncoderError: The graph is broken or of another dimension, or the device is not there.
            MissingExtraError: onnxruntime is not installed, or onnx for a quantized graph on a GPU.
        """
        self._session, self.device = open_session(path, device, quantized)
        self.on_gpu = self.device != "cpu" and PROVIDERS[self.device].on_gpu
        self._one_at_a_time = threading.Lock()
        self._inputs = {entry.name: _int_type(path, entry) for entry in self._session.get_inputs()}
        self._output = self._vectors_output(path, dimension)
        self._process = os.getpid()

    def _vectors_output(self, path: Path, dimension: int) -> str:
        outputs = self._session.get_outputs()
        ranked = sorted(outputs, key=lambda output: output.name != "last_hidden_state")
        for output in ranked:
            if len(output.shape) == 3 and output.shape[2] in (dimension, None):
                return str(output.name)
            if len(output.shape) == 3 and isinstance(output.shape[2], str):
                return str(output.name)
        shapes = ", ".join(f"{output.name} {output.shape}" for output in outputs)
        raise EncoderError(
            f"{path} gives {shapes} and not vectors of dimension {dimension}",
            hint="export the encoder again with slice-os export.",
        )

    def run(self, ids: Int64, mask: Int64, types: Int64 | None = None) -> Float32:
        """Return the token vectors of a padded batch.

        Args:
            ids: int64 ``[B, T]`` token ids.
            mask: int64 ``[B, T]``, 0 where `ids` is padding.
            types: int64 ``[B, T]``, for a graph that reads two texts; all 0 if None.

        Returns:
            float32 ``[B, T, d]``; rows of padding hold anything.

        Raises:
            EncoderError: The process was forked off the one that loaded the graph on a device.
        """
        if self.device != "cpu" and self._process != os.getpid():
            raise EncoderError(
                f"The encoder was loaded on {self.device} before this process was forked: start "
                "processes by 'spawn', or load the encoder in each of them."
            )
        width = ids.shape[1]
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids) if types is None else types,
            "position_ids": np.broadcast_to(np.arange(width), ids.shape),
        }
        feed = {name: given[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        if self.on_gpu:
            return self._run_bound(feed)
        vectors: Float32 = self._session.run([self._output], feed)[0]
        return vectors.astype(np.float32, copy=False)

    def _run_bound(self, feed: dict[str, Any]) -> Float32:
        # Bound inputs and outputs cross to the GPU and back once each, without a copy in between.
        binding = self._session.io_binding()
        for name, array in feed.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(array))
        binding.bind_output(self._output, "cpu")
        with self._one_at_a_time:
            self._session.run_with_iobinding(binding)
            vectors: Float32 = binding.copy_outputs_to_cpu()[0]
        return vectors.astype(np.float32, copy=False)


def _int_type(path: Path, entry: Any) -> type[np.int64] | type[np.int32]:
    known = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    if entry.name not in names or entry.type not in known:
        raise EncoderError(
            f"{path} asks for the input {entry.name} of {entry.type}, which slice-os cannot give: "
            "export the encoder again with slice-os export."
        )
    return known[entry.type]


# Padded tokens a batch. On a CPU a text is a batch of its own: more is not faster, and an int8
# graph has one scale a batch, so that a text's vectors would depend on its neighbours.
_CPU_BUDGET, _GPU_BUDGET = 1, 16384
# What is read ahead: two chunks of this many texts or characters, whichever is less.
_CHUNK_TEXTS, _CHUNK_CHARACTERS = 64, 1 << 18


class OnnxEncoder(Encoder):
    """The encoder in a folder such as slice-os export makes; many threads may use it at once.

    It owns a pool of threads; `close` it, use it as a context manager, or leave it to the
    interpreter's exit.

    Attributes:
        device: "cpu", "cuda", "tensorrt" or "openvino".
        threads: How many batches run at once.
    """

    def __init__(self, folder: Path, device: str = "auto", threads: int | None = None) -> None:
        """Load the encoder in `folder`; see `slice_os.encoders.load_encoder`."""
        if threads is not None and threads < 1:
            raise EncoderError(f"An encoder cannot run on {threads} threads: use 1 or more.")
        self.info = EncoderInfo.load(folder)
        self._tokenizer = shared(TextTokenizer, folder / TOKENIZER)
        self._graph = shared(
            Graph, folder / GRAPH, device, self.info.dimension, self.info.precision == "int8"
        )
        self.head = load_head(folder, self.info)
        if self.head and len(self.head.codes) != self._tokenizer.vocabulary:
            raise EncoderError(
                f"{folder / HEAD} is of another tokenizer: export the encoder again."
            )
        self.device = self._graph.device
        # On a GPU one thread runs the graph while the other pools.
        self.threads = 2 if self._graph.on_gpu else threads or usable_cores()
        self._special = len(self._tokenizer.prefix) + len(self._tokenizer.suffix)
        self._capacity = self.info.max_tokens - self._special
        self._pool = Pool(self.threads)
        self._closed = False

    def pieces(self, text: str) -> Int32:
        """Return the wordpieces of a text, int32 ``[T]``; see `Words.pieces`."""
        (split,) = self._tokenizer.split([text])
        return self._tokenizer.pieces(split)[0]

    def encode_pieces(self) -> Float32:
        """Return the vector of each wordpiece alone, float32 ``[V, d]``."""
        prefix, suffix = self._tokenizer.prefix, self._tokenizer.suffix
        table = np.empty((self._tokenizer.vocabulary, self.info.dimension), np.float32)
        for first in range(0, len(table), _CHUNK_TEXTS):
            rows = np.arange(first, min(first + _CHUNK_TEXTS, len(table)))
            ids = np.concatenate(
                (np.tile(prefix, (len(rows), 1)), rows[:, None], np.tile(suffix, (len(rows), 1))),
                axis=1,
            )
            table[rows] = self._graph.run(ids, np.ones_like(ids))[:, len(prefix)]
        return table

    def close(self) -> None:
        """Stop the threads; batches that have not begun are dropped."""
        self._closed = True
        self._pool.close()

    def knows(self, text: str) -> bool:
        """Tell whether a text holds a token of the vocabulary: the unknown ones are all alike."""
        return self._tokenizer.knows(text)

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order.

        Reads ahead by at most two chunks of 64 texts (more with many threads) or 262,144
        characters. Long texts are encoded in overlapping windows, and none of their tokens is
        lost. A text without words gives empty `Words`.

        Raises:
            EncoderError: The graph gave a vector that is not finite, or the encoder is closed.
        """
        return self._encode(texts, by_token=False)

    def encode_tokens(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the tokens of each text with their vectors, each with its word's characters."""
        return self._encode(texts, by_token=True)

    def _encode(self, texts: Iterable[str], *, by_token: bool) -> Iterator[Words]:
        ahead: deque[tuple[list[TokenizedText], list[list[RunningWindow]]]] = deque()
        try:
            # The next chunk is tokenized while the one before runs on the pool.
            for chunk in _chunks(texts, max(_CHUNK_TEXTS, 32 * self.threads)):
                split = self._tokenizer.split(chunk, by_token=by_token)
                ahead.append((split, self._start(split)))
                if len(ahead) > 1:
                    yield from self._words(*ahead[0])
                    ahead.popleft()
            while ahead:
                yield from self._words(*ahead[0])
                ahead.popleft()
        finally:
            for _, running in ahead:
                _cancel(running)

    def _words(
        self, texts: list[TokenizedText], running: list[list[RunningWindow]]
    ) -> Iterator[Words]:
        """Yield the words of each text, waiting for its windows."""
        for text, windows in zip(texts, running, strict=True):
            first, starts, ends, _ = text.words
            if len(windows) == 1:
                vectors = windows[0].sums()
            else:
                vectors = np.zeros((len(first), self.info.dimension), np.float32)
                for running_window in windows:
                    sums = running_window.sums()
                    word = running_window.window.word
                    vectors[word : word + len(sums)] += sums
            windows.clear()  # so that what the caller drops is freed
            yield Words(starts, ends, vectors, *self._tokenizer.pieces(text))

    def _vectors(self, texts: Sequence[str]) -> Float32:
        """Return the sums of the texts' own tokens' vectors; special tokens do not count."""
        vectors = np.zeros((len(texts), self.info.dimension), np.float32)
        rows = iter(vectors)
        for chunk in _chunks(texts, 4 * max(_CHUNK_TEXTS, 32 * self.threads)):
            running = self._start(self._tokenizer.whole(chunk))
            try:
                for windows, row in zip(running, rows, strict=False):
                    for running_window in windows:
                        row += running_window.sums().sum(axis=0)
            finally:
                _cancel(running)
        return vectors

    def _start(self, texts: list[TokenizedText]) -> list[list[RunningWindow]]:
        """Put the batches of `texts` on the pool; return the windows of each."""
        if self._closed:
            raise EncoderError("This encoder is closed: load it again.")
        rows = [row for i, text in enumerate(texts) for row in windows_of(i, text, self._capacity)]
        budget = _GPU_BUDGET if self._graph.on_gpu else _CPU_BUDGET
        planned = list(batches(rows, budget, self._special))
        running: list[list[RunningWindow]] = [[] for _ in texts]
        for batch in planned:
            task = partial(self._run, batch, texts)
            if len(planned) == 1:  # one query: a thread would only add its own delay
                sums: Future[list[Float32]] = Future()
                sums.set_result(task())
            else:
                sums = self._pool.submit(task)
            for place, row in enumerate(batch):
                running[row.owner].append(RunningWindow(row, sums, place))
        return running

    def _run(self, batch: list[Window], texts: list[TokenizedText]) -> list[Float32]:
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
            tokens = hidden[i, len(prefix) + row.skip : len(prefix) + row.stop]
            pooled = np.add.reduceat(tokens, row.first, axis=0)
            if not np.isfinite(pooled.sum()):
                raise EncoderError(
                    f"The encoder {self.info.name} gave a vector that is not finite for the text "
                    f"that begins with {texts[row.owner].text[:60]!r}: export it again with "
                    "another precision."
                )
            sums.append(pooled)
        return sums


def load_head(folder: Path, info: EncoderInfo) -> PhraseHead | None:
    """Return the phrase head of an encoder folder; None if it has none.

    Raises:
        EncoderError: It is missing, or not the one that the folder's description names.
    """
    if not info.phrase_head:
        return None
    head: PhraseHead = shared(PhraseHead.load, folder / HEAD)
    if len(head.context) != info.dimension or head.hash != info.phrase_head:
        raise EncoderError(
            f"{folder / HEAD} is not the phrase head that {DESCRIPTION} names: export the encoder "
            "again or copy it again."
        )
    return head


def _cancel(running: list[list[RunningWindow]]) -> None:
    """Drop the batches that have not begun."""
    for windows in running:
        for running_window in windows:
            running_window.batch.cancel()


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
