"""Compute what depends on constants alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import closed_shape
from ..ir.at_sizes import has_sizes
from ..ir.ir import Graph, GraphNode, RegionOperator, rebuilt
from ..reference.reference import apply
from ..types import Constant, Splat, TensorType, array_of, owned


@dataclass(frozen=True, slots=True)
class ConstantFolding:
    """Replace every node whose inputs are all constants by constants.

    Splats stay splats where the result is one. Other results are computed in the dtype of the graph
    until those that somebody still reads take `max_bytes`, or all `max_steps` of NumPy; nodes
    beyond that stay.
    """

    keeps_rounding: ClassVar[bool] = True

    max_bytes: int = 256 << 20
    max_steps: int = 1 << 30

    def __call__(self, graph: Graph) -> Graph:
        constants = dict(graph.constants)
        kept: list[GraphNode] = []
        budget, steps = self.max_bytes, self.max_steps
        computed: dict[str, int] = {}  # value -> its bytes
        readers = Counter(value for node in graph.nodes for value in node.inputs)
        for node in graph.nodes:
            known = node.inputs and all(value in constants for value in node.inputs)
            regions = isinstance(node.op, RegionOperator)  # nobody knows how long they run
            if regions or not known or has_sizes(node.op):
                kept.append(node)
                continue
            operands = tuple(constants[value] for value in node.inputs)
            types = tuple(graph.types[value] for value in node.outputs)
            splat = _splat(node, operands, types)
            if splat is None:
                cost = sum(type_.bytes for type_ in types)
                work = node.op.work(tuple(graph.types[value] for value in node.inputs))
                # an operand may be a splat, which takes no memory until NumPy reads it
                if max(cost, work.held - _stored(operands)) > budget or work.steps > steps:
                    kept.append(node)
                    continue
                budget, steps = budget - cost, steps - work.steps
                computed.update((one, graph.types[one].bytes) for one in node.outputs)
            results = (splat,) if splat is not None else _computed(node, operands)
            constants.update(zip(node.outputs, results, strict=True))
            readers.subtract(node.inputs)
            for value in computed.keys() & set(node.inputs):
                if not readers[value] and value not in graph.outputs:
                    budget += computed.pop(value)
                    del constants[value]
        return rebuilt(graph, kept, constants)


def _stored(operands: tuple[Constant, ...]) -> int:
    """Elements that lie in memory before anything is computed."""
    return sum(operand.size for operand in operands if not isinstance(operand, Splat))


def _computed(node: GraphNode, operands: tuple[Constant, ...]) -> tuple[Constant, ...]:
    return tuple(owned(array) for array in apply(node.op, *map(array_of, operands)))


def _splat(
    node: GraphNode, operands: tuple[Constant, ...], types: tuple[TensorType, ...]
) -> Splat | None:
    """The only result as a splat; None when it is not one, or not seen to be one."""
    splats = [operand for operand in operands if isinstance(operand, Splat)]
    if len(splats) != len(operands) or len(types) > 1:
        return None
    number = node.op.fold_splats(splats)
    return None if number is None else Splat(number, types[0].dtype, closed_shape(types[0].shape))
