"""Recognise LayerNormalization and RMSNormalization where a model spells them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ...tir.sizes import closed_shape
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.arithmetic import Add, Div, Mul, Pow, Sub
from ..ops.base import Operator
from ..ops.functions import Sqrt
from ..ops.layer_norm import LayerNormalization, RMSNormalization
from ..ops.reduction import ReduceMean
from ..types import Splat
from .pattern import Made, Number, Pattern, PatternMatch, Value, matched


def _over_root_mean_square(value: Pattern, square: Pattern) -> tuple[Pattern, Pattern]:
    mean = Made(ReduceMean, (square,), "squares")
    root = Made(Sqrt, (Made(Add, (mean, Number("epsilon"))),))
    inverse = Made(Div, (Number("one"), root), "inverse")
    return Made(Div, (value, root)), Made(Mul, (value, inverse))


_X = Value("x")
_CENTRED = Made(Sub, (_X, Made(ReduceMean, (_X,), "mean")))
_PATTERNS = tuple(
    pattern
    for value in (_CENTRED, _X)
    for square in (Made(Mul, (value, value)), Made(Pow, (value, Number("two"))))
    for pattern in _over_root_mean_square(value, square)
)


@dataclass(frozen=True, slots=True)
class LayerNormRecognition:
    """Replace nodes that normalise rows by LayerNormalization or RMSNormalization.

    c = x - mean(x);  c / sqrt(mean(c * c) + epsilon) * scale + bias   ->   LayerNormalization
    x / sqrt(mean(x * x) + epsilon) * scale                            ->   RMSNormalization

    The reciprocal of the root, multiplied, is as good as a division.
    Means are over one or several of the last axes and keep them; scale and bias may be missing.
    Nodes whose values others read, too, are left alone.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        found = {one.value: one for one in _normalisations(graph)}
        if not found:
            return graph
        gone = {value for one in found.values() for value in one.inside}
        builder = GraphBuilder.like(graph)
        for node in graph.nodes:
            value = node.outputs[0]
            if value in found:
                _write(builder, found[value], node)
            elif value not in gone:
                builder.add_node(node)
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


@dataclass(frozen=True, slots=True)
class _Spelled:
    """A normalisation that is spelled out.

    value: the last that it computes; inside: all that it computes; axis: the first that it
    normalises over; inverse: the reciprocal of the root is multiplied; scale, bias: "" where there
    is none.
    """

    value: str
    inside: frozenset[str]
    source: str
    axis: int
    epsilon: float
    centred: bool
    inverse: bool
    scale: str = ""
    bias: str = ""


def _normalisations(graph: Graph) -> Iterator[_Spelled]:
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Div | Mul):
            continue
        candidates = (matched(graph, makers, node.outputs[0], pattern) for pattern in _PATTERNS)
        found = next((one for one in candidates if one and _axis(graph, one) is not None), None)
        if found is None:
            continue
        spelled = _with_affine(graph, readers, _spelled(graph, node, found))
        inner = spelled.inside - {spelled.value}
        read = {value for v in inner for reader in readers[v] for value in reader.outputs}
        if read <= spelled.inside and not inner & set(graph.outputs):
            yield spelled


def _axis(graph: Graph, found: PatternMatch) -> int | None:
    """The first axis of the means; None where they are not all over the same last axes."""
    rank = graph.types[found.values["x"]].rank
    ops = {node.op for name, node in found.nodes.items() if name != "inverse"}
    first = found.nodes["squares"].op
    assert isinstance(first, ReduceMean)
    axis = first.axes[0]
    wanted = ReduceMean(tuple(range(axis, rank)))
    numbers = found.numbers.get("two", 2.0), found.numbers.get("one", 1.0)
    return axis if ops == {wanted} and numbers == (2.0, 1.0) else None


def _spelled(graph: Graph, node: GraphNode, found: PatternMatch) -> _Spelled:
    axis = _axis(graph, found)
    assert axis is not None
    source, epsilon = found.values["x"], found.numbers["epsilon"]
    centred, inverse = "mean" in found.nodes, "inverse" in found.nodes
    return _Spelled(node.outputs[0], found.inside, source, axis, epsilon, centred, inverse)


def _with_affine(
    graph: Graph, readers: Mapping[str, list[GraphNode]], spelled: _Spelled
) -> _Spelled:
    """With a constant scale and, behind it, a constant bias, where these are the only readers."""
    scaled = _constant_behind(graph, readers, spelled, Mul)
    if scaled is None:
        return spelled
    value, scale = scaled
    spelled = replace(spelled, value=value, inside=spelled.inside | {value}, scale=scale)
    shifted = _constant_behind(graph, readers, spelled, Add) if spelled.centred else None
    if shifted is None:
        return spelled
    value, bias = shifted
    return replace(spelled, value=value, inside=spelled.inside | {value}, bias=bias)


def _constant_behind(
    graph: Graph, readers: Mapping[str, list[GraphNode]], spelled: _Spelled, kind: type[Mul | Add]
) -> tuple[str, str] | None:
    """The value and the constant of the product or sum that alone reads what is spelled so far."""
    value = spelled.value
    if len(readers[value]) != 1 or value in graph.outputs:
        return None
    (node,) = readers[value]
    other = next((v for v in node.inputs if v in graph.constants), None)
    same = graph.types[node.outputs[0]] == graph.types[spelled.source]
    if not isinstance(node.op, kind) or other is None or not same:
        return None
    return node.outputs[0], other


def _write(builder: GraphBuilder, spelled: _Spelled, node: GraphNode) -> None:
    """Add the one operator in the place of `node`, the last of its nodes."""
    x = builder.types[spelled.source]
    scale = spelled.scale or builder.constant(
        builder.fresh(f"{spelled.value}.scale"), Splat(1.0, x.dtype, closed_shape(x.shape[-1:]))
    )
    op: Operator = RMSNormalization(spelled.axis, spelled.epsilon, spelled.inverse)
    if spelled.centred:
        op = LayerNormalization(spelled.axis, spelled.epsilon)
    inputs = (spelled.source, scale, *([spelled.bias] if spelled.bias else []))
    builder.add_node(GraphNode(op, inputs, node.outputs, node.name))
