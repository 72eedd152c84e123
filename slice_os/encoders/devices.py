"""Devices: which execution provider of onnxruntime runs a graph, and whether it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slice_os.errors import EncoderError, MissingExtraError, SliceOSError, needs


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
_SLOWER = ["SkipLayerNormFusion"]
"""What onnxruntime fuses by default, and int8 graphs run 11 % faster on a CPU without."""


class MissingRuntimeError(MissingExtraError):
    """Nothing here can run an encoder."""

    def __init__(self, package: str) -> None:
        SliceOSError.__init__(
            self,
            f"Encoding needs the package {package}: pip install 'slice-os[cpu]', or pip install "
            "'slice-os[gpu]' on a machine with an NVIDIA GPU.",
        )
        self.extra = "cpu"


def open_session(path: Path, device: str, quantized: bool) -> tuple[Any, str]:
    """Load a graph; return its session and the device that runs it, "cpu" or of `PROVIDERS`.

    Args:
        path: The graph.
        device: One of `DEVICES`; "auto" is a GPU by CUDA where there is one.
        quantized: Whether the graph is int8: on a GPU it runs in half precision.

    Raises:
        EncoderError: The graph is broken, or the device is not there.
        MissingExtraError: onnxruntime is not installed, or onnx for a quantized graph on a GPU.
    """
    if device not in DEVICES:
        raise EncoderError(f"There is no device {device!r}: use {', '.join(DEVICES)}.")
    try:
        import onnxruntime as ort
    except ImportError as exc:
        raise MissingRuntimeError("onnxruntime") from exc
    provider = _provider(device, ort.get_available_providers())
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if provider:
        if provider.on_gpu and hasattr(ort, "preload_dlls"):
            ort.preload_dlls()  # finds the CUDA libraries of NVIDIA's own Python packages
        try:
            session = _start(str(path), options, provider)
            if session and quantized and provider.on_gpu:
                session = _start(half_precision(path), options, provider)
            if session:
                return session, "cuda" if device == "auto" else device
        except MissingExtraError:
            if device != "auto":
                raise
    try:
        session = ort.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
        )
    except Exception as exc:  # onnxruntime has one class an error code, all private
        raise EncoderError(
            f"onnxruntime cannot load {path} ({str(exc).splitlines()[0]})",
            hint="export the encoder again with slice-os export.",
        ) from exc
    if provider and device != "auto":
        raise EncoderError(
            f"onnxruntime found no usable GPU or no {provider.title} libraries: check "
            f"nvidia-smi and {provider.install}, or use the device cpu."
        )
    return session, "cpu"


def _start(graph: str | bytes, options: Any, provider: Provider) -> Any:
    """Load a graph, of a file or in memory, for `provider`; None where it does not start."""
    import onnxruntime as ort

    names = [*provider.names, "CPUExecutionProvider"]
    try:
        # onnxruntime's own fallback prints to standard output.
        session = ort.InferenceSession(graph, options, providers=names, enable_fallback=0)
    except Exception:  # no GPU, or a broken graph, which the CPU will say
        return None
    return session if session.get_providers()[0] == names[0] else None


def _provider(device: str, available: list[str]) -> Provider | None:
    """Return the provider of `device`, None for the CPU; EncoderError if it is not installed."""
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


def half_precision(path: Path) -> bytes:
    """Return the graph at `path`, an int8 export of slice-os, with float16 weights.

    Its vectors are those of the rounded weights, without the rounding of activations.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    with needs("Running an int8 encoder on an NVIDIA GPU", "gpu"):
        import onnx
        from onnxruntime.transformers.float16 import (
            DEFAULT_OP_BLOCK_LIST,
            convert_float_to_float16,
        )
        from onnxruntime.transformers.onnx_model import OnnxModel
    model = onnx.load(str(path))
    weights = {
        weight.name: onnx.numpy_helper.to_array(weight) for weight in model.graph.initializer
    }
    users: dict[str, Any] = {name: node for node in model.graph.node for name in node.input}
    makers: dict[str, Any] = {name: node for node in model.graph.node for name in node.output}

    def plain(weight: str, scale: str, zero: str) -> str:
        """Add the matrix that `weight` stands for; output channels are its last axis."""
        matrix = (weights[weight].astype(np.float32) - weights[zero]) * weights[scale]
        name = f"{weight}_plain"
        model.graph.initializer.append(onnx.numpy_helper.from_array(matrix, name))
        return name

    products = {}  # the last node of each quantised product -> the product
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            quantized, weight, _, zero = node.input
            cast = users[node.output[0]]
            rescale = users[cast.output[0]]
            quantizer = makers[quantized]
            (scales,) = (makers[name] for name in rescale.input if name != cast.output[0])
            (scale,) = (name for name in scales.input if name != quantizer.output[1])
            names = [quantizer.input[0], plain(weight, scale, zero)]
            products[rescale.output[0]] = onnx.helper.make_node("MatMul", names, rescale.output)
        elif node.op_type == "DequantizeLinear" and node.input[0] in makers:
            gather = makers[node.input[0]]
            if gather.op_type == "Gather" and gather.input[0] in weights:
                names = [plain(gather.input[0], *node.input[1:]), gather.input[1]]
                products[node.output[0]] = onnx.helper.make_node("Gather", names, node.output)
    nodes = [products.get(node.output[0], node) for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    OnnxModel(model).prune_graph(allow_remove_graph_inputs=False)
    # What is left to dequantise, such as MPNet's relative positions, has a scale of float32.
    blocked = [*DEFAULT_OP_BLOCK_LIST, "DequantizeLinear"]
    converted = convert_float_to_float16(model, keep_io_types=False, op_block_list=blocked)
    half: bytes = converted.SerializeToString()
    return half
