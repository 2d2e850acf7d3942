"""Scan outputs of a Loop that ends when data say: arrays of the most rows are carried, each
iteration sets its row, and what the loop has not come to is cut off behind it.

A row is set by a choice over the whole array, since what is carried has one place and rows of it
are not written alone: an iteration takes as long as the array is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .....tir.sizes import closed_shape
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, make_graph
from ....ops.arithmetic import Add
from ....ops.data_size import SizeWithin
from ....ops.logic import Equal, Where
from ....ops.movement import Reshape
from ....ops.slicing import Slice
from ....regions.loop import ITERATION
from ....types import Splat, TensorType
from ..node import NodeReader
from .data_sizes import data_size
from .rule import Application


@dataclass(frozen=True, slots=True)
class CollectingBody:
    """A body that carries the arrays of what it collects, and how many rows they have so far.

    body: with these as its last carried values. first: what they are before the loop.
    """

    body: Graph
    first: tuple[str, ...]


def collecting(node: NodeReader, body: Graph, carried: int, rows: int, most: int) -> CollectingBody:
    """The body of a loop of so many carried values, whose last `rows` outputs are rows."""
    builder = GraphBuilder.like(body)
    for one in body.nodes:
        builder.add_node(one)
    number, *rest = body.inputs
    made = body.outputs[len(body.outputs) - rows :]
    types = [closed_shape(body.types[row].shape) for row in made]
    arrays = [
        builder.input(builder.fresh("rows"), TensorType(body.types[row].dtype, (most, *shape)))
        for row, shape in zip(made, types, strict=True)
    ]
    count = builder.input(builder.fresh("count"), ITERATION)
    later = [
        _with_row(builder, array, row, number) for array, row in zip(arrays, made, strict=True)
    ]
    step = builder.constant(builder.fresh("one"), Splat(1, "int64", ()))
    later.append(builder.add(Add(), count, step))
    order = (number, *rest[:carried], *arrays, count, *rest[carried:])
    inputs = {name: builder.inputs[name] for name in order}
    outputs = (*body.outputs[: len(body.outputs) - rows], *later)
    made_body = make_graph(body.name, inputs, outputs, builder.nodes, builder.constants)
    first = (*(_none(node, builder.inputs[array]) for array in arrays), _none(node, ITERATION))
    return CollectingBody(made_body, first)


def cut(node: NodeReader, arrays: tuple[str, ...], count: str, most: int) -> list[Application]:
    """The rows that a loop has come to, of each array."""
    what = f"number of rows of {node.proto.output[-1]}"
    size = data_size(node, node.emit(SizeWithin(most, what), count), most)
    found: list[Application] = []
    for array in arrays:
        rest = node.builder.types[array].shape[1:]
        zeros, ones = (0,) * (1 + len(rest)), (1,) * (1 + len(rest))
        found.append((Slice(zeros, (size, *rest), ones), (array,)))
    return found


def _none(node: NodeReader, type_: TensorType) -> str:
    """Zeros of a type."""
    return node.table("none", Splat(0, type_.dtype, closed_shape(type_.shape)))


def _with_row(builder: GraphBuilder, array: str, row: str, number: str) -> str:
    """The array with another row at the place `number`."""
    most, *rest = closed_shape(builder.types[array].shape)
    places = np.arange(most).reshape(most, *(1 for _ in rest))
    here = builder.add(Equal(), builder.constant(builder.fresh("places"), places), number)
    return builder.add(Where(), here, builder.add(Reshape((1, *rest)), row), array)
