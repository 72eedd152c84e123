"""The ONNX session: device choice and one padded batch at a time."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import EncoderError, MissingExtraError, SliceOSError
from slice_os.records import Float32

Int64 = npt.NDArray[np.int64]


class Provider(NamedTuple):
    """An execution provider of onnxruntime. What it lacks runs on the next of `names`, or the CPU.

    `title` is what people call it, `install` what brings it; `on_gpu` says whether it runs on an
    NVIDIA GPU.
    """

    names: tuple[str, ...]
    title: str
    install: str
    on_gpu: bool


_CUDA = "CUDAExecutionProvider"
PROVIDERS = {
    "cuda": Provider((_CUDA,), "CUDA", "pip install 'slice-os[gpu]'", True),
    "tensorrt": Provider(
        ("TensorrtExecutionProvider", _CUDA),
        "TensorRT",
        "pip install 'slice-os[gpu]' and NVIDIA's TensorRT libraries",
        True,
    ),
    "openvino": Provider(
        ("OpenVINOExecutionProvider",), "OpenVINO", "pip install onnxruntime-openvino", False
    ),
}
"""Device -> provider."""
DEVICES = ("auto", "cpu", *PROVIDERS)


class MissingRuntimeError(MissingExtraError):
    """Nothing here can run an encoder."""

    def __init__(self, package: str) -> None:
        SliceOSError.__init__(
            self,
            f"Encoding needs the package {package}: pip install 'slice-os[cpu]', or pip install "
            "'slice-os[gpu]' on a machine with an NVIDIA GPU.",
        )
        self.extra = "cpu"


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

    def __init__(self, path: Path, device: str, dimension: int) -> None:
        """Load `path` on `device`, one of `DEVICES`; "auto" is a GPU by CUDA where there is one.

        Raises:
            EncoderError: The graph is broken or of another dimension, or the device is not there.
            MissingExtraError: onnxruntime is not installed.
        """
        if device not in DEVICES:
            raise EncoderError(f"There is no device {device!r}: use {', '.join(DEVICES)}.")
        try:
            import onnxruntime as ort
        except ImportError as exc:
            raise MissingRuntimeError("onnxruntime") from exc
        wanted = _provider(device, ort.get_available_providers())
        if wanted and wanted.on_gpu and hasattr(ort, "preload_dlls"):
            ort.preload_dlls()  # finds the CUDA libraries of NVIDIA's own Python packages
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = _session(path, options, wanted.names if wanted else ())
        used = self._session.get_providers()
        running = (name for name, one in PROVIDERS.items() if one.names[0] == used[0])
        self.device = next(running, "cpu")
        self.on_gpu = self.device != "cpu" and PROVIDERS[self.device].on_gpu
        if wanted and device not in ("auto", self.device):
            raise EncoderError(
                f"onnxruntime found no usable GPU or no {wanted.title} libraries: check "
                f"nvidia-smi and {wanted.install}, or use the device cpu."
            )
        self._one_at_a_time = threading.Lock()
        self._inputs = {one.name: _int_type(path, one) for one in self._session.get_inputs()}
        self._output = self._vectors_output(path, dimension)

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

    def run(self, ids: Int64, mask: Int64) -> Float32:
        """Return the token vectors of a padded batch.

        Args:
            ids: int64 ``[B, T]`` token ids.
            mask: int64 ``[B, T]``, 0 where `ids` is padding.

        Returns:
            float32 ``[B, T, d]``; rows of padding hold anything.
        """
        width = ids.shape[1]
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
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


def _session(path: Path, options: Any, providers: tuple[str, ...]) -> Any:
    """Load a graph for `providers`, or for the CPU alone where they do not start.

    Raises:
        EncoderError: The graph is broken.
    """
    import onnxruntime as ort

    try:
        return ort.InferenceSession(
            str(path),
            options,
            providers=[*providers, "CPUExecutionProvider"],
            enable_fallback=0,  # onnxruntime's own prints to standard output
        )
    except Exception as exc:  # onnxruntime has one class an error code, all private
        if providers:
            return _session(path, options, ())
        raise EncoderError(
            f"onnxruntime cannot load {path} ({str(exc).splitlines()[0]}): export the encoder "
            "again with slice-os export."
        ) from exc


def _provider(device: str, available: list[str]) -> Provider | None:
    """Return the provider of `device`, None for the CPU.

    Raises:
        EncoderError: The installed onnxruntime has it not.

    """
    if device == "auto":
        return PROVIDERS["cuda"] if _CUDA in available else None
    if device == "cpu":
        return None
    provider = PROVIDERS[device]
    if provider.names[0] not in available:
        raise EncoderError(
            f"The installed onnxruntime has no {provider.title}: pip uninstall onnxruntime, then "
            f"{provider.install}."
        )
    return provider


def _int_type(path: Path, entry: Any) -> type[np.int64] | type[np.int32]:
    known = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    if entry.name not in names or entry.type not in known:
        raise EncoderError(
            f"{path} asks for the input {entry.name} of {entry.type}, which slice-os cannot give: "
            "export the encoder again with slice-os export."
        )
    return known[entry.type]
