"""Rules of the operators whose results are as large as data say: NonZero."""

from __future__ import annotations

import re

import numpy as np

from .....tir.dim import Dim
from .....tir.sizes import AnySize, dims_in, largest, size_of
from ....ir.ir import GraphNode
from ....ops.data_size import DataSize
from ....ops.finding import Coordinates, CountTrue, FindTrue
from ....ops.functions import Cast
from ....ops.movement import Reshape
from ....types import array_of, frozen
from ..node import NodeReader, NotSupported, node_name
from .rule import ImportRule, Result


def data_size(node: NodeReader, number: str, most: AnySize) -> AnySize:
    """The size that the value `number`, one int64 of 0 to `most`, is from here on."""
    if not largest(most):
        return 0
    builder = node.builder
    taken = {dim.name for type_ in builder.inputs.values() for dim in dims_in(type_.shape)}
    for other in builder.nodes:
        if isinstance(other.op, DataSize):
            taken |= {dim.name for dim in dims_in((other.op.size,))}
    name = wanted = re.sub(r"\W+", "_", f"{node.proto.output[0]}_count").strip("_")
    while name in taken:
        name = f"{wanted}_{len(taken)}"
        taken |= {name} - {wanted}
    size = size_of(Dim(name, low=0, high=largest(most)))
    value = builder.fresh(f"{node_name(node.proto)}.size")
    builder.add_node(GraphNode(DataSize(size), (number,), (value,), node.proto.name))
    return size


def found_places(node: NodeReader, flags: str) -> tuple[str, AnySize]:
    """Where the true elements of a vector stand, and how many they are."""
    length = node.builder.types[flags].shape[0]
    size = data_size(node, node.emit(CountTrue(), flags), length)
    return node.emit(FindTrue(size), flags), size


def _nonzero(node: NodeReader) -> Result:
    type_, known = node.type(0), node.builder.constants.get(node.value(0))
    if not type_.rank:
        raise NotSupported("its input has no axes")
    if known is not None:
        return frozen(np.stack(np.nonzero(array_of(known))).astype(np.int64))
    flat = node.emit(Reshape((type_.elements,)), node.value(0))
    flags = flat if type_.dtype == "bool" else node.emit(Cast("bool"), flat)
    places, size = found_places(node, flags)
    if type_.rank == 1:
        return Reshape((1, size)), (places,)
    return Coordinates(type_.shape), (places,)


RULES: dict[str, ImportRule] = {
    "NonZero": ImportRule((9, 13), (), _nonzero),
}
