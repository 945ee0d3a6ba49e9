"""Multiply-accumulates (MACs) of one call of a network, by the type of what is multiplied.

A network is asked, not read: ONNX Runtime tells the shapes of every node that it ran, so fused and
hand-made operators count like any other, and no shape has to be inferred. Run at a few lengths, the
counts give the polynomial: linear layers grow with the rows, attention with their square.
"""

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from asr.engines.ort import OrtEngine
from asr.errors import LayoutError
from asr.layouts import Layout
from asr.records import Features

#: Rows of features per run: three fix the polynomial, the fourth checks it.
LENGTHS = (4, 8, 16, 11)

_MATRIX = {"MatMul", "FusedMatMul", "Gemm", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat",
           "DynamicQuantizeMatMul", "QLinearMatMul", "QGemm"}  # fmt: skip
#: Operator -> which input holds the weights.
_CONVOLUTION = {"Conv": 1, "FusedConv": 1, "NhwcFusedConv": 1, "ConvInteger": 1, "QLinearConv": 3}
#: ONNX Runtime's, and ours.
_ATTENTION = {"MultiHeadAttention", "SelfAttention"}
#: They multiply, and nothing here knows how often.
_UNKNOWN = {"Attention", "ConvTranspose", "Einsum", "GRU", "GroupQueryAttention", "LSTM",
            "MatMulNBits", "QAttention", "RNN"}  # fmt: skip

Shape = Sequence[int]


class Growth(NamedTuple):
    """MACs of a call as a polynomial in its rows, prompt rows included.

    Attributes:
        fixed: however long the call is.
        per_row: times the rows.
        per_square: times the square of the rows: attention.
    """

    fixed: int
    per_row: int
    per_square: int

    def at(self, rows: int) -> int:
        """MACs of a call of so many rows."""
        return self.fixed + self.per_row * rows + self.per_square * rows * rows


@dataclass(frozen=True, slots=True)
class Work:
    """What a network multiplies.

    Attributes:
        int8: products of bytes.
        fp32: products of floats.
    """

    int8: Growth
    fp32: Growth

    def all_int8(self) -> "Work":
        """The same products, every one of bytes."""
        summed = (a + b for a, b in zip(self.int8, self.fp32, strict=True))
        return Work(Growth(*summed), Growth(0, 0, 0))

    @property
    def precision(self) -> Literal["int8", "fp32"]:
        """``int8`` when most products of a row are of bytes, else ``fp32``."""
        return "int8" if self.int8.per_row > self.fp32.per_row else "fp32"


def of_shape(
    *, blocks: int, width: int, feed_forward: int, columns: int, taps: int, vocabulary: int,
    precision: str,
) -> Work:  # fmt: skip
    """Count by the formula of a SANM network such as SenseVoice's.

    Args:
        blocks: of attention, FSMN memory and feed-forward layer.
        width: of all blocks.
        feed_forward: its inner width.
        columns: of the features; the first block reads these.
        taps: of the FSMN memory.
        vocabulary: columns of the scores.
        precision: of the linear layers; attention and memory are always fp32.
    """
    block = 4 * width * width + 2 * width * feed_forward
    linear = blocks * block + 3 * width * (columns - width) + width * vocabulary
    memory, attention = blocks * width * taps, blocks * 2 * width
    nothing = Growth(0, 0, 0)
    if precision == "int8":
        return Work(Growth(0, linear, 0), Growth(0, memory, attention))
    return Work(nothing, Growth(0, linear + memory, attention))


def of_layout(layout: Layout) -> Work:
    """Count by running a model's network on noise of a few lengths.

    Args:
        layout: the model.

    Raises:
        LayoutError: it cannot be loaded, or holds an operator whose products nobody knows, or its
            products are no polynomial of the second degree.
        EngineError: it cannot be run.
    """
    counts = [_count(run, layout.network) for run in _runs(layout)]
    rows = [length + layout.prompt_frames for length in LENGTHS]
    int8, fp32 = (_polynomial(rows, [c[kind] for c in counts], layout.network) for kind in (0, 1))
    return Work(int8, fp32)


def _runs(layout: Layout) -> list[list[dict[str, Any]]]:
    """The nodes of a run per length, each as the runtime tells it: ``op_name``, shapes."""
    generator = np.random.default_rng(0)
    columns = layout.front_end.lfr_m * layout.front_end.num_mel_bins
    with tempfile.TemporaryDirectory() as folder:
        # From its path the runtime takes a graph as it is; rewritten for this CPU, its channels may
        # be padded to the width of the vectors.
        engine = OrtEngine(
            layout.network, name=str(layout.network), threads=1, prepack=False,
            profile_prefix=f"{folder}/nodes",
        )  # fmt: skip
        binding = layout.connect(engine.inputs, engine.outputs)
        for length in LENGTHS:
            noise = generator.normal(size=(length, columns)).astype(np.float32)
            engine.run(binding.bind(Features(noise, 0.06), 0, layout.itn_ids[False]))
        events = json.loads(engine.end_profile()[0].read_text(encoding="utf-8"))
    runs: list[list[dict[str, Any]]] = [[]]
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            runs[-1].append(event["args"])
        elif event.get("name") == "model_run":
            runs.append([])
    return runs[: len(LENGTHS)]


def _count(nodes: Sequence[dict[str, Any]], network: Path) -> tuple[int, int]:
    """MACs of a run: of bytes, of floats."""
    int8 = fp32 = 0
    for node in nodes:
        inputs = [(kind, shape) for of in node["input_type_shape"] for kind, shape in of.items()]
        outputs = [shape for of in node["output_type_shape"] for shape in of.values()]
        macs = _products(node["op_name"], [shape for _, shape in inputs], outputs, network)
        if any(kind in ("int8", "uint8") for kind, _ in inputs):
            int8 += macs
        else:
            fp32 += macs
    return int8, fp32


def _products(
    operator: str, inputs: Sequence[Shape], outputs: Sequence[Shape], network: Path
) -> int:
    if operator in _UNKNOWN:
        raise LayoutError(
            f"{network}: expected operators whose products can be counted, found {operator}"
        )
    if operator in _MATRIX:
        left, out = inputs[0], outputs[0]
        # A transposed left side has the inner size in front.
        inner = left[-1] if len(left) < 2 or left[-2] == out[-2] else left[-2]
        return math.prod(out) * inner
    if operator in _CONVOLUTION:
        return math.prod(outputs[0]) * math.prod(inputs[_CONVOLUTION[operator]][1:])
    if operator in _ATTENTION:  # query, key, value: (batch, frames, columns)
        query, key, value = inputs[:3]
        return math.prod(query) * key[1] + math.prod(query[:2]) * key[1] * value[2]
    return 0


def _polynomial(rows: Sequence[int], counts: Sequence[int], network: Path) -> Growth:
    """The polynomial through the first three counts; the last must lie on it."""
    (x0, x1, x2, _), (y0, y1, y2, last) = rows, counts
    slope = Fraction(y1 - y0, x1 - x0)
    square = (Fraction(y2 - y0, x2 - x0) - slope) / (x2 - x1)
    per_row = slope - square * (x0 + x1)
    found: list[Fraction] = [y0 - per_row * x0 - square * x0 * x0, per_row, square]
    growth = Growth(*map(int, found))
    if any(value.denominator != 1 for value in found) or growth.at(rows[3]) != last:
        raise LayoutError(
            f"{network}: expected products that grow with the rows and their square, found "
            f"{list(counts)} for {list(rows)} rows"
        )
    return growth
