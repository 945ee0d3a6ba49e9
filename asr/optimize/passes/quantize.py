"""Weights of fp32 multiplications to signed bytes, one scale per column; inputs at run time.

Assumes: nothing of the weights. Lossy: what it does to the text is measured, never assumed. One
scale per column has two thirds of the error of one scale per matrix and costs no time. The bias
goes into the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asr.optimize.graph import MICROSOFT, Array, Graph, attributes

if TYPE_CHECKING:
    import onnx


def run(graph: Graph) -> int:
    """Quantise every multiplication by a matrix of weights.

    Returns:
        how many were quantised.
    """
    done = 0
    for node in graph.of_type("MatMul", "Gemm"):
        weight = graph.constant(node.input[1])
        if weight is None or weight.ndim != 2 or weight.dtype != np.float32:
            continue
        if node.op_type == "Gemm":  # what onnxsim makes of a product and a sum
            how = attributes(node)
            if how.get("transA", 0) or {how.get("alpha", 1), how.get("beta", 1)} != {1}:
                continue
            weight = weight.T if how.get("transB", 0) else weight
            result, bias = node.output[0], [*node.input, ""][2]
            if bias and not _is_bias(graph, bias, weight):
                continue
        else:
            result, bias = _product_and_bias(graph, node, weight)
        values, scales = to_bytes(weight)
        (product,) = graph.add(
            "DynamicQuantizeMatMul",
            [
                node.input[0],
                graph.add_constant(values),
                graph.add_constant(scales),
                graph.add_constant(np.zeros(len(scales), np.int8)),
                bias,
            ],
            domain=MICROSOFT,
        )
        graph.replace(result, product)
        done += 1
    return done


def _product_and_bias(graph: Graph, node: onnx.NodeProto, weight: Array) -> tuple[str, str]:
    """What to replace, and the bias that is added to the product, if one is."""
    add = graph.only_user(node.output[0], "Add")
    if add is not None:
        (other,) = [name for name in add.input if name != node.output[0]] or [""]
        if other and _is_bias(graph, other, weight):
            return add.output[0], other
    return node.output[0], ""


def _is_bias(graph: Graph, tensor: str, weight: Array) -> bool:
    offset = graph.constant(tensor)
    return offset is not None and offset.shape == (weight.shape[1],)


def to_bytes(weight: Array) -> tuple[Array, Array]:
    """Symmetric bytes and one float32 scale per column: weight ~ bytes * scale."""
    scales = (np.abs(weight).max(axis=0) / 127).astype(np.float32)
    scales[scales == 0] = 1.0
    values = np.rint(weight / scales).clip(-127, 127).astype(np.int8)
    return values, scales
