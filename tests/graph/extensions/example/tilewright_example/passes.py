"""A pass: Mish where a model spells it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ops.activation import Softplus
from tilewright.graph.ops.arithmetic import Mul
from tilewright.graph.ops.functions import Tanh
from tilewright.graph.passes.exchange import exchanged
from tilewright.graph.passes.pattern import Made, Value, matched

from .operators import Mish

_X = Value("x")
_SPELLED = Made(Mul, (_X, Made(Tanh, (Made(Softplus, (_X,)),))))


@dataclass(frozen=True)
class MishRecognition:
    """x * tanh(softplus(x))  ->  Mish, where nobody else reads what lies between."""

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        found: dict[str, tuple[GraphNode, str]] = {}
        gone: set[str] = set()
        makers, readers = graph.producers, graph.consumers
        for node in graph.nodes:
            match = matched(graph, makers, node.outputs[0], _SPELLED)
            if match is None:
                continue
            inner = match.inside - set(node.outputs)
            if any(len(readers[value]) > 1 or value in graph.outputs for value in inner):
                continue
            found[node.outputs[0]] = (node, match.values["x"])
            gone |= match.inside
        return exchanged(graph, found, gone, _write) if found else graph


def _write(builder: GraphBuilder, one: tuple[GraphNode, str]) -> None:
    node, x = one
    builder.add_node(GraphNode(Mish(), (x,), node.outputs, node.name))


def recognise_mish(passes: tw.Passes) -> tw.Passes:
    """The passes with this one behind the one that recognises Gelu."""
    return passes.after("GeluRecognition", MishRecognition())
