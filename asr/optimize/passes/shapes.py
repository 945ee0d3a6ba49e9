"""The target of a Reshape is a constant with one -1, not a computation.

Assumes: a batch of one clip. Exporters gather, add and join dimensions before every Reshape; at
most one of them varies with the number of frames. The values reshaped are the same; the runtime
then fuses scales and transposes into multiplications, which may add in another order.

Proves what it assumes by running the graph at several lengths (``asr.optimize.probe``).
"""

from __future__ import annotations

from asr.optimize import probe
from asr.optimize.graph import Array, Graph
from asr.optimize.probe import Roles


def run(graph: Graph, roles: Roles) -> int:
    """Replace computed targets.

    Returns:
        how many were replaced.
    """
    edge = [node for node, i in probe.edge(graph, roles) if node.op_type == "Reshape" and i == 1]
    found = probe.run(graph, roles, [node.input[1] for node in edge], [])
    done = 0
    for node in edge:
        target = _target([value[node.input[1]] for value, _ in found])
        if target is not None:
            graph.set_input(node, 1, graph.add_constant(target))
            done += 1
    return done


def _target(values: list[Array]) -> Array | None:
    """One target for every length: the dimension that varies is left to the runtime."""
    first = values[0]
    varies = [k for k in range(first.size) if len({int(v[k]) for v in values}) > 1]
    if len(varies) > 1 or (first <= 0).any():
        return None
    target = first.copy()
    target[varies] = -1
    return target
