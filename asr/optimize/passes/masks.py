"""Masks and constants of a batch of one clip disappear.

Assumes: the batch is 1 and ``speech_lengths`` is its number of frames; ``Binding.bind`` always
says so. Then a mask is ones everywhere, or zeros where it is added, and ``Where`` never takes its
other side. Multiplying by 1, adding 0 and choosing by a false condition change no value:
bit-identical.

Proves what it assumes by running the graph at several lengths (``asr.optimize.probe``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asr.optimize.graph import Array, Graph
from asr.optimize.probe import Meeting

if TYPE_CHECKING:
    import onnx

#: A larger constant would cost more to load than to compute.
_LARGEST = 4096


def run(graph: Graph, meetings: list[Meeting]) -> int:
    """Remove masks, and replace what is the same at every length by a constant.

    Args:
        graph: is rewritten.
        meetings: of this graph.

    Returns:
        how many tensors were replaced.
    """
    done = 0
    for met in meetings:
        node = met.node(graph)
        if node is None:
            continue
        same = _passes_through(node, met)
        if same in met.unchanged:
            graph.replace(met.output, same)
            done += 1
        elif (constant := _constant(met.values)) is not None:
            graph.set_input(node, met.index, graph.add_constant(constant))
            done += 1
    return done


def _passes_through(node: onnx.NodeProto, met: Meeting) -> str:
    """The input that comes out unchanged; empty if none does."""
    if node.op_type == "Mul" and all((v == 1).all() for v in met.values):
        return str(node.input[1 - met.index])
    if node.op_type == "Add" and not any(v.any() for v in met.values):
        return str(node.input[1 - met.index])
    if node.op_type == "Where" and met.index == 0:
        if not any(v.any() for v in met.values):
            return str(node.input[2])
        if all(v.all() for v in met.values):
            return str(node.input[1])
    return ""


def _constant(values: tuple[Array, ...]) -> Array | None:
    """The value of every length, if it is one."""
    first = values[0]
    if first.size > _LARGEST or any(v.shape != first.shape for v in values):
        return None
    return first if all(np.array_equal(v, first) for v in values) else None
