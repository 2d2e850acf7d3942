"""The slices of a tensor along an axis in lexicographic order: of each, how many different ones are
before it. So equal slices have one number, and the numbers stand in the order of the slices.

The elements at one place of all slices are numbered first, then pairs of places by the numbers at
both, then pairs of pairs: R. M. Karp, R. E. Miller, A. L. Rosenberg, Rapid identification of
repeated patterns in strings, trees and arrays (STOC 1972).
"""

from __future__ import annotations

from .....tir.sizes import closed_shape
from ....ir.ir import GraphNode
from ....ops.arithmetic import Add, Mul
from ....ops.functions import Cast
from ....ops.gathering import GatherElements
from ....ops.logic import Equal, Not
from ....ops.movement import Concat, Reshape, Transpose
from ....ops.ranking import TopK
from ....ops.slicing import Slice
from ....ops.triangle import CumSum
from ....types import Splat
from ..node import NodeReader, node_name


def slice_numbers(node: NodeReader, axis: int) -> str:
    """The numbers of the slices of the first input, a vector of int64."""
    shape = closed_shape(node.type(0).shape)
    order = (*(d for d in range(len(shape)) if d != axis), axis)
    length = shape[axis]
    places = node.type(0).elements
    rows = node.emit(
        Reshape((places // length, length)), node.emit(Transpose(order), node.value(0))
    )
    numbers = _numbered(node, rows)
    while (count := closed_shape(node.builder.types[numbers].shape)[0]) > 1:
        if count % 2:
            more = node.table("more", Splat(0, "int64", (1, length)))
            numbers = node.emit(Concat(0), numbers, more)
        first, second = (
            node.emit(Slice((part, 0), ((count + 1) // 2, length), (2, 1)), numbers)
            for part in (0, 1)
        )
        factor = node.table("length", Splat(length, "int64", ()))
        numbers = _numbered(node, node.emit(Add(), node.emit(Mul(), first, factor), second))
    return node.emit(Reshape((length,)), numbers)


def _numbered(node: NodeReader, rows: str) -> str:
    """For each element, how many different ones of its row are before it in order."""
    count, length = closed_shape(node.builder.types[rows].shape)
    ordered, order = _sorted(node, rows)
    _, places = _sorted(node, order)
    shape = (count, length - 1)
    ends = (node.emit(Slice((0, start), shape, (1, 1)), ordered) for start in (0, 1))
    differs = node.emit(Not(), node.emit(Equal(), *ends))
    steps = node.emit(CumSum(1), node.emit(Cast("int64"), differs))
    zeros = node.table("zeros", Splat(0, "int64", (count, 1)))
    return node.emit(GatherElements(1), node.emit(Concat(1), zeros, steps), places)


def _sorted(node: NodeReader, rows: str) -> tuple[str, str]:
    """Each row in order, and where its elements stood; equal ones keep their order."""
    base = node_name(node.proto)
    made = (node.builder.fresh(f"{base}.sorted"), node.builder.fresh(f"{base}.order"))
    length = closed_shape(node.builder.types[rows].shape)[1]
    node.define(GraphNode(TopK(1, length, largest=False), (rows,), made, node.proto.name))
    return made
