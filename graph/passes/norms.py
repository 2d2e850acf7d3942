"""Normalisations that a model spells out: what several nodes are together, and the one operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...tir.sizes import closed_shape
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.arithmetic import Add, Div, Mul
from ..ops.base import Operator
from ..ops.layer_norm import LayerNormalization, RMSNormalization
from ..ops.reduction import ReduceMean
from ..types import Splat
from .pattern import Pattern, PatternMatch, matched


@dataclass(frozen=True, slots=True)
class SpelledNorm:
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


def with_norms(graph: Graph, patterns: Sequence[Pattern]) -> Graph:
    """The graph with one operator for each normalisation that is spelled as one of some patterns.

    In a pattern "x" is what is normalised, "mean" its mean and "squares" that of squares; "epsilon"
    is added to the variance, "one" divided by its root, "inverse" the quotient; "two" is a power,
    "zero" what the variance is at least, "scale" what the quotient is multiplied with.
    """
    found = {one.value: one for one in _spelled(graph, patterns)}
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


def _spelled(graph: Graph, patterns: Sequence[Pattern]) -> Iterator[SpelledNorm]:
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Div | Mul):
            continue
        candidates = (matched(graph, makers, node.outputs[0], pattern) for pattern in patterns)
        found = next((one for one in candidates if one and _axis(graph, one) is not None), None)
        if found is None:
            continue
        spelled = _with_affine(graph, readers, _norm(graph, node, found))
        inner = spelled.inside - {spelled.value}
        read = {value for v in inner for reader in readers[v] for value in reader.outputs}
        if read <= spelled.inside and not inner & set(graph.outputs):
            yield spelled


def _axis(graph: Graph, found: PatternMatch) -> int | None:
    """The first axis of the means; None where they are not all over the same last axes."""
    x = graph.types[found.values["x"]]
    ops = {node.op for name, node in found.nodes.items() if name != "inverse"}
    first = found.nodes["squares"].op
    assert isinstance(first, ReduceMean)
    axis = first.axes[0]
    wanted = ReduceMean(tuple(range(axis, x.rank)))
    numbers = [found.numbers.get(name, n) for name, n in (("two", 2.0), ("one", 1.0), ("zero", 0))]
    scale = found.values.get("scale")
    fits = scale is None or _is_of_a_row(graph, scale, found.values["x"], axis)
    return axis if ops == {wanted} and numbers == [2.0, 1.0, 0] and fits else None


def _is_of_a_row(graph: Graph, value: str, source: str, axis: int) -> bool:
    """Whether a value broadcasts to another one and is the same for each of its rows."""
    own, x = graph.types[value], graph.types[source]
    if own.dtype != x.dtype or own.rank > x.rank:
        return False
    aligned = (1,) * (x.rank - own.rank) + own.shape
    return all(
        size == 1 or (n >= axis and size == whole)
        for n, (size, whole) in enumerate(zip(aligned, x.shape, strict=True))
    )


def _norm(graph: Graph, node: GraphNode, found: PatternMatch) -> SpelledNorm:
    axis = _axis(graph, found)
    assert axis is not None
    source, epsilon = found.values["x"], found.numbers["epsilon"]
    centred, inverse = "mean" in found.nodes, "inverse" in found.nodes
    scale = found.values.get("scale", "")
    return SpelledNorm(
        node.outputs[0], found.inside, source, axis, epsilon, centred, inverse, scale
    )


def _with_affine(
    graph: Graph, readers: Mapping[str, list[GraphNode]], spelled: SpelledNorm
) -> SpelledNorm:
    """With a scale and, behind it, a bias, where these are the only readers: constants, or what is
    the same for all rows.
    """
    if not spelled.scale:
        scaled = _behind(graph, readers, spelled, Mul)
        if scaled is None:
            return spelled
        value, scale = scaled
        spelled = replace(spelled, value=value, inside=spelled.inside | {value}, scale=scale)
    shifted = _behind(graph, readers, spelled, Add) if spelled.centred else None
    if shifted is None:
        return spelled
    value, bias = shifted
    return replace(spelled, value=value, inside=spelled.inside | {value}, bias=bias)


def _behind(
    graph: Graph,
    readers: Mapping[str, list[GraphNode]],
    spelled: SpelledNorm,
    kind: type[Mul | Add],
) -> tuple[str, str] | None:
    """The value and the other operand of the product or sum that alone reads what is spelled so
    far.
    """
    value = spelled.value
    if len(readers[value]) != 1 or value in graph.outputs:
        return None
    (node,) = readers[value]
    source, axis = spelled.source, spelled.axis
    others = [v for v in node.inputs if v in graph.constants]
    others += [v for v in node.inputs if v != value and _is_of_a_row(graph, v, source, axis)]
    other = next(iter(others), None)
    same = graph.types[node.outputs[0]] == graph.types[spelled.source]
    if not isinstance(node.op, kind) or other is None or not same:
        return None
    return node.outputs[0], other


def _write(builder: GraphBuilder, spelled: SpelledNorm, node: GraphNode) -> None:
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
