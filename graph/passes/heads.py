"""Where the heads of a value stand before they were moved: the array behind transposes, reshapes,
slices and scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...tir.sizes import AnySize, exact_quotient
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Div, Mul
from ..ops.attention import Heads
from ..ops.movement import Reshape, Transpose
from ..ops.slicing import Slice
from ..types import Shape, array_of


@dataclass(frozen=True, slots=True)
class Located:
    """An array that holds heads. shape: its four axes; scale: what its elements are to be
    multiplied with.
    """

    array: str
    shape: Shape
    heads: Heads
    scale: float


def located(
    graph: Graph, makers: Mapping[str, GraphNode], value: str, order: str, *, scaled: bool
) -> Located | None:
    """The array in which the elements of `value` were before they were moved; None where none has
    its depth innermost.

    order: what the four axes of `value` are: "b" batch, "h" head, "s" place, "d" depth. scaled:
    whether products with a number may lie between.
    """
    sizes = dict(zip(order, graph.types[value].shape, strict=True))
    walk: _Walk | None = _Walk(value, tuple((axis,) for axis in order), sizes)
    found: Located | None = None
    while walk is not None:
        found = walk.located() or found
        node = makers.get(walk.value)
        walk = _before(graph, node, walk, scaled) if node is not None else None
    return found


def factor(graph: Graph, node: GraphNode) -> tuple[str, float] | None:
    """The value that a node multiplies with a number, and the number; None where it does
    something else.
    """
    if not isinstance(node.op, Mul | Div):
        return None
    orders = (node.inputs, node.inputs[::-1]) if isinstance(node.op, Mul) else (node.inputs,)
    for value, other in orders:
        constant = graph.constants.get(other)
        same = graph.types[value] == graph.types[node.outputs[0]]
        if constant is not None and graph.types[other].elements == 1 and same:
            number = float(array_of(constant).reshape(1)[0])
            if isinstance(node.op, Mul):
                return value, number
            return (value, 1 / number) if number else None
    return None


@dataclass(frozen=True, slots=True)
class _Walk:
    """A value on the way back.

    axes: what each of its axes runs over, outermost first; sizes: of what they run over; first: the
    number of the first head that is meant.
    """

    value: str
    axes: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, AnySize]
    first: int = 0
    scale: float = 1.0

    def long(self, names: str | tuple[str, ...]) -> list[str]:
        """Those with more than one element."""
        return [name for name in names if self.sizes[name] != 1]

    def located(self) -> Located | None:
        """The value as an array of heads."""
        flat = self.long(tuple(name for axis in self.axes for name in axis))
        for order in ("bshd", "bhsd"):
            if flat == self.long(order):
                shape = tuple(self.sizes[name] for name in order)
                return Located(self.value, shape, Heads(self.first, order == "bhsd"), self.scale)
        return None


def _before(graph: Graph, node: GraphNode, walk: _Walk, scaled: bool) -> _Walk | None:
    """What a node made `walk` of; None where it does more than move or scale."""
    if not node.inputs:
        return None
    source = node.inputs[0]
    shape = graph.types[source].shape
    match node.op:
        case Transpose(permutation):
            axes = [walk.axes[permutation.index(axis)] for axis in range(len(shape))]
            return replace(walk, value=source, axes=tuple(axes))
        case Reshape():
            grouped = _grouped(walk, shape)
            return replace(walk, value=source, axes=grouped) if grouped is not None else None
        case Slice():
            return _whole(walk, source, node.op, shape)
        case Mul() | Div() if scaled and (found := factor(graph, node)) is not None:
            return replace(walk, value=found[0], scale=walk.scale * found[1])
    return None


def _grouped(walk: _Walk, shape: Shape) -> tuple[tuple[str, ...], ...] | None:
    """What the axes of a shape run over, in the order of the walk's; None where one would run over
    a part of something.
    """
    waiting = walk.long(tuple(name for axis in walk.axes for name in axis))
    axes: list[tuple[str, ...]] = []
    for size in shape:
        own: list[str] = []
        held: AnySize = 1
        while waiting and held != size and exact_quotient(size, held) not in (None, 0):
            own.append(waiting.pop(0))
            held = held * walk.sizes[own[-1]]
        if held != size:
            return None
        axes.append(tuple(own))
    return None if waiting else tuple(axes)


def _whole(walk: _Walk, source: str, op: Slice, shape: Shape) -> _Walk | None:
    """What a slice of whole heads was taken from."""
    cut = [axis for axis, size in enumerate(shape) if op.sizes[axis] != size]
    if len(cut) != 1 or op.steps[cut[0]] != 1:
        return None
    (axis,) = cut
    names = walk.long(walk.axes[axis])
    depth = walk.sizes["d"] if names == ["h", "d"] else 1
    whole, start = exact_quotient(shape[axis], depth), exact_quotient(op.starts[axis], depth)
    if names not in (["h", "d"], ["h"]) or whole is None or not isinstance(start, int):
        return None
    sizes = {**walk.sizes, "h": whole}
    return replace(walk, value=source, sizes=sizes, first=walk.first + start)
