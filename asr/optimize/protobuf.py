"""Protobuf as it stands in a file: fields one after another, each with its length.

Nothing is parsed that nobody asks for, and nothing is copied: a field is told by where it lies.

Source: ``onnx.proto``, messages ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Bytes = memoryview | bytes

#: Of ModelProto.
GRAPH, OPSET = 7, 8
#: Of GraphProto.
NODE, INITIALIZER, OUTPUT = 1, 5, 12
#: Of NodeProto.
INPUT, NODE_OUTPUT, NODE_NAME, OP_TYPE, ATTRIBUTE, DOMAIN = 1, 2, 3, 4, 5, 7
#: Of TensorProto.
DIMS, DATA_TYPE, FLOAT_DATA, INT32_DATA, NAME, RAW_DATA, OUTSIDE, LOCATION = (
    1,
    2,
    4,
    5,
    8,
    9,
    13,
    14,
)
#: Element types.
FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6

#: Operators with graphs of their own, which could use any weight unseen.
WITH_GRAPHS_INSIDE = frozenset({"If", "Loop", "Scan", "SequenceMap"})


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its number, where it begins, where its value begins and ends."""

    number: int
    kind: int
    at: int
    start: int
    end: int


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of a message.

    Raises:
        ValueError, IndexError: it is no message.
    """
    at = start
    while at < end:
        tag, value = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 2:
            length, value = varint(data, value)
            stop = value + length
        elif kind == 0:
            stop = varint(data, value)[1]
        elif kind in (1, 5):
            stop = value + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of kind {kind} at byte {at}")
        if stop > end:
            raise ValueError(f"a field that ends behind its message at byte {at}")
        yield Field(number, kind, at, value, stop)
        at = stop


def one(data: memoryview, part: Field, number: int) -> Field | None:
    """The first field of this number in the message that another field holds."""
    return next((f for f in fields(data, part.start, part.end) if f.number == number), None)


def text(data: memoryview, field: Field) -> str:
    """A field as text."""
    return str(data[field.start : field.end], "utf-8")


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """A whole number, and where the next byte lies."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def varints(data: memoryview, field: Field) -> Iterator[int]:
    """The numbers of a repeated field, packed or not."""
    at = field.start
    while at < field.end:
        value, at = varint(data, at)
        yield value


def is_outside(data: memoryview, tensor: Field) -> bool:
    """Whether a tensor's values lie in another file."""
    location = one(data, tensor, LOCATION)
    return location is not None and varint(data, location.start)[0] != 0


def message(number: int, pieces: Iterable[Bytes]) -> list[Bytes]:
    """A field that holds these bytes."""
    pieces = list(pieces)
    return [_varint(number << 3 | 2) + _varint(sum(map(len, pieces))), *pieces]


def whole(number: int, value: int) -> bytes:
    """A field that holds a whole number of at least 0."""
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """A whole number of at least 0, seven bits a byte, the lowest first."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
