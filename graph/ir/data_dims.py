"""Sizes that a run computes: which node says what one is, and who takes it.

A `DataSize` has the number; every node behind it may have the size in its types and its attributes,
whether it reads what depends on that node or not.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dim import Dim
from ...tir.sizes import dims_in
from ..ops.data_size import DataSize
from ..types import TensorType
from .ir import Graph, GraphNode, open_attributes


def data_dims(graph: Graph) -> tuple[Dim, ...]:
    """The sizes of a graph that a run computes, in order."""
    return tuple(size_makers(graph))


def size_makers(graph: Graph) -> dict[Dim, GraphNode]:
    """The node that says what each size is that a run computes."""
    return {
        dim: node
        for node in graph.nodes
        if isinstance(node.op, DataSize)
        for dim in dims_in((node.op.size,))
    }


def dims_taken(node: GraphNode, types: Mapping[str, TensorType]) -> tuple[Dim, ...]:
    """The sizes that a node has in its attributes and in the types of its values."""
    values = (*node.inputs, *node.outputs)
    told = dims_in(size for value in values for size in types[value].shape)
    named = (dim for dims in open_attributes(node.op).values() for dim in dims)
    return tuple(dict.fromkeys((*named, *told)))
