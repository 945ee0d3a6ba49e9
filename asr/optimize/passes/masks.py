"""Masks and constants of a batch of one clip disappear.

Assumes: the batch is 1 and ``speech_lengths`` is its number of frames; ``Binding.bind`` always
says so. Then a mask is ones everywhere, and ``Where`` never takes its other side. Multiplying by 1
and choosing by a false condition change no bit: bit-identical.

Proves what it assumes by running the graph at several lengths (``asr.optimize.probe``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asr.optimize import probe
from asr.optimize.graph import Array, Graph
from asr.optimize.probe import Roles

if TYPE_CHECKING:
    import onnx

#: A larger constant would cost more to load than to compute.
_LARGEST = 4096


def run(graph: Graph, roles: Roles) -> int:
    """Remove masks, and replace what is the same at every length by a constant.

    Returns:
        how many tensors were replaced.
    """
    edge = probe.edge(graph, roles)
    shapes = [
        name
        for node, _ in edge
        for name in (*node.input, *node.output)
        if node.op_type in ("Mul", "Where") and name and not graph.is_constant(name)
    ]
    found = probe.run(graph, roles, [node.input[i] for node, i in edge], shapes)
    done = 0
    for node, i in edge:
        values = [value[node.input[i]] for value, _ in found]
        same = _passes_through(node, i, values)
        if same is not None and all(s.get(same) == s[node.output[0]] for _, s in found):
            graph.replace(node.output[0], same)
            done += 1
        elif (constant := _constant(values)) is not None:
            graph.set_input(node, i, graph.add_constant(constant))
            done += 1
    return done


def _passes_through(node: onnx.NodeProto, i: int, values: list[Array]) -> str | None:
    """The input that comes out unchanged, if one does."""
    if node.op_type == "Mul" and all((v == 1).all() for v in values):
        return str(node.input[1 - i])
    if node.op_type == "Where" and i == 0:
        if not any(v.any() for v in values):
            return str(node.input[2])
        if all(v.all() for v in values):
            return str(node.input[1])
    return None


def _constant(values: list[Array]) -> Array | None:
    """The value of every length, if it is one."""
    first = values[0]
    if first.size > _LARGEST or any(v.shape != first.shape for v in values):
        return None
    return first if all(np.array_equal(v, first) for v in values) else None
