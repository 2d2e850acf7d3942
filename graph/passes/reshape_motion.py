"""Move Reshapes behind the elementwise operators that follow what computes their elements.

No Reshape is made until somebody needs one. While the nodes are copied in order, each value of the
model is known as a `View`: some value of the new graph that has its bytes, under another shape. An
elementwise operator works in the shape of the operand that was computed last, of those that need
not be stored, so it may run in the kernel that computes it; its other operands are reshaped to fit,
which moves no byte. Other operators, and the outputs, get the old shape back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ir.views import is_view, storage
from ..ops.base import OperatorRole
from ..ops.movement import Reshape, reshape_groups
from ..types import Constant, Splat, owned

Shape = tuple[int, ...]


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
        mover = _Mover(graph)
        for node in graph.nodes:
            mover.take(node)
        if not mover.moved:
            return graph
        result = mover.builder.finish({name: mover.old(name) for name in graph.outputs})
        return rebuilt(graph, result.nodes, result.constants)


class _Mover:
    """The new graph while it grows. bases: the value of the new graph that has the bytes of each
    value of the old one; computed: the number of the node that computes each value, of those that
    are no views; stored: those whose readers cannot all be in one kernel with them; moved: whether
    any operator works in another shape than it did.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.bases: dict[str, str] = {}
        self.made: dict[tuple[str, Shape], str] = {}
        self.computed: dict[str, int] = {}
        self.moved = False
        self.stored = set(_stored(graph))

    def take(self, node: GraphNode) -> None:
        """Copy a node, in another shape where that is better."""
        (value, *others) = node.outputs
        if is_view(node, self.graph.types):
            self.bases[value] = self.base(node.inputs[0])
            return
        number = len(self.computed)
        if node.op.role is OperatorRole.ELEMENTWISE and self._elementwise(node):
            self.computed[self.bases[value]] = number
            return
        self.builder.add_node(
            GraphNode(node.op, tuple(map(self.old, node.inputs)), node.outputs, node.name)
        )
        self.computed.update(dict.fromkeys((value, *others), number))

    def base(self, value: str) -> str:
        """The value of the new graph that has the bytes of `value` of the old one."""
        return self.bases.get(value, value)

    def old(self, value: str) -> str:
        """A value of the new graph that is `value` of the old one; if possible called that."""
        return self.under(self.base(value), self.graph.types[value].shape, value)

    def under(self, base: str, shape: Shape, name: str = "") -> str:
        """A value of the new graph under a shape, reshaped once."""
        if self.builder.types[base].shape == shape:
            return base
        if (base, shape) not in self.made:
            if not name or name in self.builder.types:
                name = self.builder.fresh(f"{base}.reshaped")
            self.made[base, shape] = self._reshaped(base, shape, name)
        return self.made[base, shape]

    def _reshaped(self, base: str, shape: Shape, name: str) -> str:
        constant = self.builder.constants.get(base)
        if constant is None:
            return self.builder.add(Reshape(shape), base, output=name)
        other: Constant
        if isinstance(constant, Splat):
            other = replace(constant, shape=shape)
        else:
            other = owned(constant.reshape(shape))
        return self.builder.constant(name, other)

    def _elementwise(self, node: GraphNode) -> bool:
        """Compute `node` in the shape of its last operand; False where that is its own."""
        (value,) = node.outputs
        shape = self.graph.types[value].shape
        bases = [self.base(v) for v in node.inputs if self.graph.types[v].shape == shape]
        free = [base for base in bases if base in self.computed and base not in self.stored]
        if not free:
            return False
        wanted = self.builder.types[max(free, key=self.computed.__getitem__)].shape
        found = [aligned(self.graph.types[v].shape, shape, wanted) for v in node.inputs]
        shapes = [own for own in found if own is not None]
        if wanted == shape or len(shapes) < len(found):
            return False
        pairs = zip(map(self.base, node.inputs), shapes, strict=True)
        inputs = tuple(self.under(base, own) for base, own in pairs)
        name = self.builder.fresh(f"{value}.moved")
        self.builder.add_node(GraphNode(node.op, inputs, (name,), node.name))
        self.bases[value] = name
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
    sizes = [1] * len(moved)
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
