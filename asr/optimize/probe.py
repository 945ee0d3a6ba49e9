"""What a graph's bookkeeping tensors hold for one clip at a time, found by running it.

Exporters spell masks, shapes and positions in a dozen ways. What they compute depends on the number
of frames alone, so running the graph at several lengths tells what they are, whatever the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asr.engines.base import TensorInfo
from asr.optimize.graph import Array, Graph

if TYPE_CHECKING:
    import onnx

    from asr.layouts import Layout

#: Frames per probe: the shortest, and lengths that share no factor with a size in the network.
LENGTHS = (1, 2, 5, 17)


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the network's tensors.

    Attributes:
        speech: features (batch, frames, columns).
        lengths: frames of each clip.
        columns: of ``speech``.
        prompts: the inputs that choose prompt rows.
        scores: what comes out.
    """

    speech: str
    lengths: str
    columns: int
    prompts: tuple[str, ...]
    scores: str

    @classmethod
    def of(cls, layout: Layout, model: onnx.ModelProto) -> Roles:
        """Find the tensors in a network.

        Raises:
            LayoutError: it has others.
        """
        graph = model.graph
        return cls.named(layout, tuple(map(_info, graph.input)), tuple(map(_info, graph.output)))

    @classmethod
    def named(
        cls, layout: Layout, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]
    ) -> Roles:
        """Find them among the tensors that a network declares.

        Raises:
            LayoutError: it has others.
        """
        binding = layout.connect(inputs, outputs)
        names = binding.inputs
        recipe = layout.front_end
        return cls(
            speech=names["speech"],
            lengths=names["speech_lengths"],
            columns=recipe.lfr_m * recipe.num_mel_bins,
            prompts=(names["language"], names["textnorm"]),
            scores=binding.scores,
        )

    def feeds(self, frames: int) -> dict[str, Array]:
        """Inputs of one clip of random features."""
        rng = np.random.default_rng(frames)
        speech = rng.standard_normal((1, frames, self.columns), np.float32)
        ids = {name: np.zeros(1, np.int32) for name in self.prompts}
        return {self.speech: speech, self.lengths: np.array([frames], np.int32), **ids}


def _info(tensor: onnx.ValueInfoProto) -> TensorInfo:
    dims = tensor.type.tensor_type.shape.dim
    shape = tuple(d.dim_value or d.dim_param or None for d in dims)
    return TensorInfo(tensor.name, "", shape)


def bookkeeping(graph: Graph, roles: Roles) -> set[str]:
    """Tensors that depend on the number of frames alone, never on what the features say."""
    free = {roles.lengths}
    for node in graph.ordered():
        inputs = [name for name in node.input if name]
        if node.op_type == "Shape" or all(n in free or graph.is_constant(n) for n in inputs):
            free.update(node.output)
    return {name for name in free if not graph.is_constant(name)}


@dataclass(frozen=True, slots=True)
class Meeting:
    """A place where a node of the features uses a bookkeeping tensor.

    Attributes:
        output: the first tensor that the node makes; it names the node in any copy of the graph.
        index: which of its inputs.
        tensor: the bookkeeping tensor.
        values: what it holds, one array for each of LENGTHS.
        unchanged: inputs of the node with the shape of its output at every length.
    """

    output: str
    index: int
    tensor: str
    values: tuple[Array, ...]
    unchanged: frozenset[str]

    def node(self, graph: Graph) -> onnx.NodeProto | None:
        """The node, if it still uses the tensor."""
        node = graph.producer.get(self.output)
        return node if node is not None and node.input[self.index] == self.tensor else None


def observe(graph: Graph, roles: Roles) -> list[Meeting]:
    """Run the graph at every length and look at each meeting.

    Args:
        graph: not changed.
        roles: its inputs.
    """
    free = bookkeeping(graph, roles)
    places = [
        (node, i, name)
        for node in graph.ordered()
        for i, name in enumerate(node.input)
        if name in free and not all(out in free for out in node.output)
    ]
    measured = {
        name
        for node, _, _ in places
        for name in (*node.input, node.output[0])
        if name and not graph.is_constant(name)
    }
    runs = _run(graph, roles, {name for _, _, name in places}, measured)
    return [
        Meeting(
            node.output[0],
            i,
            tensor,
            tuple(values[tensor] for values, _ in runs),
            frozenset(
                name
                for name in node.input
                if name in measured and all(s[name] == s[node.output[0]] for _, s in runs)
            ),
        )
        for node, i, tensor in places
    ]


def _run(
    graph: Graph, roles: Roles, tensors: set[str], shapes: set[str]
) -> list[tuple[dict[str, Array], dict[str, tuple[int, ...]]]]:
    """For every length: values of some tensors, shapes of others."""
    from onnx import helper

    from asr.engines.ort import quick_session

    asked, measured = sorted(tensors), sorted(shapes)
    extra = [helper.make_node("Shape", [name], [f"{name}//shape"]) for name in measured]
    model = graph.snapshot([*asked, *(f"{n}//shape" for n in measured)], extra)
    session = quick_session(model.SerializeToString())
    found = []
    for frames in LENGTHS:
        values = session.run(None, roles.feeds(frames))
        dims = values[len(asked) :]
        found.append(
            (
                dict(zip(asked, values, strict=False)),
                {n: tuple(map(int, d)) for n, d in zip(measured, dims, strict=True)},
            )
        )
    return found
