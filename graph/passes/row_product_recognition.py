"""Read the second matrix of a product by its rows, where few rows meet it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...schedule.rules.products.contraction import FEW_ROWS
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.base import Permutation
from ..ops.matmul import MatMul, RowProducts
from ..ops.movement import Transpose
from ..types import composed


@dataclass(frozen=True, slots=True)
class RowProductRecognition:
    """Multiply few rows by those of a matrix as it lies, where a Transpose that nobody else reads
    made columns of them. Of more rows a Transpose costs less than sums along two rows do.

    a @ Transpose(b)   ->   RowProducts(a, b), or of a Transpose that moves whole rows of b

    Each element is the sum of the same products.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        makers, readers = graph.producers, graph.consumers
        found = {
            id(node): order
            for node in graph.nodes
            if (order := _order(graph, makers, readers, node)) is not None
        }
        return _rewritten(graph, found) if found else graph


def _order(
    graph: Graph,
    makers: Mapping[str, GraphNode],
    readers: Mapping[str, list[GraphNode]],
    node: GraphNode,
) -> Permutation | None:
    """How the axes of what is transposed stand in a stack of its rows; None where the node is no
    such product.
    """
    if not isinstance(node.op, MatMul):
        return None
    a, b = node.inputs
    rows, maker = graph.types[a].shape[-2], makers.get(b)
    if maker is None or not isinstance(maker.op, Transpose):
        return None
    alone = len(readers[b]) == 1 and b not in graph.outputs
    if not alone or not isinstance(rows, int) or rows >= FEW_ROWS:
        return None
    last = graph.types[b].rank - 1
    order = composed(maker.op.permutation, (*range(last - 1), last, last - 1))
    return order if order[-1] == last else None


def _rewritten(graph: Graph, found: Mapping[int, Permutation]) -> Graph:
    makers, builder = graph.producers, GraphBuilder.like(graph)
    gone = {node.inputs[1] for node in graph.nodes if id(node) in found}
    for node in graph.nodes:
        order = found.get(id(node))
        if order is not None:
            a, b = node.inputs
            (source,) = makers[b].inputs
            if order != tuple(range(len(order))):
                source = builder.add(Transpose(order), source)
            builder.add_node(GraphNode(RowProducts(), (a, source), node.outputs, node.name))
        elif node.outputs[0] not in gone:
            builder.add_node(node)
    result = builder.finish(graph.outputs)
    return rebuilt(graph, result.nodes, result.constants)
