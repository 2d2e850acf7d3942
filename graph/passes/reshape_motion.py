"""Move Reshapes behind the elementwise operators that follow what computes their elements.

Reshapes wait (`view_motion`): each value of the model is known as some value of the new graph that
has its bytes, under another shape. An elementwise operator works in the shape of the operand that
was computed last, of those that need not be stored, so it may run in the kernel that computes it;
its other operands are reshaped to fit, which moves no byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import AnySize, closed_shape
from ..ir.ir import Graph, GraphNode
from ..ir.views import is_view, storage
from ..ops.base import Operator, OperatorRole
from ..ops.movement import Reshape, reshape_groups
from ..types import Array, Shape, owned
from .view_motion import ViewMotion, WaitingView


@dataclass(frozen=True, slots=True)
class ReshapeMotion:
    """Compute elementwise operators in the shape in which their last operand is computed.

    z = x @ w; y = Reshape(z); u = y * y + b   ->   z = x @ w; t = z * z + b'; u = Reshape(t)

    b' is b under a shape that broadcasts to that of z as b does to that of y; where there is none,
    because b changes along a part of an axis that the Reshape makes or joins, nothing is moved.
    Each Reshape passes operators in their order and stops at the first that is not elementwise, so
    motion ends.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        if not any(is_view(node, graph.types) for node in graph.nodes):
            return graph
        motion = _ReshapeMotion(graph)
        result = motion.copy()
        return result if motion.moved else graph


@dataclass(frozen=True, slots=True)
class ReshapedView(WaitingView):
    """A value of the old graph: value `base` of the new one, under the shape `own`."""

    suffix: ClassVar[str] = "reshaped"
    own: Shape

    def is_plain(self, shape: Shape) -> bool:
        """Whether `base` has that shape."""
        return self.own == shape

    def shape(self, shape: Shape) -> Shape:
        """Its own shape, whichever `base` has."""
        return self.own

    def operator(self, shape: Shape) -> Operator:
        """A Reshape."""
        return Reshape(self.own)

    def array(self, array: Array) -> Array:
        """The elements, densely stored."""
        return owned(array.reshape(closed_shape(self.own)))


class _ReshapeMotion(ViewMotion[ReshapedView]):
    """The new graph while it grows. computed: the number of the node that computes each value, of
    those that are no views; stored: those whose readers cannot all be in one kernel with them;
    moved: whether any operator works in another shape than it did.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.computed: dict[str, int] = {}
        self.moved = False
        self.stored = set(_stored(graph))

    def take(self, node: GraphNode) -> None:
        """Copy a node, in another shape where that is better."""
        if is_view(node, self.graph.types):
            self._see(node.outputs[0], self.view(node.inputs[0]).base)
            return
        number = len(self.computed)
        if node.op.role is OperatorRole.ELEMENTWISE and self._elementwise(node):
            self.computed[self.view(node.outputs[0]).base] = number
            return
        self.fixed(node)
        self.computed.update(dict.fromkeys(node.outputs, number))

    def itself(self, value: str) -> ReshapedView:
        """A value under the shape that it has."""
        return ReshapedView(value, self.graph.types[value].shape)

    def _see(self, value: str, base: str) -> None:
        """Know `value` of the old graph as one of the new graph that has its bytes."""
        self.views[value] = ReshapedView(base, self.graph.types[value].shape)

    def _elementwise(self, node: GraphNode) -> bool:
        """Compute `node` in the shape of its last operand; False where that is its own."""
        (value,) = node.outputs
        shape = self.graph.types[value].shape
        bases = [self.view(v).base for v in node.inputs if self.graph.types[v].shape == shape]
        free = [base for base in bases if base in self.computed and base not in self.stored]
        if not free:
            return False
        wanted = self.builder.types[max(free, key=self.computed.__getitem__)].shape
        found = [aligned(self.graph.types[v].shape, shape, wanted) for v in node.inputs]
        shapes = [own for own in found if own is not None]
        if wanted == shape or len(shapes) < len(found):
            return False
        operands = zip(map(self.view, node.inputs), shapes, strict=True)
        inputs = tuple(self.plain(ReshapedView(view.base, own)) for view, own in operands)
        name = self.builder.fresh(f"{value}.moved")
        self.builder.add_node(GraphNode(node.op, inputs, (name,), node.name))
        self._see(value, name)
        if value in self.stored:
            self.stored.add(name)
        self.moved = True
        return True


def aligned(own: Shape, result: Shape, moved: Shape) -> Shape | None:
    """The shape under which an operand broadcasts to `moved` as it does to `result` under its own;
    None where it broadcasts along a part of what the Reshape between the two joins or splits.

    ((3, 1), (2, 3, 4), (6, 4)) gives None, ((4,), (2, 3, 4), (6, 4)) gives (4,).
    """
    whole = (1,) * (len(result) - len(own)) + own
    sizes: list[AnySize] = [1] * len(moved)
    for before, after in reshape_groups(result, moved):
        if all(whole[axis] == result[axis] for axis in before):
            for axis in after:
                sizes[axis] = moved[axis]
        elif any(whole[axis] != 1 for axis in before):
            return None
    if len(own) == len(result):
        return tuple(sizes)
    lead = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
    return tuple(sizes[lead:])


def _stored(graph: Graph) -> Iterator[str]:
    """The values whose bytes are an output's or are read by what is not elementwise, so that no
    reader's kernel can do without them.
    """
    roots = storage(graph)
    yield from (roots[value] for value in graph.outputs)
    for node in graph.nodes:
        if node.op.role is not OperatorRole.ELEMENTWISE and not is_view(node, graph.types):
            yield from (roots[value] for value in node.inputs)
