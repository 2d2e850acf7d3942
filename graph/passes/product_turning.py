"""Compute products in the order in which they are read, where that takes fewer Transposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import closed_shape
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.base import Permutation
from ..ops.matmul import MatMul
from ..ops.movement import Transpose
from ..types import Constant, composed, owned, permuted
from .view_motion import seen


@dataclass(frozen=True, slots=True)
class ProductTurning:
    """Multiply the transposed matrices the other way round, (a @ b)' = b' @ a', where a Transpose
    alone reads the product and fewer Transposes are left.

    Transpose[..., n, m](a @ b)   ->   b' @ a'

    Each element is the sum of the same products, in their order.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        makers, readers = graph.producers, graph.consumers
        found = dict[str, GraphNode]()
        gone = set[str]()
        for node in graph.nodes:
            product = makers.get(node.inputs[0]) if isinstance(node.op, Transpose) else None
            if product is None or not _is_turned(graph, readers, node, product):
                continue
            turned = {
                value: makers[value]
                for value in product.inputs
                if value in makers and isinstance(makers[value].op, Transpose)
            }
            if _saved(graph, node, product, turned) > 0:
                found[node.outputs[0]] = product
                gone.update(product.outputs)
                gone.update(
                    value
                    for value in turned
                    if value not in graph.outputs
                    and all(reader is product for reader in readers[value])
                )
        return _rewritten(graph, found, gone) if found else graph


def _is_turned(
    graph: Graph, readers: Mapping[str, list[GraphNode]], node: GraphNode, product: GraphNode
) -> bool:
    """Whether a Transpose alone reads a product of stacks, and puts its columns before its rows."""
    if not isinstance(product.op, MatMul):
        return False
    value = product.outputs[0]
    rank = graph.types[value].rank
    alone = len(readers[value]) == 1 and value not in graph.outputs
    same = all(graph.types[one].rank == rank for one in product.inputs)
    order = _order(node)
    return alone and same and order.index(rank - 1) < order.index(rank - 2)


def _order(node: GraphNode) -> Permutation:
    assert isinstance(node.op, Transpose)
    return node.op.permutation


def _swapped(rank: int) -> Permutation:
    """The permutation that turns each matrix of a stack."""
    return (*range(rank - 2), rank - 1, rank - 2)


def _saved(
    graph: Graph, node: GraphNode, product: GraphNode, turned: Mapping[str, GraphNode]
) -> int:
    """How many Transposes less there are."""
    order = _order(node)
    swap = _swapped(len(order))
    after = int(composed(swap, order) != tuple(range(len(order))))
    for value in product.inputs:
        if value in turned:
            own = composed(_order(turned[value]), swap)
            after += own != tuple(range(len(own)))
        else:
            after += value not in graph.constants
    return 1 + len(turned) - after


def _rewritten(graph: Graph, found: Mapping[str, GraphNode], gone: set[str]) -> Graph:
    makers = graph.producers
    builder = GraphBuilder.like(graph)

    def matrix(value: str) -> str:
        """A value with its matrices turned."""
        maker, swap = makers.get(value), _swapped(graph.types[value].rank)
        if value in graph.constants:
            constant = _turned(graph.constants[value], swap)
            return builder.constant(builder.fresh(f"{value}.turned"), constant)
        if maker is not None and isinstance(maker.op, Transpose):
            own = composed(maker.op.permutation, swap)
            source = maker.inputs[0]
            is_same = own == tuple(range(len(own)))
            return source if is_same else builder.add(Transpose(own), source)
        return builder.add(Transpose(swap), value)

    for node in graph.nodes:
        value = node.outputs[0]
        if value in found:
            a, b = map(matrix, found[value].inputs)
            order = composed(_swapped(graph.types[value].rank), _order(node))
            name = found[value].name
            if order == tuple(range(len(order))):
                builder.add_node(GraphNode(MatMul(), (b, a), node.outputs, name))
                continue
            made = builder.add(MatMul(), b, a, output=builder.fresh(f"{value}.turned"), name=name)
            builder.add_node(GraphNode(Transpose(order), (made,), node.outputs, node.name))
        elif value not in gone:
            builder.add_node(node)
    result = builder.finish(graph.outputs)
    return rebuilt(graph, result.nodes, result.constants)


def _turned(constant: Constant, swap: Permutation) -> Constant:
    shape = closed_shape(permuted(constant.shape, swap))
    return seen(constant, shape, lambda array: owned(array.transpose(swap)))
