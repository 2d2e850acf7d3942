"""Write a model so that its products multiply bytes: levels in front of each, bytes as weights.

The passes make products of bytes of that (`IntegerProducts`), as of a model that comes so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..passes.dead_code import DeadCode
from .layers import Layer
from .level_values import LevelValues, Ranges
from .spelled_levels import LevelSpeller


def with_levels(graph: Graph, layers: Iterable[Layer], ranges: Ranges) -> Graph:
    """The graph whose layers multiply bytes.

    layers: some of `find_layers(graph)`. ranges: the lowest and the highest number that levels
    stand for, by value, of all that layers multiply; others may be there.
    """
    chosen = tuple(layers)
    if not chosen:
        return graph
    return _LevelWriter(graph, chosen, LevelValues(graph, chosen, ranges)).write()


class _LevelWriter:
    def __init__(self, graph: Graph, layers: tuple[Layer, ...], values: LevelValues) -> None:
        self.graph = graph
        self.layers = {layer.result: layer for layer in layers}
        self.values = values
        self.builder = GraphBuilder.like(graph)
        self.speller = LevelSpeller(graph, self.builder)
        self.numbers: dict[str, str] = {}  # value -> the float that its levels stand for

    def write(self) -> Graph:
        """The graph; what nobody reads any more is gone."""
        self._level(self.graph.inputs)
        for node in self.graph.nodes:
            self.builder.add_node(replace(node, inputs=tuple(self._inputs(node))))
            self._level(node.outputs)
        result = self.builder.finish(self.graph.outputs)
        return DeadCode()(rebuilt(self.graph, result.nodes, result.constants))

    def _level(self, values: Iterable[str]) -> None:
        """Write the levels of those values that have any, and what they stand for."""
        for value in values:
            scale = self.values.scales.get(value)
            if scale is not None:
                source = self.values.source(value)
                self.numbers[value] = self.speller.number(source, scale, value)

    def _inputs(self, node: GraphNode) -> Iterator[str]:
        layer = self.layers.get(node.outputs[0])
        for number, value in enumerate(node.inputs):
            if layer is not None and number == 1:
                yield self.speller.weights(layer)
            elif value in self.numbers and self.values.reads_levels(node, value, self.layers):
                yield self.numbers[value]
            else:
                yield value
