"""Build a Graph node by node: what importers, passes and tests use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import ModelError
from ..ops.base import Operator
from ..ops.functions import Cast
from ..ops.movement import Identity
from ..ops.size_values import SizeValues
from ..types import Constant, TensorType, type_of
from .ir import Graph, GraphNode, make_graph


class GraphBuilder:
    """A graph under construction; each call names a value that later calls may read.

    builder = GraphBuilder("tiny")
    x = builder.input("x", TensorType("float32", (1, 8)))
    y = builder.add(Relu(), x, output="y")
    graph = builder.finish((y,))
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: dict[str, TensorType] = {}
        self.constants: dict[str, Constant] = {}
        self.nodes: list[GraphNode] = []
        self.types: dict[str, TensorType] = {}
        self.sizes: dict[str, SizeValues] = {}  # what holds sizes that a run decides
        self.reserved: frozenset[str] = frozenset()
        self._numbers: dict[str, int] = {}  # base of a name -> the last number appended to it

    @staticmethod
    def like(graph: Graph) -> GraphBuilder:
        """A builder with the inputs and constants of `graph`; `fresh` avoids all its names."""
        builder = GraphBuilder(graph.name)
        builder.inputs = {name: graph.types[name] for name in graph.inputs}
        builder.constants = dict(graph.constants)
        builder.types = {name: graph.types[name] for name in (*graph.inputs, *graph.constants)}
        builder.reserved = frozenset(graph.types)
        return builder

    def input(self, name: str, type_: TensorType) -> str:
        """An input of the model."""
        self._define(name, type_)
        self.inputs[name] = type_
        return name

    def constant(self, name: str, value: Constant) -> str:
        """A constant; an array is kept, not copied, and must not change any more."""
        self._define(name, type_of(value))
        self.constants[name] = value
        return name

    def add(self, op: Operator, *inputs: str, output: str = "", name: str = "") -> str:
        """A node with one output; its value is called `output`, or after the operator. One with
        several is a matter for `add_node`.
        """
        value = output or self.fresh(op.title.lower())
        self.add_node(GraphNode(op, inputs, (value,), name))
        return value

    def add_node(self, node: GraphNode) -> None:
        """A node as it is. Raises: ModelError when its inputs do not fit or a name is taken."""
        for value in node.inputs:
            if value not in self.types:
                raise ModelError(
                    f"graph: {node.title} reads '{value}', which is not defined yet.",
                    code="build-undefined",
                )
        for value, type_ in zip(node.outputs, node.infer(self.types), strict=True):
            self._define(value, type_)
        if isinstance(node.op, SizeValues):
            self.sizes[node.outputs[0]] = node.op
        self.nodes.append(node)

    def size_values(self, op: SizeValues, output: str, dtype: str, name: str = "") -> GraphNode:
        """A value that holds sizes, of another type than int64 too; the node that makes it."""
        if dtype == "int64":
            node = GraphNode(op, (), (output,), name)
        else:
            wide = self.fresh(f"{output}.sizes")
            self.add_node(GraphNode(op, (), (wide,), name))
            node = GraphNode(Cast(dtype), (wide,), (output,), name)
        self.add_node(node)
        self.sizes[output] = op
        return node

    def drop_unread_sizes(self, outputs: Iterable[str]) -> None:
        """Remove the nodes that say what sizes are and that nobody reads."""
        read, kept = set(outputs), list[GraphNode]()
        for node in reversed(self.nodes):
            if node.outputs[0] not in self.sizes or node.outputs[0] in read:
                read.update(node.inputs)
                kept.append(node)
        self.nodes = kept[::-1]

    def fresh(self, base: str) -> str:
        """A name that no value has: `base`, or `base` with _1, _2 appended."""
        number = self._numbers.get(base, 0)
        name = f"{base}_{number}" if number else base
        while name in self.types or name in self.reserved:
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number
        return name

    def finish(self, outputs: Mapping[str, str] | tuple[str, ...]) -> Graph:
        """The graph; `outputs` maps the name of each output of the model to the value that it is.

        A value computed by a node or held by a constant takes the output's name; an input, or a
        value that is an output already, is passed on by an Identity.
        """
        pairs = outputs if isinstance(outputs, Mapping) else {name: name for name in outputs}
        computed = {value for node in self.nodes for value in node.outputs} | set(self.constants)
        renames: dict[str, str] = {}
        copies: list[GraphNode] = []
        for name, value in pairs.items():
            if name == value:
                continue
            if value in computed and value not in pairs and value not in renames:
                renames[value] = name
            else:
                copies.append(GraphNode(Identity(), (value,), (name,)))

        def final(value: str) -> str:
            return renames.get(value, value)

        nodes = [
            GraphNode(
                node.op, tuple(map(final, node.inputs)), tuple(map(final, node.outputs)), node.name
            )
            for node in (*self.nodes, *copies)
        ]
        constants = {final(name): value for name, value in self.constants.items()}
        return make_graph(self.name, self.inputs, pairs, nodes, constants)

    def _define(self, name: str, type_: TensorType) -> None:
        if name in self.types:
            raise ModelError(f"graph: '{name}' is defined twice.", code="build-duplicate")
        self.types[name] = type_
