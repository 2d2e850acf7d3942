"""A model that computes each layer both ways, in floats and in bytes, and is told which to take.

One engine of it answers what any choice of layers costs in accuracy: a choice is an input. Biases
are not corrected here (`bias_correction.py`), so what is built is as good or a little better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode
from ...ops.arithmetic import Add, Mul, Sub
from ...ops.movement import Reshape
from ...ops.reduction import ReduceSum
from ...ops.slicing import Slice
from ...types import TensorType
from ..layers import Layer
from .level_values import LevelValues, Ranges
from .spelled_levels import LevelSpeller


@dataclass(frozen=True, slots=True)
class Simulation:
    """switches: the input that holds 1 for each layer that is to multiply bytes, 0 for others, in
    float32; layers that read the same value have the same. errors, powers: for each layer the
    output that is the sum of the squares of what bytes change in its result, and of the result.
    """

    graph: Graph
    switches: str
    errors: tuple[str, ...]
    powers: tuple[str, ...]


def simulated(graph: Graph, layers: Sequence[Layer], ranges: Ranges) -> Simulation:
    """The model whose layers compute both ways; layers, ranges: as of `with_levels`."""
    return _Simulator(graph, tuple(layers), ranges).write()


class _Simulator:
    def __init__(self, graph: Graph, layers: tuple[Layer, ...], ranges: Ranges) -> None:
        self.graph, self.layers = graph, layers
        self.values = LevelValues(graph, layers, ranges)
        self.builder = builder = GraphBuilder.like(graph)
        self.speller = LevelSpeller(graph, builder)
        self.by_result = {layer.result: layer for layer in layers}
        self.numbers_of = {layer.result: n for n, layer in enumerate(layers)}
        self.numbers: dict[str, str] = {}  # value -> the float that its levels stand for
        self.mixed: dict[str, str] = {}  # value -> that, or itself, as the switches say
        self.switches = builder.input(
            builder.fresh("switches"), TensorType("float32", (len(layers),))
        )
        self.switch = [self._switch(n) for n in range(len(layers))]
        self.errors: list[str] = []
        self.powers: list[str] = []

    def write(self) -> Simulation:
        """The graph, and what its new inputs and outputs are."""
        self._level(self.graph.inputs)
        for node in self.graph.nodes:
            layer = self.by_result.get(node.outputs[0])
            if layer is None:
                self.builder.add_node(self._reading(node))
            else:
                self._both(layer)
            self._level(node.outputs)
        outputs = (*self.graph.outputs, *self.errors, *self.powers)
        made = self.builder.finish(outputs)
        return Simulation(made, self.switches, tuple(self.errors), tuple(self.powers))

    def _switch(self, number: int) -> str:
        one = self.speller.add(Slice((number,), (1,), (1,)), self.switches, of=self.switches)
        return self.speller.add(Reshape(()), one, of=self.switches)

    def _level(self, values: Iterable[str]) -> None:
        for value in values:
            scale = self.values.scales.get(value)
            if scale is None:
                continue
            number = self.numbers[value] = self.speller.number(value, scale, value)
            readers = [n for n, layer in enumerate(self.layers) if layer.data == value]
            if readers:
                self.mixed[value] = self._either(self.switch[readers[0]], number, value, of=value)

    def _reading(self, node: GraphNode) -> GraphNode:
        """A node that reads levels where the model of bytes does."""
        inputs = tuple(
            self.mixed[value]
            if value in self.mixed and self.values.reads_levels(node, value, self.by_result)
            else value
            for value in node.inputs
        )
        return replace(node, inputs=inputs)

    def _both(self, layer: Layer) -> None:
        """The result of a layer, by floats or by bytes, and what the latter change."""
        node, add = layer.node, self.speller.add
        number = self.numbers_of[layer.result]
        exact = add(node.op, *node.inputs, of=layer.result)
        narrow = (self.numbers[layer.data], self.speller.weights(layer), *node.inputs[2:])
        coarse = add(node.op, *narrow, of=layer.result)
        change = add(Sub(), coarse, exact, of=layer.result)
        self.errors.append(self._power(change))
        self.powers.append(self._power(exact))
        scaled = add(Mul(), self.switch[number], change, of=layer.result)
        self.builder.add(Add(), exact, scaled, output=layer.result, name=node.name)

    def _either(self, switch: str, one: str, other: str, *, of: str) -> str:
        """other + switch * (one - other)"""
        change = self.speller.add(Sub(), one, other, of=of)
        return self.speller.add(Add(), other, self.speller.add(Mul(), switch, change, of=of), of=of)

    def _power(self, value: str) -> str:
        """The sum of the squares of all elements."""
        axes = tuple(range(self.builder.types[value].rank))
        square = self.speller.add(Mul(), value, value, of=value)
        return self.speller.add(ReduceSum(axes, False), square, of=value)
