"""Self-attention as one operator: MultiHeadAttention instead of reshapes, transposes, products.

Assumes: softmax(scale q k^T) v per head, q, k and v reshaped to (batch, frames, heads, columns) and
transposed, without a mask (``masks`` has removed it). Computes the same sums in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asr.optimize.graph import MICROSOFT, Graph, attributes
from asr.optimize.passes import NoMatch

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Block:
    """One attention.

    Attributes:
        query: tensor (batch, frames, heads * columns); so are ``key`` and ``value``.
        heads: how many.
        scale: of the products of queries and keys.
        result: the tensor that the block makes.
        target: shape of that tensor where it has another than ``query``.
    """

    query: str
    key: str
    value: str
    heads: int
    scale: float
    result: str
    target: str | None


def run(graph: Graph, operator: str = "MultiHeadAttention", domain: str = MICROSOFT) -> int:
    """Fuse every attention.

    Args:
        graph: to rewrite.
        operator: what takes queries, keys and values, ``num_heads`` and ``scale``.
        domain: of the operator.

    Returns:
        how many were fused.

    Raises:
        NoMatch: a softmax that is multiplied by something is built in another way.
    """
    found = find(graph)
    for block in found:
        (context,) = graph.add(
            operator, [block.query, block.key, block.value],
            domain=domain, num_heads=block.heads, scale=block.scale,
        )  # fmt: skip
        if block.target is not None:
            (context,) = graph.add("Reshape", [context, block.target])
        graph.replace(block.result, context)
    return len(found)


def find(graph: Graph) -> list[Block]:
    """Every attention of a network.

    Raises:
        NoMatch: as ``run`` says.
    """
    return [
        _match(graph, softmax, product)
        for softmax in graph.of_type("Softmax")
        if (product := graph.only_user(softmax.output[0], "MatMul")) is not None
    ]


def _match(graph: Graph, softmax: onnx.NodeProto, product: onnx.NodeProto) -> Block:
    scores = graph.maker(softmax.input[0], "MatMul")
    if scores is None:
        raise NoMatch(f"Softmax {softmax.name}: expected a product of queries and keys before it")
    left, scale = _scaled(graph, scores.input[0])
    query, heads, columns = _heads(graph, left, (0, 2, 1, 3))
    key, *same_key = _heads(graph, scores.input[1], (0, 2, 3, 1))
    value, *same_value = _heads(graph, product.input[1], (0, 2, 1, 3))
    if [heads, columns] != same_key or [heads, columns] != same_value:
        raise NoMatch(f"Softmax {softmax.name}: expected equal heads of queries, keys, values")
    back = graph.only_user(product.output[0], "Transpose")
    joined = graph.only_user(back.output[0], "Reshape") if back is not None else None
    if back is None or joined is None or list(attributes(back)["perm"]) != [0, 2, 1, 3]:
        raise NoMatch(f"MatMul {product.name}: expected heads to be joined after it")
    target = graph.constant(joined.input[1])
    if target is None or len(target) not in (2, 3) or target[-1] != heads * columns:
        raise NoMatch(f"Reshape {joined.name}: expected {heads} x {columns} joined columns")
    flat = joined.input[1] if len(target) == 2 else None  # as onnxsim has it before a Gemm
    return Block(query, key, value, heads, scale, joined.output[0], flat)


def _scaled(graph: Graph, tensor: str) -> tuple[str, float]:
    """The tensor before a multiplication by a number, and the number."""
    node = graph.maker(tensor, "Mul")
    if node is None:
        return tensor, 1.0
    for i in (0, 1):
        factor = graph.constant(node.input[i])
        if factor is not None and factor.size == 1:
            return node.input[1 - i], float(factor.reshape(()))
    raise NoMatch(f"Mul {node.name}: expected a number to scale the queries by")


def _heads(graph: Graph, tensor: str, perm: tuple[int, ...]) -> tuple[str, int, int]:
    """The tensor before its columns were cut into heads, number of heads, columns of each."""
    turned = graph.maker(tensor, "Transpose")
    if turned is None or tuple(attributes(turned)["perm"]) != perm:
        raise NoMatch(f"expected a transpose {perm} that makes {tensor}")
    cut = graph.maker(turned.input[0], "Reshape")
    target = graph.constant(cut.input[1]) if cut is not None else None
    if cut is None or target is None or len(target) != 4:
        raise NoMatch(f"Transpose {turned.name}: expected a cut into heads before it")
    return cut.input[0], int(target[2]), int(target[3])
