"""Rules of the operators whose results are as large as data say: NonZero, Compress."""

from __future__ import annotations

import re
from itertools import chain, count

import numpy as np

from .....tir.dim import Dim
from .....tir.sizes import AnySize, dims_in, largest, size_of
from ....errors import ModelError
from ....ir.ir import GraphNode
from ....ops.base import normal_axis
from ....ops.data_size import DataSize, SizeWithin
from ....ops.finding import Coordinates, CountTrue, FindTrue, TrueWords
from ....ops.gathering import Gather
from ....ops.movement import Reshape
from ....ops.ranges import RangeLength, RangeValues
from ....types import array_of, frozen
from ...symbols import Range
from ..node import NodeReader, NotSupported, node_name
from .rule import ImportRule, Result


def data_size(node: NodeReader, number: str, most: AnySize, *, usual: int | None = None) -> AnySize:
    """The size that the value `number`, one int64 of 0 to `most`, is from here on. usual: the one
    for which schedules are chosen, the largest where it is None.
    """
    if not largest(most):
        return 0
    builder = node.builder
    taken = {dim.name for type_ in builder.inputs.values() for dim in dims_in(type_.shape)}
    for other in builder.nodes:
        if isinstance(other.op, DataSize):
            taken |= {dim.name for dim in dims_in((other.op.size,))}
    wanted = re.sub(r"\W+", "_", f"{node.proto.output[0]}_count").strip("_")
    others = (f"{wanted}_{number}" for number in count(1))
    name = next(name for name in chain([wanted], others) if name not in taken)
    size = size_of(Dim(name, low=0, high=largest(most), typical=usual))
    value = builder.fresh(f"{node_name(node.proto)}.size")
    builder.add_node(GraphNode(DataSize(size), (number,), (value,), node.proto.name))
    return size


def size_within(node: NodeReader, number: str, most: int, what: str) -> AnySize:
    """The size that the value `number`, one int64, is from here on: a run refuses one that is not 0
    to `most`. what: the number, for messages.
    """
    return data_size(node, node.emit(SizeWithin(most, what), number), most)


def scalar(node: NodeReader, position: int, dtype: str = "int64") -> str:
    """An input of one element, without axes."""
    value, type_ = node.value(position), node.type(position)
    if type_.dtype != dtype or type_.elements != 1:
        raise ModelError(
            f"model: input {position} of {node.title} is {type_}; expected one {dtype}.",
            code="onnx-scalar",
        )
    return value if not type_.rank else node.emit(Reshape(()), value)


def found_places(node: NodeReader, flags: str, most: AnySize | None = None) -> tuple[str, AnySize]:
    """Where the elements of a vector stand that are true, or not 0, and how many they are: `most`
    at most.
    """
    length = node.builder.types[flags].shape[0]
    words = node.emit(TrueWords(largest(length)), flags)
    size = data_size(node, node.emit(CountTrue(), words), length if most is None else most)
    return node.emit(FindTrue(size, length), words), size


def _nonzero(node: NodeReader) -> Result:
    type_, known = node.type(0), node.builder.constants.get(node.value(0))
    if not type_.rank:
        raise NotSupported("its input has no axes")
    if known is not None:
        return frozen(np.stack(np.nonzero(array_of(known))).astype(np.int64))
    flat = node.emit(Reshape((type_.elements,)), node.value(0))
    places, size = found_places(node, flat)
    if type_.rank == 1:
        return Reshape((1, size)), (places,)
    return Coordinates(type_.shape), (places,)


def _compress(node: NodeReader) -> Result:
    """The elements, or slices along an axis, at which a condition is true."""
    shape, flags = node.type(0).shape, node.type(1)
    if flags.dtype != "bool" or flags.rank != 1:
        raise ModelError(
            f"model: {node.title} has the condition {flags}; expected a vector of bool.",
            code="onnx-compress",
        )
    source, axis = node.value(0), 0
    if node.given("axis"):
        axis = normal_axis(Gather(0), node.integer("axis"), len(shape))
    else:
        shape = (node.type(0).elements,)
        source = node.emit(Reshape(shape), source)
    if flags.shape[0] > shape[axis]:
        raise ModelError(
            f"model: {node.title} has {flags.shape[0]} conditions for {shape[axis]} elements; "
            "expected at most one for each.",
            code="onnx-compress-length",
        )
    known = node.builder.constants.get(node.value(1))
    if known is None:
        places, _ = found_places(node, node.value(1))
    else:
        places = node.table("places", np.flatnonzero(array_of(known)))
    return Gather(axis), (source, places)


def data_range(node: NodeReader) -> Result:
    """A range of which data decide an end, within the bounds that the caller gives."""
    output, kind = node.proto.output[0], node.type(0).dtype
    bounds = stated_bounds(node, output)
    start, limit, step = (scalar(node, position, kind) for position in range(3))
    length = node.emit(RangeLength(), start, limit, step)
    size = size_within(node, length, bounds[-1], f"length of {output}")
    return RangeValues(size), (start, step)


def stated_bounds(node: NodeReader, output: str) -> Range:
    """What the caller says of the size of an output that nothing else bounds."""
    if output not in node.bounds:
        raise NotSupported(
            f"data decide how large '{output}' is, and nothing bounds it; expected "
            f"shapes={{'{output}': (0, 8, 100)}}: the least, the usual and the largest size",
            unknown=[
                value for value in node.inputs if value and node.builder.types[value].rank < 2
            ],
        )
    return node.bounds[output]


RULES: dict[str, ImportRule] = {
    "Compress": ImportRule((9, 11, 28), ("axis",), _compress),
    "NonZero": ImportRule((9, 13), (), _nonzero),
}
