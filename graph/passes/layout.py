"""Move a network to channels last: NHWC is the layout in which vectors run along channels.

Transposes wait (`view_motion`): each value of the model is known as some value of the new graph and
the permutation that would turn it into the old one. Spatial operators read and give NHWC values, so
between two of them the permutations cancel. A convolution of an image, of whose few channels it
makes no vectors, reads it where it lies. Operators that do not care where an axis stands
(elementwise, Concat, Softmax, Reshape of whole axes) work on the new values and pass the
permutation on; a Transpose of the model only changes the permutation. At the rim of a network, an
operator whose data lies as in the model keeps its channels first where its price says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...tir.sizes import at_most, closed_shape, largest
from ..ir.ir import Graph, GraphNode
from ..ops.base import Operator, OperatorRole, Permutation
from ..ops.movement import Identity, Reshape, Transpose, keeps_order, reshape_groups
from ..ops.spatial import Spatial, is_spatial
from ..types import (
    Array,
    Shape,
    composed,
    inverse,
    owned,
    permutation_to_first,
    permutation_to_last,
    permuted,
)
from .layout_price import goes_last, keeps_first
from .view_motion import ViewMotion, WaitingView, seen

FEW_CHANNELS = 3  # of an image: moved last, they are too short for vectors


@dataclass(frozen=True, slots=True)
class PermutedView(WaitingView):
    """A value of the old graph: value `base` of the new one, its axes permuted."""

    suffix: ClassVar[str] = "permuted"
    permutation: Permutation

    def is_plain(self, shape: Shape) -> bool:
        """Whether no axis moves."""
        return self.permutation == tuple(range(len(self.permutation)))

    def shape(self, shape: Shape) -> Shape:
        """The sizes of the permuted axes."""
        return permuted(shape, self.permutation)

    def operator(self, shape: Shape) -> Operator:
        """A Transpose, or a Reshape where that moves no element."""
        moves = not keeps_order(shape, self.permutation)
        return Transpose(self.permutation) if moves else Reshape(self.shape(shape))

    def array(self, array: Array) -> Array:
        """The elements where they lie: most of a model is weights."""
        view = array.transpose(self.permutation)
        view.flags.writeable = False
        return view


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """Rewrite the spatial operators of layout NCHW to NHWC, with few transposes between them; those
    that `keeps_first` is true of stay.

    Constant weights are permuted here and now.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        if not any(_is_channels_first(node.op) for node in graph.nodes):
            return graph
        motion = _TransposeMotion(graph)
        result = motion.copy()
        return result if motion.has_moved else graph


def _is_channels_first(op: Operator) -> bool:
    return is_spatial(op) and op.layout == "NCHW"


class _TransposeMotion(ViewMotion[PermutedView]):
    """The new graph while it grows. alignments: constants without their leading axes of 1, by the
    view of all axes that each stands for.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.alignments: dict[PermutedView, str] = {}
        self.readers = graph.consumers
        self.has_moved = False

    def take(self, node: GraphNode) -> None:
        """Copy a node, as what its operator says of permuted axes."""
        match node.op:
            case Identity():
                self.views[node.outputs[0]] = self.view(node.inputs[0])
            case Transpose(permutation):
                view = self.permute(self.view(node.inputs[0]), permutation)
                self.views[node.outputs[0]] = view
            case Reshape(shape):
                self.reshape(node, shape)
            case op if is_spatial(op):
                self.spatial(node, op)
            case op if op.role is OperatorRole.ELEMENTWISE:
                self.elementwise(node)
            case _:
                self.carry(node)

    def itself(self, value: str) -> PermutedView:
        """A value whose axes stay where they are."""
        return PermutedView(value, tuple(range(self.graph.types[value].rank)))

    def emit(
        self, node: GraphNode, op: Operator, inputs: tuple[str, ...], permutation: Permutation
    ) -> None:
        """Compute the value of `node` in the new graph, `permutation` away from what it was."""
        (value,) = node.outputs
        moves = permutation != tuple(range(len(permutation)))
        base = self.builder.fresh(f"{value}.last") if moves else value
        self.builder.add_node(GraphNode(op, inputs, (base,), node.name))
        self.views[value] = PermutedView(base, permutation)

    def spatial(self, node: GraphNode, op: Spatial) -> None:
        """An operator that is rewritten to NHWC."""
        rank = self.graph.types[node.outputs[0]].rank
        if op.layout == "NHWC" or rank < 3 or self._keeps_first(node):
            self.fixed(node)
            return
        self.has_moved = True
        moved = op.channels_last()
        here, views = self.view(node.inputs[0]), [self.view(value) for value in node.inputs]
        for n, permutation in enumerate(op.operands_last(rank)):
            views[n] = self.permute(views[n], permutation)
        in_place = moved.in_place()
        if in_place is not None and self._is_image(here):
            views[0], moved = here, in_place
        self.emit(node, moved, tuple(map(self.plain, views)), permutation_to_first(rank))

    def _keeps_first(self, node: GraphNode) -> bool:
        """Whether an operator works on data that lies as in the model, and better as they are."""
        here = self.view(node.inputs[0])
        shape = self.builder.types[here.base].shape
        if not here.is_plain(shape):
            return False
        last = self.permute(here, permutation_to_last(len(shape)))
        others = (one for one in self.readers[node.inputs[0]] if one is not node)
        moved = last in self.made or any(goes_last(self.graph, one) for one in others)
        return keeps_first(self.graph, node, self.readers, moved=moved)

    def _is_image(self, view: PermutedView) -> bool:
        """Whether a value lies as in the model, with few channels, and would have to be moved."""
        shape = self.builder.types[view.base].shape
        moves = not keeps_order(shape, permutation_to_last(len(shape)))
        few = view.is_plain(shape) and at_most(shape[1], FEW_CHANNELS) is True
        return few and moves

    def elementwise(self, node: GraphNode) -> None:
        """The same operation on permuted operands; constants are aligned with them."""
        rank = self.graph.types[node.outputs[0]].rank
        constants = self.builder.constants
        ranks = {value: self.graph.types[value].rank for value in node.inputs}
        moving = [v for v in node.inputs if v not in constants and ranks[v] == rank]
        permutation = self.best(moving, rank)
        back = inverse(permutation)

        def operand(value: str) -> str:
            if value in constants:
                return self.aligned(value, rank, back)
            return self.moved(value, back) if ranks[value] == rank else self.raised(value, back)

        inputs = tuple(map(operand, node.inputs))
        self.emit(node, node.op, inputs, permutation)

    def carry(self, node: GraphNode) -> None:
        """An operator on operands of one rank that are permuted alike, as what it becomes then."""
        ranks = {self.graph.types[value].rank for value in node.inputs}
        if len(ranks) != 1 or len(node.outputs) > 1:
            self.fixed(node)
            return
        permutation = self.best(list(node.inputs), ranks.pop())
        moved = node.op.permute_axes(permutation)
        if moved is None:
            self.fixed(node)
            return
        inputs = tuple(self.moved(value, inverse(permutation)) for value in node.inputs)
        self.emit(node, moved.operator, inputs, moved.permutation)

    def reshape(self, node: GraphNode, shape: Shape) -> None:
        """Split and join axes where they are now; those to be joined are brought together first."""
        view = self.view(node.inputs[0])
        base = self.builder.types[view.base].shape
        if keeps_order(base, view.permutation):
            self.emit(node, Reshape(shape), (view.base,), tuple(range(len(shape))))
            return
        groups = reshape_groups(permuted(base, view.permutation), shape)
        if any(not before for before, _ in groups):
            self.fixed(node)
            return
        sources = [tuple(view.permutation[axis] for axis in before) for before, _ in groups]
        order = sorted(range(len(groups)), key=lambda g: min(sources[g]))
        gathered = tuple(axis for g in order for axis in sources[g])
        after = tuple(axis for g in order for axis in groups[g][1])
        source = self.plain(PermutedView(view.base, gathered))
        self.emit(node, Reshape(permuted(shape, after)), (source,), inverse(after))

    def best(self, values: list[str], rank: int) -> Permutation:
        """The permutation that most elements of `values` have; on a tie, one that moves."""
        weights: dict[Permutation, int] = {tuple(range(rank)): 0}
        for value in values:
            permutation = self.view(value).permutation
            weights[permutation] = weights.get(permutation, 0) + largest(
                self.graph.types[value].elements
            )
        plain = tuple(range(rank))
        return max(weights, key=lambda permutation: (weights[permutation], permutation != plain))

    def moved(self, value: str, permutation: Permutation) -> str:
        """A value of the new graph that is `value` permuted."""
        return self.plain(self.permute(self.view(value), permutation))

    def aligned(self, value: str, rank: int, permutation: Permutation) -> str:
        """A constant that broadcasts to `rank` axes, permuted, without leading axes of 1."""
        constant = self.builder.constants[value]
        if permutation == tuple(range(rank)) or math.prod(constant.shape) == 1:
            return value
        full = (1,) * (rank - len(constant.shape)) + constant.shape
        shape = closed_shape(permuted(full, permutation))
        lead = next(axis for axis, size in enumerate(shape) if size != 1)
        view = PermutedView(value, permutation)
        if view not in self.alignments:

            def see(array: Array) -> Array:
                return owned(array.reshape(full).transpose(permutation).reshape(shape[lead:]))

            result = seen(constant, shape[lead:], see)
            name = self.builder.fresh(f"{value}.{view.suffix}")
            self.alignments[view] = self.builder.constant(name, result)
        return self.alignments[view]

    def raised(self, value: str, permutation: Permutation) -> str:
        """A value of fewer axes that broadcasts to those of a permutation, permuted."""
        type_ = self.graph.types[value]
        if permutation == tuple(range(len(permutation))) or type_.elements == 1:
            return self.old(value)
        full = (1,) * (len(permutation) - type_.rank) + type_.shape
        raised = self.builder.add(Reshape(full), self.old(value))
        return self.plain(PermutedView(raised, permutation))

    @staticmethod
    def permute(view: PermutedView, permutation: Permutation) -> PermutedView:
        """`view` with one more permutation on top."""
        return PermutedView(view.base, composed(view.permutation, permutation))
