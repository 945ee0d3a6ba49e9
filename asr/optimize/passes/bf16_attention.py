"""Self-attention in bf16: our own operator, ``asr.SelfAttention`` of ``rust_fe/src/ort/``.

Assumes: what ``attention`` assumes, a scale above 0, and that whoever runs the network registers
our operator first. Rounds queries, keys, values and weights to eight bits: a
thousandth or so of the result. CPUs with AVX-512 BF16 then do twice the products per instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asr.engines.ort import OPERATORS
from asr.optimize.passes import NoMatch, attention

if TYPE_CHECKING:
    from asr.optimize.graph import Graph


def run(graph: Graph) -> int:
    """Fuse every attention.

    Returns:
        how many were fused.

    Raises:
        NoMatch: an attention is built in another way.
    """
    if any(block.scale <= 0 for block in attention.find(graph)):
        raise NoMatch("attention: expected products scaled by a number above 0")
    return attention.run(graph, "SelfAttention", OPERATORS)
