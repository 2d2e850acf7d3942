"""Move a network to channels last: NHWC is the layout in which vectors run along channels.

No transpose is made until somebody needs one. While the nodes are copied in order, each value of
the model is known as a `View`: some value of the new graph, and the permutation that would turn it
into the old one. Spatial operators read and give NHWC values, so between two of them the
permutations cancel. A convolution of an image, of whose few channels it makes no vectors, reads it
where it lies. Operators that do not care where an axis stands (elementwise, Concat, Softmax,
Reshape of whole axes) work on the new values and pass the permutation on; a Transpose of the model
only changes the permutation. The others, and the outputs, get the old value back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from ..build import GraphBuilder
from ..ir import Graph, Node, rebuilt
from ..ops.base import Operator
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.movement import Concat, Identity, Reshape, Transpose, reshape_groups
from ..ops.normalisation import LRN, BatchNormalization
from ..ops.pooling import AveragePool, GlobalAveragePool, MaxPool
from ..ops.reduction import Reduction
from ..ops.registry import OPERATORS, Spatial
from ..ops.softmax import LogSoftmax, Softmax
from ..types import (
    Constant,
    Splat,
    array_of,
    composed,
    inverse,
    owned,
    permutation_to_first,
    permutation_to_last,
    permuted,
)

Permutation = tuple[int, ...]

FEW_CHANNELS = 3  # of an image: moved last, they are too short for vectors


@dataclass(frozen=True, slots=True)
class View:
    """A value of the old graph: value `base` of the new one, its axes permuted."""

    base: str
    permutation: Permutation

    @property
    def plain(self) -> bool:
        """Whether it is `base` itself."""
        return self.permutation == tuple(range(len(self.permutation)))


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """Rewrite every spatial operator of layout NCHW to NHWC, with few transposes between them.

    Constant weights are permuted here and now.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        if not any(_is_channels_first(node.op) for node in graph.nodes):
            return graph
        mover = _Mover(graph)
        for node in graph.nodes:
            mover.rules.get(type(node.op), mover.fixed)(node)
        result = mover.builder.finish({name: mover.old(name) for name in graph.outputs})
        return rebuilt(graph, result.nodes, result.constants)


def _is_channels_first(op: Operator) -> bool:
    return isinstance(op, Spatial) and op.layout == "NCHW"


class _Mover:
    """The new graph while it grows, and what the values of the old one are in it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.views: dict[str, View] = {}
        self.made: dict[View, str] = {}
        self.alignments: dict[View, str] = {}
        self.rules: dict[type[Operator], Callable[[Node], None]] = {
            **dict.fromkeys(
                (Conv, MaxPool, AveragePool, GlobalAveragePool, BatchNormalization, LRN),
                self.spatial,
            ),
            **{op: self.elementwise for op in OPERATORS if issubclass(op, Elementwise)},
            Concat: self.concat,
            **dict.fromkeys((Softmax, LogSoftmax), self.softmax),
            **{op: self.reduction for op in OPERATORS if issubclass(op, Reduction)},
            Identity: self.identity,
            Transpose: self.transpose,
            Reshape: self.reshape,
        }

    def view(self, value: str) -> View:
        """What `value` of the old graph is in the new one."""
        rank = self.graph.types[value].rank
        return self.views.get(value) or View(value, tuple(range(rank)))

    def old(self, value: str) -> str:
        """A value of the new graph that is `value` of the old one."""
        return self.plain(self.view(value), value)

    def plain(self, view: View, name: str = "") -> str:
        """A value of the new graph that is `view`, permuted once; if possible called `name`."""
        if view.plain:
            return view.base
        if view not in self.made:
            taken = not name or name in self.builder.types
            self.made[view] = self._permuted(
                view, self.builder.fresh(f"{view.base}.permuted") if taken else name
            )
        return self.made[view]

    def _permuted(self, view: View, name: str) -> str:
        base, permutation = view.base, view.permutation
        constant = self.builder.constants.get(base)
        shape = self.builder.types[base].shape
        result = permuted(shape, permutation)
        if isinstance(constant, Splat):
            return self.builder.constant(name, replace(constant, shape=result))
        if constant is not None:
            seen = array_of(constant).transpose(permutation)  # no copy: most of a model is weights
            seen.flags.writeable = False
            return self.builder.constant(name, seen)
        op = Reshape(result) if _keeps_order(shape, permutation) else Transpose(permutation)
        return self.builder.add(op, base, output=name)

    def emit(
        self, node: Node, op: Operator, inputs: tuple[str, ...], permutation: Permutation
    ) -> None:
        """Compute the value of `node` in the new graph, `permutation` away from what it was."""
        (value,) = node.outputs
        view = View(value, permutation)
        if not view.plain:
            view = View(self.builder.fresh(f"{value}.last"), permutation)
        self.builder.add_node(Node(op, inputs, (view.base,), node.name))
        self.views[value] = view

    def fixed(self, node: Node) -> None:
        """An operator that wants its inputs as they were."""
        inputs = tuple(map(self.old, node.inputs))
        self.emit(node, node.op, inputs, tuple(range(self.graph.types[node.outputs[0]].rank)))

    def spatial(self, node: Node) -> None:
        """An operator that is rewritten to NHWC; the weights of a convolution become [kernel...,
        in, out].
        """
        op = cast(Spatial, node.op)
        rank = self.graph.types[node.outputs[0]].rank
        if op.layout == "NHWC" or rank < 3:
            self.fixed(node)
            return
        moved: Spatial = replace(op, layout="NHWC")
        data = self.permute(self.view(node.inputs[0]), permutation_to_last(rank))
        rest = [self.view(value) for value in node.inputs[1:]]
        if isinstance(moved, Conv):
            rest[0] = self.permute(rest[0], (*range(2, rank), 1, 0))
            here = self.view(node.inputs[0])
            if moved.groups == 1 and self._is_image(here):
                data, moved = here, replace(moved, data="NCHW")
        inputs = tuple(map(self.plain, (data, *rest)))
        self.emit(node, moved, inputs, permutation_to_first(rank))

    def _is_image(self, view: View) -> bool:
        """Whether a value lies as in the model, with few channels, and would have to be moved."""
        shape = self.builder.types[view.base].shape
        moves = not _keeps_order(shape, permutation_to_last(len(shape)))
        return view.plain and shape[1] <= FEW_CHANNELS and moves

    def elementwise(self, node: Node) -> None:
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
        self.emit(node, cast(Elementwise, node.op), inputs, permutation)

    def concat(self, node: Node) -> None:
        """Concatenation along wherever the axis went."""
        rank = self.graph.types[node.outputs[0]].rank
        permutation = self.best(list(node.inputs), rank)
        inputs = tuple(self.moved(value, inverse(permutation)) for value in node.inputs)
        axis = permutation[cast(Concat, node.op).axis]
        self.emit(node, Concat(axis), inputs, permutation)

    def softmax(self, node: Node) -> None:
        """Softmax over wherever the axes went."""
        op = cast(Softmax | LogSoftmax, node.op)
        view = self.view(node.inputs[0])
        axes = tuple(sorted(view.permutation[axis] for axis in op.axes))
        self.emit(node, replace(op, axes=axes), (view.base,), view.permutation)

    def reduction(self, node: Node) -> None:
        """A reduction over wherever the axes went; those that are left keep the order they have."""
        op = cast(Reduction, node.op)
        view = self.view(node.inputs[0])
        axes = tuple(sorted(view.permutation[axis] for axis in op.axes))
        permutation = view.permutation
        if not op.keepdims:
            left = [d for n, d in enumerate(view.permutation) if n not in op.axes]
            permutation = tuple(sorted(left).index(d) for d in left)
        self.emit(node, replace(op, axes=axes), (view.base,), permutation)

    def identity(self, node: Node) -> None:
        """Another name for the same view."""
        self.views[node.outputs[0]] = self.view(node.inputs[0])

    def transpose(self, node: Node) -> None:
        """Another view of the same value."""
        permutation = cast(Transpose, node.op).permutation
        self.views[node.outputs[0]] = self.permute(self.view(node.inputs[0]), permutation)

    def reshape(self, node: Node) -> None:
        """Split and join axes where they are now; those to be joined are brought together first."""
        shape = cast(Reshape, node.op).shape
        view = self.view(node.inputs[0])
        base = self.builder.types[view.base].shape
        if _keeps_order(base, view.permutation):
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
        source = self.plain(View(view.base, gathered))
        self.emit(node, Reshape(permuted(shape, after)), (source,), inverse(after))

    def best(self, values: list[str], rank: int) -> Permutation:
        """The permutation that most elements of `values` have; on a tie, one that moves."""
        weights: dict[Permutation, int] = {tuple(range(rank)): 0}
        for value in values:
            permutation = self.view(value).permutation
            weights[permutation] = weights.get(permutation, 0) + self.graph.types[value].elements
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
        shape = permuted(full, permutation)
        lead = next(axis for axis, size in enumerate(shape) if size != 1)
        view = View(value, permutation)
        if view not in self.alignments:
            result: Constant
            if isinstance(constant, Splat):
                result = replace(constant, shape=shape[lead:])
            else:
                result = owned(constant.reshape(full).transpose(permutation).reshape(shape[lead:]))
            name = self.builder.fresh(f"{value}.permuted")
            self.alignments[view] = self.builder.constant(name, result)
        return self.alignments[view]

    def raised(self, value: str, permutation: Permutation) -> str:
        """A value of fewer axes that broadcasts to those of a permutation, permuted."""
        type_ = self.graph.types[value]
        if permutation == tuple(range(len(permutation))) or type_.elements == 1:
            return self.old(value)
        full = (1,) * (len(permutation) - type_.rank) + type_.shape
        return self.plain(View(self.builder.add(Reshape(full), self.old(value)), permutation))

    @staticmethod
    def permute(view: View, permutation: Permutation) -> View:
        """`view` with one more permutation on top."""
        return View(view.base, composed(view.permutation, permutation))


def _keeps_order(shape: tuple[int, ...], permutation: Permutation) -> bool:
    """Whether permuting only moves axes of size 1, so that the elements keep their order."""
    long = [axis for axis in permutation if shape[axis] != 1]
    return long == sorted(long)
