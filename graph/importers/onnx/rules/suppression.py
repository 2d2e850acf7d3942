"""The rule of NonMaxSuppression. Either the boxes of each class are sorted, and each is compared
with those that are kept; or, where they are many and a threshold leaves few, or data say how many
are wanted, a loop chooses the best one that is left of each class, and drops those that overlap it,
until none is left.
"""

from __future__ import annotations

import numpy as np

from .....tir.sizes import closed, closed_shape
from ....errors import ModelError
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, GraphNode
from ....ops.finding import CountTrue, FindTrue, TrueWords
from ....ops.functions import Cast
from ....ops.kept_boxes import CandidateScores, KeptBoxes
from ....ops.overlap import BoxCandidates, ChosenBoxes, ChosenCounts, OverlapStep
from ....ops.ranking import TopK
from ....ops.reduction import ReduceMax, ReduceSum
from ....regions.loop import ITERATION, Loop
from ....types import Splat, TensorType, array_of, frozen
from ..node import NodeReader, node_name
from .data_sizes import data_size, scalar
from .rule import ImportRule, Result

MOST_SORTED = 1 << 13  # scores that are sorted although a threshold may leave few


def _suppression(node: NodeReader) -> Result:
    """Rows of batch, class and box: in each class the best ones first."""
    batch, classes, count = _sizes(node)
    most = _most(node)
    if not batch * classes * count or most == 0:
        return frozen(np.zeros((0, 3), np.int64))
    room = count if most is None else min(most, count)
    if most is not None and (not node.has(4) or batch * classes * count <= MOST_SORTED):
        chosen, counts = _by_order(node, room, count)
    else:
        chosen = _by_turns(node, _candidates(node, (batch, classes, count)), room)
        counts = node.emit(ChosenCounts(), chosen)
    total = node.emit(ReduceSum((0, 1), False), counts)
    return ChosenBoxes(data_size(node, total, batch * classes * room)), (chosen, counts)


def _by_order(node: NodeReader, most: int, count: int) -> tuple[str, str]:
    """The numbers of the boxes that are kept of each class, in order, and how many they are."""
    least = (scalar(node, 4, "float32"),) if node.has(4) else ()
    scores = node.emit(CandidateScores(), node.value(1), *least)
    name = node_name(node.proto)
    order = tuple(node.builder.fresh(f"{name}.{part}") for part in ("scores", "order"))
    node.define(GraphNode(TopK(2, count), (scores,), order, node.proto.name))
    op = KeptBoxes(most, _centers(node))
    made = (node.builder.fresh(f"{name}.kept"), node.builder.fresh(f"{name}.counts"))
    inputs = (node.value(0), *order, _share(node))
    node.define(GraphNode(op, inputs, made, node.proto.name))
    return made


def _centers(node: NodeReader) -> bool:
    return node.integer("center_point_box", 0) != 0


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


def _by_turns(node: NodeReader, numbers: str, most: int) -> str:
    """The number of the box that is chosen in each turn of each class; -1 where none is."""
    op, name = BoxCandidates(_centers(node)), f"{node_name(node.proto)}.candidate"
    made = tuple(node.builder.fresh(f"{name}.{n}") for n in range(op.output_count))
    inputs = (node.value(0), node.value(1), numbers)
    node.define(GraphNode(op, inputs, made, node.proto.name))
    left, *edges, best, begins = made
    types = node.builder.types
    none = node.table("none", Splat(-1, "int32", (*closed_shape(types[best].shape), most)))
    share = _share(node)
    captured = (numbers, *edges, node.value(0), share)
    body = _body(node, [types[v] for v in (left, none, best)], [types[v] for v in captured], op)
    count = () if node.builder.constants.get(node.value(2)) is not None else (scalar(node, 2),)
    loop = Loop(body, 3, most, counted=bool(count), conditional=True)
    outputs = tuple(node.builder.fresh(f"{name}.{part}") for part in ("left", "chosen", "best"))
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
    made = ("left", "chosen", "best", "goes_on")
    step = OverlapStep(candidates.centers)
    builder.add_node(GraphNode(step, (*before, number, *rest), made))
    return builder.finish(("goes_on", "left", "chosen", "best"))


RULES: dict[str, ImportRule] = {
    "NonMaxSuppression": ImportRule((10, 11), ("center_point_box",), _suppression),
}
