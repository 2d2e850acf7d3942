"""Recognise Gelu, or its approximation by tanh, where a model spells it out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.activation import Gelu
from ..ops.arithmetic import Add, Div, Mul, Pow
from ..ops.functions import Erf, Erfc, Tanh
from .exchange import exchanged
from .pattern import Made, Number, Pattern, PatternMatch, Value, matched

_NUMBERS = {
    "root_two": math.sqrt(2.0),
    "root_half": math.sqrt(0.5),
    "minus_root_half": -math.sqrt(0.5),
    "minus_one": -1.0,
    "one": 1.0,
    "half": 0.5,
    "three": 3.0,
    "cubic": 0.044715,
    "root_two_over_pi": math.sqrt(2.0 / math.pi),
}
_ROUNDED = 2.0**-22  # by how much of itself a number may differ, since exporters round it

_X = Value("x")
_ERFS = tuple(
    Made(Erf, (argument,))
    for argument in (Made(Div, (_X, Number("root_two"))), Made(Mul, (_X, Number("root_half"))))
)
_CUBES = (Made(Pow, (_X, Number("three"))), Made(Mul, (Made(Mul, (_X, _X)), _X)))


def _tanh(cube: Pattern) -> Made:
    bent = Made(Add, (_X, Made(Mul, (cube, Number("cubic")))))
    return Made(Tanh, (Made(Mul, (bent, Number("root_two_over_pi"))),), "approximate")


def _spellings(function: Made) -> Iterator[Pattern]:
    """x * (1 + function) / 2, with any two of the three factors multiplied first."""
    grown, half = Made(Add, (function, Number("one"))), Number("half")
    for a, b, c in ((_X, grown, half), (_X, half, grown), (grown, half, _X)):
        yield Made(Mul, (Made(Mul, (a, b)), c))


def _complements() -> Iterator[Pattern]:
    """x * erfc(-x / sqrt 2) / 2, likewise."""
    opposite = Made(Mul, (Made(Mul, (_X, Number("minus_one"))), Number("root_half")))
    for argument in (opposite, Made(Mul, (_X, Number("minus_root_half")))):
        function, half = Made(Erfc, (argument,)), Number("half")
        for a, b, c in ((_X, function, half), (_X, half, function), (function, half, _X)):
            yield Made(Mul, (Made(Mul, (a, b)), c))


_FUNCTIONS = (*_ERFS, *map(_tanh, _CUBES))
_PATTERNS = (
    *(pattern for function in _FUNCTIONS for pattern in _spellings(function)),
    *_complements(),
)


@dataclass(frozen=True, slots=True)
class GeluRecognition:
    """Replace nodes that compute x * (1 + f) / 2 by Gelu, which does not cancel where x is
    negative.

    f = erf(x / sqrt 2)                                  ->   Gelu
    1 + f = erfc(-x / sqrt 2)                            ->   Gelu
    f = tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))       ->   Gelu, approximate

    The factors may stand in any order, x / sqrt 2 be a product, and x**3 a power or two products.
    Nodes whose values others read, too, are left alone.
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        found = {node.outputs[0]: (node, one) for node, one in _spelled(graph)}
        if not found:
            return graph
        gone = {value for _, one in found.values() for value in one.inside}
        return exchanged(graph, found, gone, _write)


def _spelled(graph: Graph) -> Iterator[tuple[GraphNode, PatternMatch]]:
    """The last node of each Gelu that is spelled out, and what it is made of."""
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Mul):
            continue
        (value,) = node.outputs
        candidates = (matched(graph, makers, value, pattern) for pattern in _PATTERNS)
        found = next((one for one in candidates if one and _is_gelu(graph, node, one)), None)
        if found is None:
            continue
        inner = found.inside - {value}
        read = {output for v in inner for reader in readers[v] for output in reader.outputs}
        if read <= found.inside and not inner & set(graph.outputs):
            yield node, found


def _is_gelu(graph: Graph, node: GraphNode, found: PatternMatch) -> bool:
    """Whether the numbers are those of Gelu, and none of them makes the result of another shape."""
    same = graph.types[node.outputs[0]] == graph.types[found.values["x"]]
    return same and all(
        math.isclose(number, _NUMBERS[name], rel_tol=_ROUNDED)
        for name, number in found.numbers.items()
    )


def _write(builder: GraphBuilder, one: tuple[GraphNode, PatternMatch]) -> None:
    node, found = one
    op = Gelu("approximate" in found.nodes)
    builder.add_node(GraphNode(op, (found.values["x"],), node.outputs, node.name))
