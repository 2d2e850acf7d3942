"""Recognise ReduceMean where a model divides a sum by the number of its elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import product_of
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Div
from ..ops.reduction import ReduceMean, ReduceSum
from .exchange import exchanged
from .pattern import Made, Number, Value, matched

_PATTERN = Made(Div, (Made(ReduceSum, (Value("x"),), "sum"), Number("count")))
_EXACT = ("float32", "float64")  # types in which a sum is not rounded once more before it is read


@dataclass(frozen=True, slots=True)
class MeanRecognition:
    """Replace ReduceSum(x) / n, where n elements become one, by ReduceMean(x), which divides, too.

    A sum that others read is left alone.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        makers, readers = graph.producers, graph.consumers
        found = dict[str, GraphNode]()
        gone = set[str]()
        for node in graph.nodes:
            if not isinstance(node.op, Div) or graph.types[node.outputs[0]].dtype not in _EXACT:
                continue
            match = matched(graph, makers, node.outputs[0], _PATTERN)
            if match is None:
                continue
            total, x = match.nodes["sum"], graph.types[match.values["x"]]
            assert isinstance(total.op, ReduceSum)
            alone = len(readers[total.outputs[0]]) == 1 and total.outputs[0] not in graph.outputs
            count = product_of(x.shape[axis] for axis in total.op.axes)
            same = graph.types[node.outputs[0]] == graph.types[total.outputs[0]]
            if alone and same and match.numbers["count"] == count:
                op = ReduceMean(total.op.axes, total.op.keepdims)
                found[node.outputs[0]] = GraphNode(op, total.inputs, node.outputs, node.name)
                gone |= {*node.outputs, *total.outputs}
        return exchanged(graph, found, gone, GraphBuilder.add_node) if found else graph
