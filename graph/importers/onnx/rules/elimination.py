"""Rules of Det and of onnxruntime's Inverse: a loop eliminates column after column."""

from __future__ import annotations

import numpy as np

from .....tir.sizes import closed
from ....errors import ModelError
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, GraphNode
from ....ops.arithmetic import Mul
from ....ops.functions import Cast
from ....ops.gathering import GatherElements
from ....ops.linear_algebra.determinant import MOST_ROWS, Det
from ....ops.linear_algebra.elimination import EliminationStep
from ....ops.logic import Equal, Where
from ....ops.movement import Identity, Reshape
from ....ops.repetition import Expand
from ....regions.loop import ITERATION, Loop
from ....types import Splat, TensorType
from ..node import NodeReader, node_name
from .rule import ImportRule, Result

_STORED = ("float16", "bfloat16")  # they are computed in float32


def _det(node: NodeReader) -> Result:
    """Of few rows, one kernel for each; of more, a loop."""
    x = _matrices(node)
    if closed(x.shape[-1]) <= MOST_ROWS:
        return Det(), node.inputs
    *_, total = _eliminated(node, with_total=True)
    return _rounded(node, total)


def _inverse(node: NodeReader) -> Result:
    """The columns of what the elimination leaves, where its swaps of rows want them."""
    x = _matrices(node)
    if not closed(x.shape[-1]):
        return Identity(), node.inputs
    left, places = _eliminated(node)
    (*batch, size, _) = x.shape
    apart = node.emit(Reshape((*batch, 1, size)), places)
    whole = node.emit(Cast("int64"), node.emit(Expand(x.shape), apart))
    return _rounded(node, node.emit(GatherElements(x.rank - 1), left, whole))


def _matrices(node: NodeReader) -> TensorType:
    """The type of the input. Raises: ModelError where it is no stack of square matrices."""
    x = node.type(0)
    if x.rank < 2 or x.shape[-1] != x.shape[-2] or not x.is_float:
        raise ModelError(
            f"model: {node.title} reads '{node.value(0)}' of type {x}; expected square matrices of "
            "floating-point numbers.",
            code="onnx-matrices",
        )
    return x


def _eliminated(node: NodeReader, *, with_total: bool = False) -> tuple[str, ...]:
    """What all steps leave of the matrices: they, where their rows stand, and, where it is asked
    for, the product of the pivots.
    """
    x, value = node.type(0), node.value(0)
    if x.dtype in _STORED:
        value = node.emit(Cast("float32"), value)
    kind = node.builder.types[value].dtype
    (*batch, size, _) = x.shape
    rows = node.table("places", np.arange(closed(size), dtype=np.int32))
    carried = [value, node.emit(Expand((*batch, size)), rows)]
    if with_total:
        one = node.table("one", Splat(1.0, kind, ()))
        carried.append(node.emit(Expand(tuple(batch)), one))
    body = _step(node, [node.builder.types[name] for name in carried])
    names = [node.builder.fresh(f"{node_name(node.proto)}.{part}") for part in body.outputs]
    loop = Loop(body, len(carried), closed(size))
    node.define(GraphNode(loop, tuple(carried), tuple(names), node.proto.name))
    return tuple(names)


def _step(node: NodeReader, types: list[TensorType]) -> Graph:
    """An iteration. A determinant that is 0 stays so, whatever the pivots behind it are."""
    builder = GraphBuilder(f"{node_name(node.proto)}.step")
    number = builder.input("number", ITERATION)
    x, places, *total = (builder.input(f"before{n}", type_) for n, type_ in enumerate(types))
    made = ("left", "places", "pivot")
    builder.add_node(GraphNode(EliminationStep(), (x, places, number), made))
    if not total:
        return builder.finish(("left", "places"))
    zero = builder.constant("zero", Splat(0.0, types[0].dtype, ()))
    builder.add_node(GraphNode(Mul(), (*total, "pivot"), ("product",)))
    builder.add_node(GraphNode(Equal(), (*total, zero), ("is_zero",)))
    builder.add_node(GraphNode(Where(), ("is_zero", zero, "product"), ("total",)))
    return builder.finish(("left", "places", "total"))


def _rounded(node: NodeReader, value: str) -> Result:
    kind = node.type(0).dtype
    return (Cast(kind) if kind in _STORED else Identity()), (value,)


RULES: dict[str, ImportRule] = {
    "Det": ImportRule((11, 22), (), _det),
    "com.microsoft.Inverse": ImportRule((1,), (), _inverse),
}
