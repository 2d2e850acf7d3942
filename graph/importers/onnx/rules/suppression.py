"""The rule of NonMaxSuppression: boxes are sorted by their scores, a loop drops those that better
ones cover, and what is left is found.
"""

from __future__ import annotations

import numpy as np

from .....tir.sizes import closed
from ....errors import ModelError
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, GraphNode
from ....ops.finding import Coordinates
from ....ops.functions import Cast
from ....ops.gathering import Gather, GatherND
from ....ops.logic import And, Less, LessOrEqual, Not, Where
from ....ops.movement import Concat, Reshape, Transpose
from ....ops.overlap import BoxEdges, OverlapStep
from ....ops.ranking import TopK
from ....ops.reduction import ReduceMax
from ....ops.slicing import Slice
from ....ops.triangle import CumSum
from ....regions.loop import ITERATION, Loop
from ....types import Array, Splat, TensorType, array_of, frozen
from ..node import NodeReader, node_name
from .data_sizes import found_places, scalar
from .rule import ImportRule, Result


def _suppression(node: NodeReader) -> Result:
    """Rows of batch, class and box: in each class the best ones first."""
    batch, classes, count = _sizes(node)
    most = _most(node)
    if not batch * classes * count or most == 0:
        return frozen(np.zeros((0, 3), np.int64))
    shape = (batch, classes, count)
    scores, order = _sorted(node, shape)
    rows = node.emit(Reshape((*shape, 1)), order)
    edges = node.emit(BoxEdges(node.integer("center_point_box", 0) != 0), node.value(0))
    boxes = node.emit(Transpose((0, 1, 3, 2)), node.emit(GatherND(1), edges, rows))
    dropped, steps = _below_threshold(node, scores, shape)
    kept = node.emit(Not(), _looped(node, dropped, steps, boxes, count))
    if most is None or most < count:
        kept = _first(node, kept)
    flags = node.emit(Reshape((batch * classes * count,)), kept)
    bound = batch * classes * (count if most is None else min(most, count))
    places, size = found_places(node, flags, bound)
    found = node.emit(Coordinates(shape), places)
    found = node.emit(Slice((0, 0), (2, size), (1, 1)), found)
    flat = node.emit(Reshape((batch * classes * count,)), order)
    box = node.emit(Reshape((1, size)), node.emit(Gather(0), flat, places))
    return Transpose((1, 0)), (node.emit(Concat(0), found, box),)


def _sizes(node: NodeReader) -> tuple[int, int, int]:
    """How many batches, classes and boxes there are. Raises: ModelError, SizeError."""
    boxes, scores = node.type(0), node.type(1)
    fitting = boxes.rank == scores.rank == 3 and boxes.dtype == scores.dtype == "float32"
    if not fitting or (*boxes.shape[:2], 4) != (scores.shape[0], scores.shape[2], boxes.shape[2]):
        raise ModelError(
            f"model: {node.title} has boxes {boxes} and scores {scores}; expected float32 boxes of "
            "[batch, n, 4] and scores of [batch, classes, n].",
            code="onnx-boxes",
        )
    return closed(scores.shape[0]), closed(scores.shape[1]), closed(scores.shape[2])


def _most(node: NodeReader) -> int | None:
    """The most boxes of a class; None where data decide it."""
    if not node.has(2):
        return 0
    known = node.builder.constants.get(node.value(2))
    return None if known is None else max(0, int(array_of(known).item()))


def _sorted(node: NodeReader, shape: tuple[int, ...]) -> tuple[str, str]:
    """The scores of each class, the largest first, and the boxes that have them."""
    name = node_name(node.proto)
    made = tuple(node.builder.fresh(f"{name}.{part}") for part in ("scores", "order"))
    node.define(GraphNode(TopK(2, shape[2]), (node.value(1),), made, node.proto.name))
    return made[0], made[1]


def _below_threshold(
    node: NodeReader, scores: str, shape: tuple[int, ...]
) -> tuple[str, str | None]:
    """Which boxes are dropped since their scores are low, and how many there are at most in a class
    up to the last one that is not; None where none is dropped.
    """
    if not node.has(4):
        return _constant(node, "none", Splat(False, "bool", shape)), None
    good = node.emit(Less(), scalar(node, 4, "float32"), scores)
    numbers = _constant(node, "numbers", np.arange(1, shape[2] + 1))
    zero = _constant(node, "zero", Splat(0, "int64", ()))
    last = node.emit(ReduceMax((0, 1, 2), False), node.emit(Where(), good, numbers, zero))
    return node.emit(Not(), good), last


def _looped(node: NodeReader, dropped: str, steps: str | None, boxes: str, count: int) -> str:
    """Which boxes are dropped when each one has been looked at, from the best one on."""
    threshold = (
        scalar(node, 3, "float32")
        if node.has(3)
        else _constant(node, "threshold", Splat(0.0, "float32", ()))
    )
    types = node.builder.types
    body = _body([types[value] for value in (dropped, boxes, threshold)], node)
    op = Loop(body, 1, count, counted=steps is not None)
    value = node.builder.fresh(f"{node_name(node.proto)}.dropped")
    inputs = (*(() if steps is None else (steps,)), dropped, boxes, threshold)
    node.define(GraphNode(op, inputs, (value,), node.proto.name))
    return value


def _body(types: list[TensorType], node: NodeReader) -> Graph:
    """What an iteration does: it looks at one box of each class."""
    builder = GraphBuilder(f"{node_name(node.proto)}.boxes")
    number = builder.input("number", ITERATION)
    dropped, boxes, threshold = (
        builder.input(name, type_)
        for name, type_ in zip(("dropped", "boxes", "threshold"), types, strict=True)
    )
    later = builder.add(OverlapStep(), dropped, number, boxes, threshold, output="next")
    return builder.finish((later,))


def _first(node: NodeReader, kept: str) -> str:
    """Of the boxes that are kept in each class the first ones, as many as the node allows."""
    numbers = node.emit(CumSum(2), node.emit(Cast("int64"), kept))
    return node.emit(And(), kept, node.emit(LessOrEqual(), numbers, scalar(node, 2)))


def _constant(node: NodeReader, name: str, value: Array | Splat) -> str:
    constant = value if isinstance(value, Splat) else frozen(value)
    return node.builder.constant(node.builder.fresh(f"{node_name(node.proto)}.{name}"), constant)


RULES: dict[str, ImportRule] = {
    "NonMaxSuppression": ImportRule((10, 11), ("center_point_box",), _suppression),
}
