"""An ONNX graph that can be searched by structure and rewritten in place."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import onnx

Array = npt.NDArray[Any]

MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators


class Graph:
    """Nodes, who makes each tensor and who uses it.

    Tensor names are only handles: nothing is ever found by its name.

    Args:
        model: is rewritten in place by ``finish``; its weights are not copied.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._nodes = {id(node): node for node in model.graph.node}
        self.outputs = [o.name for o in model.graph.output]
        self._weights = {i.name: i for i in model.graph.initializer}
        self._arrays: dict[str, Array] = {}
        self._names = set(self._weights) | {
            name for node in model.graph.node for name in (node.name, *node.input, *node.output)
        }
        self._count = 0
        self.producer: dict[str, onnx.NodeProto] = {}
        self._users: dict[str, dict[int, onnx.NodeProto]] = defaultdict(dict)
        for node in list(self._nodes.values()):
            self._enter(node)

    def _enter(self, node: onnx.NodeProto) -> None:
        self._nodes[id(node)] = node
        for name in node.output:
            self.producer[name] = node
        for name in node.input:
            self._users[name][id(node)] = node

    # -------------------------------------------------------------- looking

    def of_type(self, *op_types: str) -> Iterator[onnx.NodeProto]:
        """The nodes of some operators, in the file's order."""
        return (n for n in list(self._nodes.values()) if n.op_type in op_types)

    def maker(self, tensor: str, *op_types: str) -> onnx.NodeProto | None:
        """The node that makes a tensor, if it is of one of these operators."""
        node = self.producer.get(tensor)
        return node if node is not None and node.op_type in op_types else None

    def users(self, tensor: str) -> list[onnx.NodeProto]:
        """The nodes that use a tensor, each once."""
        return list(self._users[tensor].values()) if tensor in self._users else []

    def only_user(self, tensor: str, *op_types: str) -> onnx.NodeProto | None:
        """The one node that uses a tensor, if there is one alone and it is of these operators."""
        users = self.users(tensor)
        if len(users) != 1 or tensor in self.outputs or users[0].op_type not in op_types:
            return None
        return users[0]

    def constant(self, tensor: str) -> Array | None:
        """The value of a weight or a Constant, also behind Identity; None for all else."""
        from onnx import numpy_helper

        if tensor in self._arrays:
            return self._arrays[tensor]
        if tensor in self._weights:
            array = numpy_helper.to_array(self._weights[tensor])
            self._arrays[tensor] = array
            return array
        node = self.producer.get(tensor)
        if node is None:
            return None
        if node.op_type == "Identity":
            return self.constant(node.input[0])
        if node.op_type == "Constant":
            value = attributes(node).get("value")
            if value is None:
                return None  # another spelling, such as value_float
            array = numpy_helper.to_array(value)
            self._arrays[tensor] = array
            return array
        return None

    def is_constant(self, tensor: str) -> bool:
        """Whether ``constant`` has a value for it, without reading that."""
        node = self.producer.get(tensor)
        if node is None:
            return tensor in self._weights
        return node.op_type == "Constant" or (
            node.op_type == "Identity" and self.is_constant(node.input[0])
        )

    # -------------------------------------------------------------- rewriting

    def _new_name(self, kind: str) -> str:
        while (name := f"{kind}_{self._count}") in self._names:
            self._count += 1
        self._names.add(name)
        return name

    def add(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: int = 1,
        *,
        domain: str = "",
        **values: Any,  # noqa: ANN401 - as onnx takes them
    ) -> list[str]:
        """Append a node.

        Returns:
            the names of its outputs.
        """
        from onnx import helper

        names = [self._new_name(op_type) for _ in range(outputs)]
        node = helper.make_node(
            op_type, list(inputs), names, name=names[0], domain=domain, **values
        )
        self._enter(node)
        if domain:
            self.need_domain(domain)
        return names

    def add_constant(self, array: Array) -> str:
        """Store a weight.

        Returns:
            its name.
        """
        from onnx import numpy_helper

        name = self._new_name("weight")
        array = np.array(array, order="C")  # keeps a scalar's shape ()
        self._weights[name] = numpy_helper.from_array(array, name)
        self._arrays[name] = array
        return name

    def replace(self, tensor: str, by: str) -> None:
        """Let everybody who used one tensor use another; drop what nobody uses any more."""
        from onnx import helper

        old = self.producer.get(tensor)
        for node in self._users.pop(tensor, {}).values():
            for i, name in enumerate(node.input):
                if name == tensor:
                    node.input[i] = by
            self._users[by][id(node)] = node
        if tensor in self.outputs:  # keeps its name: callers ask for it
            maker = self.producer.pop(tensor)
            for i, name in enumerate(maker.output):
                if name == tensor:
                    maker.output[i] = self._new_name("unused")
            self._enter(helper.make_node("Identity", [by], [tensor]))
        if old is not None:
            self._drop_unused(old)

    def set_input(self, node: onnx.NodeProto, index: int, tensor: str) -> None:
        """Let one node use another tensor at one place; drop what nobody uses any more."""
        old = node.input[index]
        node.input[index] = tensor
        self._users[tensor][id(node)] = node
        if old and old not in node.input:
            del self._users[old][id(node)]
            if old in self.producer:
                self._drop_unused(self.producer[old])

    def _drop_unused(self, node: onnx.NodeProto) -> None:
        """Forget a node whose outputs nobody uses, and then its makers."""
        todo = [node]
        while todo:
            node = todo.pop()
            if any(self._users.get(name) or name in self.outputs for name in node.output):
                continue
            self._nodes.pop(id(node), None)
            for name in node.output:
                self.producer.pop(name, None)
            for name in dict.fromkeys(node.input):
                self._users[name].pop(id(node), None)
                if name in self.producer:
                    todo.append(self.producer[name])

    def need_domain(self, domain: str, version: int = 1) -> None:
        """Declare the operators of a domain."""
        from onnx import helper

        if all(entry.domain != domain for entry in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(domain, version))

    @property
    def opset(self) -> int:
        """Version of the standard operators."""
        return int(next(e.version for e in self.model.opset_import if e.domain in ("", "ai.onnx")))

    def snapshot(
        self, outputs: Sequence[str], extra: Sequence[onnx.NodeProto] = ()
    ) -> onnx.ModelProto:
        """A model of its own that computes some tensors; the weights it needs are copied.

        Args:
            outputs: tensors to return, also those that ``extra`` makes.
            extra: nodes to append.
        """
        from onnx import helper

        nodes = [*self.ordered([name for node in extra for name in node.input] + list(outputs)),
                 *extra]  # fmt: skip
        used = {name for node in nodes for name in node.input} | set(outputs)
        graph = helper.make_graph(
            nodes,
            "probe",
            list(self.model.graph.input),
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [w for name, w in self._weights.items() if name in used],
        )
        return helper.make_model(
            graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version
        )

    def finish(self) -> onnx.ModelProto:
        """Drop what nobody uses, sort, and write everything back into the model."""
        ordered = self.ordered()
        used = {name for node in ordered for name in node.input} | set(self.outputs)
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(ordered)
        del graph.value_info[:]  # shapes of tensors that may be gone
        kept = [w for name, w in self._weights.items() if name in used]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        return self.model

    def ordered(self, tensors: Sequence[str] | None = None) -> list[onnx.NodeProto]:
        """The nodes that some tensors need, by default the outputs; makers before users."""
        tensors = self.outputs if tensors is None else tensors
        ordered: list[onnx.NodeProto] = []
        done: set[int] = set()
        stack = [(self.producer[name], False) for name in tensors if name in self.producer]
        while stack:
            node, ready = stack.pop()
            if id(node) in done:
                continue
            if ready:
                done.add(id(node))
                ordered.append(node)
                continue
            stack.append((node, True))
            makers = (self.producer[n] for n in node.input if n in self.producer)
            stack.extend((maker, False) for maker in makers if id(maker) not in done)
        return ordered


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes as Python values."""
    from onnx import helper

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}
