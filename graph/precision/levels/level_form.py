"""Write a model so that its products multiply bytes: levels in front of each, bytes as weights.

The passes make products of bytes of that (`IntegerProducts`), as of a model that comes so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, rebuilt
from ...passes.dead_code import DeadCode
from ...types import owned
from ..layers import Layer
from .bias_correction import Corrected, corrected_biases
from .level_values import LevelValues, Ranges
from .spelled_levels import LevelSpeller

Means = Mapping[str, NDArray[np.float32]]


def with_levels(
    graph: Graph, layers: Iterable[Layer], ranges: Ranges, means: Means = MappingProxyType({})
) -> Graph:
    """The graph whose layers multiply bytes.

    layers: some of `find_layers(graph)`. ranges: the lowest and the highest number that levels
    stand for, by value, of all that layers multiply; others may be there. means: of each channel of
    what layers multiply, by value; what rounding weights adds to those of results is taken from
    their biases.
    """
    chosen = tuple(layers)
    if not chosen:
        return graph
    values = LevelValues(graph, chosen, ranges)
    return _LevelWriter(graph, chosen, values, corrected_biases(graph, chosen, means)).write()


class _LevelWriter:
    def __init__(
        self,
        graph: Graph,
        layers: tuple[Layer, ...],
        values: LevelValues,
        biases: Corrected,
    ) -> None:
        self.graph = graph
        self.biases = biases
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
            bias = self.biases.get((node.outputs[0], number))
            if bias is not None:
                yield self.speller.table(f"{value}.corrected", owned(bias))
            elif layer is not None and number == 1:
                yield self.speller.weights(layer)
            elif value in self.numbers and self.values.reads_levels(node, value, self.layers):
                yield self.numbers[value]
            else:
                yield value
