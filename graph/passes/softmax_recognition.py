"""Recognise Softmax and LogSoftmax where a model spells them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Div, Sub
from ..ops.functions import Exp, Log
from ..ops.reduction import ReduceMax, ReduceSum, Reduction
from ..ops.softmax import LogSoftmax, Softmax
from .exchange import exchanged
from .pattern import Made, PatternMatch, Value, matched

_X = Value("x")
_BELOW = Made(Sub, (_X, Made(ReduceMax, (_X,), "largest")))
_POWERS = Made(Exp, (_BELOW,))
_TOTAL = Made(ReduceSum, (_POWERS,), "total")
_KINDS: tuple[tuple[Made, type[Softmax | LogSoftmax]], ...] = (
    (Made(Div, (_POWERS, _TOTAL)), Softmax),
    (Made(Sub, (_BELOW, Made(Log, (_TOTAL,)))), LogSoftmax),
)


@dataclass(frozen=True, slots=True)
class SoftmaxRecognition:
    """Replace nodes that compute powers beside their sum by Softmax or LogSoftmax.

    p = exp(x - max(x));  p / sum(p)               ->   Softmax
    d = x - max(x);  d - log(sum(exp(d)))          ->   LogSoftmax

    The largest and the sum are taken along the same axes and keep them. Nodes whose values others
    read, too, are left alone. Powers are rounded otherwise, and multiplied with a reciprocal.
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        found = {node.outputs[0]: (node, one) for node, one in _spelled(graph)}
        if not found:
            return graph
        gone = {value for node, one in found.values() for value in one.match.inside}
        return exchanged(graph, found, gone, _write)


@dataclass(frozen=True, slots=True)
class _SpelledSoftmax:
    """What is spelled out, and as which operator."""

    match: PatternMatch
    op: Softmax | LogSoftmax


def _spelled(graph: Graph) -> Iterator[tuple[GraphNode, _SpelledSoftmax]]:
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Div | Sub):
            continue
        (value,) = node.outputs
        for pattern, kind in _KINDS:
            match = matched(graph, makers, value, pattern)
            axes = _axes(match) if match is not None else None
            if match is None or axes is None:
                continue
            inner = match.inside - {value}
            read = {output for v in inner for reader in readers[v] for output in reader.outputs}
            if read <= match.inside and not inner & set(graph.outputs):
                yield node, _SpelledSoftmax(match, kind(axes))


def _axes(match: PatternMatch) -> tuple[int, ...] | None:
    """The axes of both reductions; None where they differ, or do not stay."""
    largest, total = (match.nodes[name].op for name in ("largest", "total"))
    assert isinstance(largest, Reduction)
    assert isinstance(total, Reduction)
    same = largest.axes == total.axes and largest.keepdims and total.keepdims
    return total.axes if same else None


def _write(builder: GraphBuilder, one: tuple[GraphNode, _SpelledSoftmax]) -> None:
    node, spelled = one
    x = spelled.match.values["x"]
    builder.add_node(GraphNode(spelled.op, (x,), node.outputs, node.name))
