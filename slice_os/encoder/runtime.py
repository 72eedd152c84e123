"""The ONNX graph: one padded batch at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from slice_os.encoder.providers import PROVIDERS, open_session
from slice_os.errors import EncoderError
from slice_os.records import Float32
from slice_os.threads import Forkable, whole_at_fork

Int64 = npt.NDArray[np.int64]
Loaded = TypeVar("Loaded")
_loaded: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def shared(load: Callable[..., Loaded], path: Path, *settings: object) -> Loaded:
    """Return ``load(path, *settings)``, or what that gave before, while somebody still has it.

    So encoders of one folder have its graph in memory once. A file that was written since is loaded
    anew; so does a forked process, to which what its parent has on a device is of no use.
    """
    try:
        own = path.stat()
    except OSError:
        return load(path, *settings)  # it says what is missing
    file = (path.resolve(), own.st_ino, own.st_size, own.st_mtime_ns)
    key = (os.getpid(), load, *file, *settings)
    found: Loaded | None = _loaded.get(key)
    if found is None:
        found = _loaded[key] = load(path, *settings)
    return found


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Graph(Forkable):
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
        self._inputs = {one.name: _int_type(path, one) for one in self._session.get_inputs()}
        self._output = self._vectors_output(path, dimension)
        self._lost = False
        self.watch_forks()

    def forked(self) -> None:
        """Keep what the CPU runs, which has no threads; a device is its parent's alone."""
        self._lost = self.device != "cpu"

    def _vectors_output(self, path: Path, dimension: int) -> str:
        outputs = self._session.get_outputs()
        ranked = sorted(outputs, key=lambda one: one.name != "last_hidden_state")
        for one in ranked:
            if len(one.shape) == 3 and one.shape[2] in (dimension, None):
                return str(one.name)
            if len(one.shape) == 3 and isinstance(one.shape[2], str):
                return str(one.name)
        shapes = ", ".join(f"{one.name} {one.shape}" for one in outputs)
        raise EncoderError(
            f"{path} gives {shapes} and not vectors of dimension {dimension}: export the encoder "
            "again with slice-os export."
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
        if self._lost:
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
        with whole_at_fork():
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
