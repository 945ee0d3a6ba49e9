"""``signed_weights`` on the bytes of a file, without parsing its weights or needing ``onnx``.

What is done at first load must be quick and must not need an optional package. Only weights that
are nothing but the byte matrix of a multiplication, and their zero points, are written anew; every
other byte is copied as it stands.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asr.optimize.passes import NoMatch
from asr.optimize.passes.signed_weights import OPERATORS, signed
from asr.optimize.protobuf import (
    DATA_TYPE,
    GRAPH,
    INITIALIZER,
    INPUT,
    INT8,
    INT32_DATA,
    NAME,
    NODE,
    OP_TYPE,
    OUTPUT,
    RAW_DATA,
    UINT8,
    WITH_GRAPHS_INSIDE,
    fields,
    is_outside,
    message,
    one,
    text,
    varint,
    varints,
)

if TYPE_CHECKING:
    from asr.optimize.graph import Array
    from asr.optimize.protobuf import Bytes, Field


@dataclass(frozen=True, slots=True)
class _Node:
    op_type: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A multiplication: names of its weight and zero point."""

    weight: str
    zero: str


def sign(model: bytes) -> tuple[bytes, int]:
    """Make unsigned byte weights signed ones.

    Args:
        model: an ONNX file.

    Returns:
        the new file, and how many multiplications now use signed weights.

    Raises:
        NoMatch: the file is built in a way that this does not know.
    """
    data = memoryview(model)
    try:
        graphs = [f for f in fields(data, 0, len(data)) if f.number == GRAPH]
        if len(graphs) != 1:
            raise NoMatch(f"expected one graph in the file, found {len(graphs)}")
        (graph,) = graphs
        parts = list(fields(data, graph.start, graph.end))
        tensors = {
            text(data, name): part
            for part in parts
            if part.number == INITIALIZER and (name := one(data, part, NAME))
        }
        chosen, places = _choose(data, parts, tensors)
    except (IndexError, ValueError) as error:
        raise NoMatch(f"expected protobuf, found something else ({error})") from None
    if not places:
        return model, 0
    new = {tensors[name].at: _signed_tensor(data, tensors[name]) for name in chosen}
    pieces: list[Bytes] = []
    kept = graph.start
    for part in parts:
        if part.at in new:
            pieces += [data[kept : part.at], *message(INITIALIZER, new[part.at])]
            kept = part.end
    pieces.append(data[kept : graph.end])
    return b"".join([data[: graph.at], *message(GRAPH, pieces), data[graph.end :]]), places


def has_weights_outside(model: bytes) -> bool:
    """Whether a file keeps weights in another file beside it."""
    data = memoryview(model)
    try:
        return any(
            is_outside(data, part)
            for graph in fields(data, 0, len(data))
            if graph.number == GRAPH
            for part in fields(data, graph.start, graph.end)
            if part.number == INITIALIZER
        )
    except (IndexError, ValueError):
        return False  # the runtime says what is wrong with it


def _choose(
    data: memoryview, parts: list[Field], tensors: dict[str, Field]
) -> tuple[set[str], int]:
    """Names of the weights and zero points to convert, and for how many multiplications."""
    uses: defaultdict[str, int] = defaultdict(int)
    places = []
    for part in parts:
        if part.number == OUTPUT and (output := one(data, part, 1)):
            uses[text(data, output)] += 1
        if part.number != NODE:
            continue
        node = _node(data, part)
        if node.op_type in WITH_GRAPHS_INSIDE:
            raise NoMatch(f"expected no graph inside an operator, found {node.op_type}")
        for name in node.inputs:
            uses[name] += 1
        at = OPERATORS.get(node.op_type)
        if at is not None and max(at) < len(node.inputs):
            places.append(_Place(node.inputs[at[0]], node.inputs[at[1]]))
    byte = {name for name, part in tensors.items() if _is_byte(data, part)}
    while True:  # what a multiplication that stays as it is shares with others must stay, too
        ready = [p for p in places if p.weight in byte and p.zero in byte]
        inside: defaultdict[str, int] = defaultdict(int)
        for place in ready:
            inside[place.weight] += 1
            inside[place.zero] += 1
        alone = {name for name in inside if inside[name] == uses[name]}
        if len(alone) == len(inside):
            return alone, len(ready)
        byte &= alone


def _node(data: memoryview, part: Field) -> _Node:
    inputs, op_type = [], ""
    for field in fields(data, part.start, part.end):
        if field.number == INPUT:
            inputs.append(text(data, field))
        elif field.number == OP_TYPE:
            op_type = text(data, field)
    return _Node(op_type, tuple(inputs))


def _is_byte(data: memoryview, part: Field) -> bool:
    """Whether a tensor holds unsigned bytes, in this file."""
    kind = one(data, part, DATA_TYPE)
    is_byte = kind is not None and varint(data, kind.start)[0] == UINT8
    return is_byte and not is_outside(data, part)


def _signed_tensor(data: memoryview, part: Field) -> list[Bytes]:
    """The same tensor as signed bytes, each 128 less."""
    pieces: list[Bytes] = []
    values: list[Array] = []
    for field in fields(data, part.start, part.end):
        if field.number == RAW_DATA:
            values.append(np.frombuffer(data[field.start : field.end], np.uint8))
        elif field.number == INT32_DATA:
            values.append(np.array(list(varints(data, field)), np.uint8))
        elif field.number != DATA_TYPE:
            pieces.append(data[field.at : field.end])
    raw = signed(values[0] if len(values) == 1 else np.concatenate(values))
    kind = bytes([DATA_TYPE << 3, INT8])
    return [*pieces, kind, *message(RAW_DATA, [raw.data.cast("B")])]
