"""The target of a Reshape is a constant with one -1, not a computation.

Assumes: a batch of one clip. Exporters gather, add and join dimensions before every Reshape; at
most one of them varies with the number of frames. The values reshaped are the same; the runtime
then fuses scales and transposes into multiplications, which may add in another order.

Proves what it assumes by running the graph at several lengths (``asr.optimize.probe``).
"""

from __future__ import annotations

from asr.optimize.graph import Array, Graph
from asr.optimize.probe import Meeting


def run(graph: Graph, meetings: list[Meeting]) -> int:
    """Replace computed targets.

    Args:
        graph: is rewritten.
        meetings: of this graph.

    Returns:
        how many were replaced.
    """
    done = 0
    for met in meetings:
        node = met.node(graph)
        if node is None or node.op_type != "Reshape" or met.index != 1:
            continue
        target = _target(met.values)
        if target is not None:
            graph.set_input(node, 1, graph.add_constant(target))
            done += 1
    return done


def _target(values: tuple[Array, ...]) -> Array | None:
    """One target for every length: the dimension that varies is left to the runtime."""
    first = values[0]
    varies = [k for k in range(first.size) if len({int(v[k]) for v in values}) > 1]
    if len(varies) > 1 or (first <= 0).any():
        return None
    target = first.copy()
    target[varies] = -1
    return target
