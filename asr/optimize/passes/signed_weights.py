"""Weights from unsigned to signed bytes: x86 with VNNI multiplies u8 x s8 twice as fast as u8 x u8.

Assumes: nothing. Subtracts 128 from a weight and from its zero point, so every difference that the
kernel forms is the same integer: the result is bit-identical. On x86 without VNNI the kernel adds
pairs of products in 16 bits, which saturate for signed weights; the caller applies this pass only
where the CPU does not (``_rust_fe.build_info``).
"""

from __future__ import annotations

import numpy as np

from asr.optimize.graph import Graph

#: Operators with a byte matrix: index of the weight, index of its zero point.
OPERATORS = {
    "MatMulInteger": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
    "DynamicQuantizeMatMul": (1, 3),
}


def run(graph: Graph) -> int:
    """Convert every weight.

    Returns:
        how many multiplications now use signed weights.
    """
    done = 0
    for node in graph.of_type(*OPERATORS):
        weight_at, zero_at = OPERATORS[node.op_type]
        weight = graph.constant(node.input[weight_at])
        if weight is None or weight.dtype != np.uint8:
            continue
        if zero_at < len(node.input) and node.input[zero_at]:
            zero = graph.constant(node.input[zero_at])
            if zero is None or zero.dtype != np.uint8:
                continue
        else:
            zero = np.zeros((), np.uint8)
            node.input.extend([""] * (zero_at + 1 - len(node.input)))
        graph.set_input(node, weight_at, graph.add_constant(signed(weight)))
        graph.set_input(node, zero_at, graph.add_constant(signed(zero)))
        done += 1
    return done


def signed(values: np.ndarray) -> np.ndarray:
    """Subtract 128: flipping the highest bit does that."""
    return (values ^ np.uint8(0x80)).view(np.int8)
