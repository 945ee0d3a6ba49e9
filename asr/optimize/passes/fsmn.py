"""The FSMN memory as the convolution that ONNX Runtime is fast at.

Exporters write the depthwise convolution over time in one dimension, for which the runtime has no
fast kernel. The same filter as a 1 x K image convolution between two transposes takes its
channel-blocked depthwise kernel, and the transposes are fused away.

Assumes: a Conv with as many groups as channels and one output each, stride and dilation 1, between
two (0, 2, 1) transposes, with zero padding inside the Conv or as a Pad in front of it. Adds the
same products, maybe in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asr.optimize.graph import Graph, attributes
from asr.optimize.passes import NoMatch

if TYPE_CHECKING:
    import onnx


def run(graph: Graph) -> int:
    """Rewrite every FSMN memory.

    Returns:
        how many were rewritten.

    Raises:
        NoMatch: a one-dimensional depthwise convolution stands in another surrounding.
    """
    found = [_match(graph, node) for node in graph.of_type("Conv") if _is_depthwise(graph, node)]
    if not found:
        return 0
    if graph.opset < 13:
        raise NoMatch(f"expected operator set 13 or later, found {graph.opset}")
    axis = graph.add_constant(np.array([1], np.int64))
    for conv, tail, source, (left, right) in found:
        weight = graph.constant(conv.input[1])
        assert weight is not None  # noqa: S101 - _is_depthwise has seen it
        filters = graph.add_constant(weight[:, :, np.newaxis, :])
        (image,) = graph.add("Unsqueeze", [source, axis])
        (image,) = graph.add("Transpose", [image], perm=[0, 3, 1, 2])
        (image,) = graph.add(
            "Conv", [image, filters, *conv.input[2:]], group=len(weight),
            kernel_shape=[1, weight.shape[2]], pads=[0, left, 0, right],
        )  # fmt: skip
        (image,) = graph.add("Transpose", [image], perm=[0, 2, 3, 1])
        (memory,) = graph.add("Squeeze", [image, axis])
        graph.replace(tail.output[0], memory)
    return len(found)


def _is_depthwise(graph: Graph, conv: onnx.NodeProto) -> bool:
    weight = graph.constant(conv.input[1])
    return (
        weight is not None
        and weight.ndim == 3
        and weight.shape[1] == 1
        and attributes(conv).get("group") == len(weight)
    )


def _match(
    graph: Graph, conv: onnx.NodeProto
) -> tuple[onnx.NodeProto, onnx.NodeProto, str, tuple[int, int]]:
    """The Conv, the transpose behind it, the tensor before it, the padding."""
    values = attributes(conv)
    if values.get("strides", [1]) != [1] or values.get("dilations", [1]) != [1]:
        raise NoMatch(f"Conv {conv.name}: expected stride and dilation 1")
    left, right = values.get("pads", [0, 0])
    source = conv.input[0]
    pad = graph.maker(source, "Pad")
    if pad is not None:
        amounts = graph.constant(pad.input[1])
        fill = graph.constant(pad.input[2]) if len(pad.input) > 2 and pad.input[2] else None
        if amounts is None or list(amounts[[0, 1, 3, 4]]) != [0, 0, 0, 0] or (fill or 0) != 0:
            raise NoMatch(f"Pad {pad.name}: expected zeros before and after the frames alone")
        left, right = left + int(amounts[2]), right + int(amounts[5])
        source = pad.input[0]
    head = graph.maker(source, "Transpose")
    tail = graph.only_user(conv.output[0], "Transpose")
    for node in (head, tail):
        if node is None or list(attributes(node).get("perm", [])) != [0, 2, 1]:
            raise NoMatch(f"Conv {conv.name}: expected transposes (0, 2, 1) around it")
    assert head is not None  # noqa: S101
    assert tail is not None  # noqa: S101
    return conv, tail, head.input[0], (left, right)
