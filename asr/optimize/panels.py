"""Byte weights for our own operator, ``asr.ByteMatMul`` of ``rust_fe/src/ort/``.

ONNX Runtime brings weights into its kernels' order at every load, and compares what it made with
what an earlier load kept: most of the time of a load. Our operator multiplies the file's own bytes,
mapped into memory; the integers and the rounding are the same, so the result is bit-identical.

Takes ``DynamicQuantizeMatMul`` with constant signed weights, and a ``Relu`` that nothing else
stands between. Whatever is built in another way stays with the runtime. No ``onnx`` is needed.
"""

from __future__ import annotations

import mmap
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asr.engines.ort import OPERATORS
from asr.optimize.passes import NoMatch
from asr.optimize.protobuf import (
    ATTRIBUTE,
    DATA_TYPE,
    DIMS,
    DOMAIN,
    FLOAT,
    FLOAT_DATA,
    GRAPH,
    INITIALIZER,
    INPUT,
    INT8,
    INT32,
    INT32_DATA,
    LOCATION,
    NAME,
    NODE,
    NODE_NAME,
    NODE_OUTPUT,
    OP_TYPE,
    OPSET,
    OUTPUT,
    OUTSIDE,
    RAW_DATA,
    WITH_GRAPHS_INSIDE,
    fields,
    is_outside,
    message,
    one,
    text,
    varint,
    varints,
    whole,
)

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from asr.optimize.graph import Array
    from asr.optimize.protobuf import Bytes, Field

#: The operator's name, in the domain ``asr``.
OPERATOR = "ByteMatMul"

#: Columns of a panel: ``PANEL`` of ``rust_fe/src/simd/byte_product.rs``.
_PANEL = 32
#: A deeper sum of products could leave 32 bits: ``DEEPEST`` there.
_DEEPEST = (2**31 - 1) // 255**2
#: What is larger goes into the second file, at a page's begin, to be mapped.
_LARGE_BYTES = 65_536
_VALUES = (FLOAT_DATA, INT32_DATA, RAW_DATA)


@dataclass(frozen=True, slots=True)
class _Node:
    part: Field
    op_type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """What one multiplication multiplies with: weights (depth, columns), the rest per column."""

    weights: Array
    scales: Array
    zeros: Array
    bias: Array


@dataclass(frozen=True, slots=True)
class _Place:
    """A multiplication, and the Relu behind it."""

    node: _Node
    relu: _Node | None
    matrix: _Matrix


def write(source: Path, network: Path, weights: Path) -> int:
    """Write a network whose byte weights are in our operator's order.

    Args:
        source: an ONNX file as the runtime saved it, weights inside.
        network: the file to write.
        weights: the file to write beside it, for what is large.

    Returns:
        how many multiplications now use our operator; at 0 nothing is written.

    Raises:
        NoMatch: the file is built in a way that this does not know.
    """
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = memoryview(mapped)
        try:
            return _write(_Graph(data), network, weights)
        except (LookupError, ValueError) as error:
            raise NoMatch(f"expected a saved network, found something else ({error})") from None
        finally:
            data.release()


class _Graph:
    """The one graph of a file."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.model = list(fields(data, 0, len(data)))
        (graph,) = (f for f in self.model if f.number == GRAPH)
        self.parts = list(fields(data, graph.start, graph.end))
        self.tensors = {
            text(data, name): part
            for part in self.parts
            if part.number == INITIALIZER and (name := one(data, part, NAME))
        }
        self.nodes = [self._node(part) for part in self.parts if part.number == NODE]
        outputs = [one(data, part, 1) for part in self.parts if part.number == OUTPUT]
        self.uses = Counter(name for node in self.nodes for name in node.inputs)
        self.uses.update(text(data, name) for name in outputs if name)

    def _node(self, part: Field) -> _Node:
        found: dict[int, list[str]] = {}
        for field in fields(self.data, part.start, part.end):
            if field.number in (INPUT, NODE_OUTPUT, NODE_NAME, OP_TYPE):
                found.setdefault(field.number, []).append(text(self.data, field))
        (op_type,) = found[OP_TYPE]
        if op_type in WITH_GRAPHS_INSIDE:
            raise NoMatch(f"expected no graph inside an operator, found {op_type}")
        return _Node(
            part,
            op_type,
            found.get(NODE_NAME, [""])[0],
            tuple(found.get(INPUT, ())),
            tuple(found.get(NODE_OUTPUT, ())),
        )

    def places(self) -> list[_Place]:
        """Multiplications that our operator can do."""
        relus = {node.inputs[0]: node for node in self.nodes if node.op_type == "Relu"}
        found = []
        for node in self.nodes:
            matrix = self._matrix(node) if node.op_type == "DynamicQuantizeMatMul" else None
            if matrix is not None:
                alone = self.uses[node.outputs[0]] == 1
                found.append(_Place(node, relus.get(node.outputs[0]) if alone else None, matrix))
        return found

    def _matrix(self, node: _Node) -> _Matrix | None:
        names = (*node.inputs[1:], "", "", "")[:4]  # weights, scales, zeros, bias
        if names[0] not in self.tensors or any(n and n not in self.tensors for n in names):
            return None
        weights, scales, zeros, bias = found = [self.values(n) if n else None for n in names]
        if any(name and value is None for name, value in zip(names, found, strict=True)):
            return None
        if weights is None or weights.dtype != np.int8 or weights.ndim != 2 or scales is None:
            return None
        depth, columns = weights.shape
        zeros = np.zeros(1, np.int8) if zeros is None else zeros
        bias = np.zeros(1, np.float32) if bias is None else bias
        fits = all(x.size in (1, columns) for x in (scales, zeros, bias))
        if not (fits and 0 < depth <= _DEEPEST and columns and zeros.dtype == np.int8):
            return None
        across = (np.broadcast_to(x.reshape(-1), columns) for x in (scales, zeros, bias))
        return _Matrix(weights, *across)

    def values(self, name: str) -> Array | None:
        """A constant; None where it is not of a kind that is needed here."""
        part = self.tensors[name]
        found: dict[int, list[Field]] = {}
        for field in fields(self.data, part.start, part.end):
            found.setdefault(field.number, []).append(field)
        kind = varint(self.data, found[DATA_TYPE][0].start)[0]
        dtype = {FLOAT: np.float32, INT8: np.int8}.get(kind)
        if dtype is None or is_outside(self.data, part):
            return None
        dims = [n for field in found.get(DIMS, ()) for n in self._integers(field)]
        values = b"".join(self._raw(field, dtype) for n in _VALUES for field in found.get(n, ()))
        return np.frombuffer(values, dtype).reshape(dims)

    def _raw(self, field: Field, dtype: type) -> Bytes:
        """A field of values as the bytes that they are in memory."""
        if field.number == INT32_DATA:  # a negative one has the highest bits of 64 set, too
            return np.array([n & 0xFF for n in self._integers(field)], np.uint8).tobytes()
        return self.data[field.start : field.end]

    def _integers(self, field: Field) -> list[int]:
        """Of a repeated field, packed or one by one."""
        return list(varints(self.data, field))


def _write(graph: _Graph, network: Path, weights: Path) -> int:
    data = graph.data
    places = graph.places()
    if not places:
        return 0
    dropped = {place.relu.part.at for place in places if place.relu is not None}
    by_node = {place.node.part.at: (at, place) for at, place in enumerate(places)}
    left = Counter(graph.uses)
    for place in places:
        left.subtract(place.node.inputs[1:])
    with weights.open("wb") as file:
        pieces: list[Bytes] = []
        for part in graph.parts:
            if part.at in dropped:
                continue
            if part.at in by_node:
                pieces += _multiplication(*by_node[part.at], file)
            elif part.number == INITIALIZER:
                name = one(data, part, NAME)
                if name is None or left[text(data, name)] > 0:
                    pieces += _kept(data, part, file)
            else:
                pieces.append(data[part.at : part.end])
    whole_model: list[Bytes] = []
    for field in graph.model:
        domain = one(data, field, 1) if field.number == OPSET else None
        if field.number == GRAPH:
            whole_model += message(GRAPH, pieces)
        elif domain is None or text(data, domain) != OPERATORS:
            whole_model.append(data[field.at : field.end])
    whole_model += message(OPSET, [*message(1, [OPERATORS.encode()]), whole(2, 1)])
    with network.open("wb") as file:
        file.writelines(whole_model)
    return len(places)


def _multiplication(at: int, place: _Place, file: BinaryIO) -> list[Bytes]:
    """A node of our operator and its constants."""
    node, matrix = place.node, place.matrix
    depth, columns = matrix.weights.shape
    outputs = (place.relu or node).outputs
    zeros = matrix.zeros.astype(np.int32)
    tensors = {
        "scales": _padded(matrix.scales),
        "sums": _padded(matrix.weights.sum(0, dtype=np.int32)),
        "zeros": _padded(zeros) if zeros.any() else zeros[:0],
        "bias": _padded(matrix.bias),
    }
    names = [f"{OPERATOR}_{at}_{name}" for name in ("weights", *tensors)]
    pieces = message(
        NODE,
        [
            *(b"".join(message(INPUT, [n.encode()])) for n in (node.inputs[0], *names)),
            *(b"".join(message(NODE_OUTPUT, [n.encode()])) for n in outputs),
            *message(NODE_NAME, [node.name.encode()]),
            *message(OP_TYPE, [OPERATOR.encode()]),
            *_attribute("columns", columns),
            *_attribute("depth", depth),
            *_attribute("relu", int(place.relu is not None)),
            *message(DOMAIN, [OPERATORS.encode()]),
        ],
    )
    panels = _panels(matrix.weights)
    pieces += _tensor(names[0], INT8, panels.shape, _outside(panels.data.cast("B"), file))
    for name, values in zip(names[1:], tensors.values(), strict=True):
        kind = FLOAT if values.dtype == np.float32 else INT32
        pieces += _tensor(name, kind, values.shape, message(RAW_DATA, [values.tobytes()]))
    return pieces


def _panels(weights: Array) -> Array:
    """(depth, columns) to (panels, depth / 4, ``_PANEL``, 4), zeros beyond the edges."""
    depth, columns = weights.shape
    rows, width = -(-depth // 4) * 4, -(-columns // _PANEL) * _PANEL
    padded = np.pad(weights, ((0, rows - depth), (0, width - columns)))
    return np.ascontiguousarray(
        padded.reshape(rows // 4, 4, width // _PANEL, _PANEL).transpose(2, 0, 3, 1)
    )


def _padded(values: Array) -> Array:
    return np.pad(values, (0, -len(values) % _PANEL))


def _attribute(name: str, value: int) -> list[Bytes]:
    return message(ATTRIBUTE, [*message(1, [name.encode()]), whole(3, value), whole(20, 2)])


def _tensor(name: str, kind: int, dims: tuple[int, ...], values: list[Bytes]) -> list[Bytes]:
    sizes = [whole(DIMS, n) for n in dims]
    return message(
        INITIALIZER, [*sizes, whole(DATA_TYPE, kind), *message(NAME, [name.encode()]), *values]
    )


def _kept(data: memoryview, part: Field, file: BinaryIO) -> list[Bytes]:
    """A constant as it was, its values outside if they are large."""
    raw = one(data, part, RAW_DATA)
    if raw is None or raw.end - raw.start < _LARGE_BYTES:
        return [data[part.at : part.end]]
    outside = _outside(data[raw.start : raw.end], file)
    return message(INITIALIZER, [data[part.start : raw.at], *outside, data[raw.end : part.end]])


def _outside(values: Bytes, file: BinaryIO) -> list[Bytes]:
    """Write values at the begin of a page, and say where they lie."""
    file.write(bytes(-file.tell() % mmap.PAGESIZE))
    where = {"location": file.name.rpartition("/")[2], "offset": file.tell(), "length": len(values)}
    file.write(values)
    entries: list[Bytes] = []
    for key, value in where.items():
        entry = [*message(1, [key.encode()]), *message(2, [str(value).encode()])]
        entries += message(OUTSIDE, entry)
    return [*entries, whole(LOCATION, 1)]
