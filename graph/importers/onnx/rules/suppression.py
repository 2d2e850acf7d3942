"""The rule of NonMaxSuppression: of the boxes with a score above the threshold a loop chooses the
best one of each class, and drops those that overlap it, until none is left.
"""

from __future__ import annotations

import numpy as np

from .....tir.sizes import closed
from ....errors import ModelError
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, GraphNode
from ....ops.finding import CountTrue, FindTrue, TrueWords
from ....ops.functions import Cast
from ....ops.overlap import BoxCandidates, BoxTurns, ChosenBoxes, OverlapStep
from ....ops.reduction import ReduceMax, ReduceSum
from ....regions.loop import ITERATION, Loop
from ....types import Splat, TensorType, array_of, frozen
from ..node import NodeReader, node_name
from .data_sizes import data_size, scalar
from .rule import ImportRule, Result


def _suppression(node: NodeReader) -> Result:
    """Rows of batch, class and box: in each class the best ones first."""
    batch, classes, count = _sizes(node)
    most = _most(node)
    if not batch * classes * count or most == 0:
        return frozen(np.zeros((0, 3), np.int64))
    numbers = _candidates(node, (batch, classes, count))
    turns = _turns(node, numbers, count if most is None else min(most, count))
    counts = node.emit(BoxTurns(), turns)
    bound = batch * classes * (count if most is None else min(most, count))
    size = data_size(node, node.emit(ReduceSum((0, 1), False), counts), bound)
    return ChosenBoxes(size), (turns, numbers, counts)


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


def _candidates(node: NodeReader, shape: tuple[int, int, int]) -> str:
    """The numbers of the boxes of each class whose scores are above the threshold, in order; as
    many for each class as the one with the most has.
    """
    *_, count = shape
    if not node.has(4):
        numbers = np.broadcast_to(np.arange(count, dtype=np.int32), shape)
        return node.table("numbers", numbers)
    words = node.emit(TrueWords(count), node.value(1), scalar(node, 4, "float32"))
    most = node.emit(ReduceMax((0, 1), False), node.emit(CountTrue(), words))
    size = data_size(node, most, count)
    return node.emit(Cast("int32"), node.emit(FindTrue(size, count), words))


def _turns(node: NodeReader, numbers: str, most: int) -> str:
    """In which turn each candidate is chosen, from 1 on; 0 where it is not."""
    centers = node.integer("center_point_box", 0) != 0
    op, name = BoxCandidates(centers), f"{node_name(node.proto)}.candidate"
    made = tuple(node.builder.fresh(f"{name}.{n}") for n in range(op.output_count))
    inputs = (node.value(0), node.value(1), numbers)
    node.define(GraphNode(op, inputs, made, node.proto.name))
    left, none, *edges, best, begins = made
    types = node.builder.types
    share = _share(node)
    captured = (numbers, *edges, node.value(0), share)
    body = _body(node, [types[v] for v in (left, none, best)], [types[v] for v in captured], op)
    count = () if node.builder.constants.get(node.value(2)) is not None else (scalar(node, 2),)
    loop = Loop(body, 3, most, counted=bool(count), conditional=True)
    outputs = tuple(node.builder.fresh(f"{name}.{part}") for part in ("left", "turns", "best"))
    values = (*count, begins, left, none, best, *captured)
    node.define(GraphNode(loop, values, outputs, node.proto.name))
    return outputs[1]


def _share(node: NodeReader) -> str:
    """How much two boxes have in common when one of them is dropped."""
    if node.has(3):
        return scalar(node, 3, "float32")
    return node.table("threshold", Splat(0.0, "float32", ()))


def _body(
    node: NodeReader,
    carried: list[TensorType],
    captured: list[TensorType],
    candidates: BoxCandidates,
) -> Graph:
    """What an iteration does: it chooses one box of each class."""
    builder = GraphBuilder(f"{node_name(node.proto)}.turn")
    number = builder.input("number", ITERATION)
    before = [builder.input(f"before{n}", type_) for n, type_ in enumerate(carried)]
    rest = [builder.input(f"given{n}", type_) for n, type_ in enumerate(captured)]
    made = ("left", "turns", "best", "goes_on")
    step = OverlapStep(candidates.centers)
    builder.add_node(GraphNode(step, (*before, number, *rest), made))
    return builder.finish(("goes_on", "left", "turns", "best"))


RULES: dict[str, ImportRule] = {
    "NonMaxSuppression": ImportRule((10, 11), ("center_point_box",), _suppression),
}
