"""An int8 graph for an NVIDIA GPU: its weights in half precision.

CUDA has no kernels for dynamic quantisation: onnxruntime would run each product on one core of the
CPU, with copies both ways, and a batch's texts would share one scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from slice_os.errors import needs


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
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
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
