"""``signed_weights`` on the bytes of a file, without parsing its weights or needing ``onnx``.

What is done at first load must be quick and must not need an optional package. A network file is
protobuf: fields one after another, each with its length. Only weights that are nothing but the
byte matrix of a multiplication, and their zero points, are written anew; every other byte is
copied as it stands.

Source: ``onnx.proto``, messages ModelProto, GraphProto, NodeProto, TensorProto.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asr.optimize.passes import NoMatch
from asr.optimize.passes.signed_weights import OPERATORS, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from asr.optimize.graph import Array

    Bytes = memoryview | bytes

_GRAPH = 7  # of ModelProto
_NODE, _INITIALIZER, _OUTPUT = 1, 5, 12  # of GraphProto
_INPUT, _OP_TYPE = 1, 4  # of NodeProto
_DATA_TYPE, _INT32_DATA, _NAME, _RAW_DATA, _LOCATION = 2, 5, 8, 9, 14  # of TensorProto
_UINT8, _INT8 = 2, 3

_WITH_GRAPHS_INSIDE = {"If", "Loop", "Scan", "SequenceMap"}  # could use any weight unseen


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: its number, where it begins, where its value begins and ends."""

    number: int
    kind: int
    at: int
    start: int
    end: int


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
        graphs = [f for f in _fields(data, 0, len(data)) if f.number == _GRAPH]
        if len(graphs) != 1:
            raise NoMatch(f"expected one graph in the file, found {len(graphs)}")
        (graph,) = graphs
        parts = list(_fields(data, graph.start, graph.end))
        tensors = {
            _text(data, name): part
            for part in parts
            if part.number == _INITIALIZER and (name := _one(data, part, _NAME))
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
            pieces += [data[kept : part.at], *_message(_INITIALIZER, new[part.at])]
            kept = part.end
    pieces.append(data[kept : graph.end])
    return b"".join([data[: graph.at], *_message(_GRAPH, pieces), data[graph.end :]]), places


def has_weights_outside(model: bytes) -> bool:
    """Whether a file keeps weights in another file beside it."""
    data = memoryview(model)
    try:
        return any(
            _is_outside(data, part)
            for graph in _fields(data, 0, len(data))
            if graph.number == _GRAPH
            for part in _fields(data, graph.start, graph.end)
            if part.number == _INITIALIZER
        )
    except (IndexError, ValueError):
        return False  # the runtime says what is wrong with it


def _choose(
    data: memoryview, parts: list[_Field], tensors: dict[str, _Field]
) -> tuple[set[str], int]:
    """Names of the weights and zero points to convert, and for how many multiplications."""
    uses: defaultdict[str, int] = defaultdict(int)
    places = []
    for part in parts:
        if part.number == _OUTPUT and (output := _one(data, part, 1)):
            uses[_text(data, output)] += 1
        if part.number != _NODE:
            continue
        node = _node(data, part)
        if node.op_type in _WITH_GRAPHS_INSIDE:
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


def _node(data: memoryview, part: _Field) -> _Node:
    inputs, op_type = [], ""
    for field in _fields(data, part.start, part.end):
        if field.number == _INPUT:
            inputs.append(_text(data, field))
        elif field.number == _OP_TYPE:
            op_type = _text(data, field)
    return _Node(op_type, tuple(inputs))


def _is_byte(data: memoryview, part: _Field) -> bool:
    """Whether a tensor holds unsigned bytes, in this file."""
    kind = _one(data, part, _DATA_TYPE)
    is_byte = kind is not None and _varint(data, kind.start)[0] == _UINT8
    return is_byte and not _is_outside(data, part)


def _is_outside(data: memoryview, part: _Field) -> bool:
    location = _one(data, part, _LOCATION)
    return location is not None and _varint(data, location.start)[0] != 0


def _signed_tensor(data: memoryview, part: _Field) -> list[Bytes]:
    """The same tensor as signed bytes, each 128 less."""
    pieces: list[Bytes] = []
    values: list[Array] = []
    for field in _fields(data, part.start, part.end):
        if field.number == _RAW_DATA:
            values.append(np.frombuffer(data[field.start : field.end], np.uint8))
        elif field.number == _INT32_DATA:
            values.append(np.array(list(_varints(data, field)), np.uint8))
        elif field.number != _DATA_TYPE:
            pieces.append(data[field.at : field.end])
    raw = signed(values[0] if len(values) == 1 else np.concatenate(values))
    kind = bytes([_DATA_TYPE << 3, _INT8])
    return [*pieces, kind, *_message(_RAW_DATA, [raw.data.cast("B")])]


# ------------------------------------------------------------------ protobuf


def _fields(data: memoryview, start: int, end: int) -> Iterator[_Field]:
    at = start
    while at < end:
        tag, value = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 2:
            length, value = _varint(data, value)
            stop = value + length
        elif kind == 0:
            stop = _varint(data, value)[1]
        elif kind in (1, 5):
            stop = value + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of kind {kind} at byte {at}")
        if stop > end:
            raise ValueError(f"a field that ends behind its message at byte {at}")
        yield _Field(number, kind, at, value, stop)
        at = stop


def _one(data: memoryview, part: _Field, number: int) -> _Field | None:
    return next((f for f in _fields(data, part.start, part.end) if f.number == number), None)


def _text(data: memoryview, field: _Field) -> str:
    return str(data[field.start : field.end], "utf-8")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A whole number, and where the next byte lies."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varints(data: memoryview, field: _Field) -> Iterator[int]:
    """The numbers of a repeated field, packed or not."""
    at = field.start
    while at < field.end:
        value, at = _varint(data, at)
        yield value


def _message(number: int, pieces: Iterable[Bytes]) -> list[Bytes]:
    """A field that holds these bytes."""
    pieces = list(pieces)
    head = bytearray([number << 3 | 2])
    length = sum(map(len, pieces))
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return [bytes(head), *pieces]
