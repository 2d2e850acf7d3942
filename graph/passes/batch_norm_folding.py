"""Fold batch normalisation, and scales and shifts per channel, into the convolution before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...tir.sizes import Size
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.arithmetic import Add, Mul, Sub
from ..ops.convolution import Conv
from ..ops.movement import Transpose
from ..ops.normalisation import BatchNormalization
from ..types import Constant, Splat, array_of, owned
from .exchange import only_reader

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChannelAffine:
    """A node that computes value * factor[c] + shift[c] from one value, channel by channel; a
    Transpose computes nothing.
    """

    node: GraphNode
    value: str
    factor: Doubles
    shift: Doubles

    @property
    def moves(self) -> bool:
        """Whether it is a Transpose."""
        return isinstance(self.node.op, Transpose)


@dataclass(frozen=True, slots=True)
class BatchNormFolding:
    """Fold chains of BatchNormalization, Mul and Add into one factor and one shift per channel.

    A chain that follows a convolution of constant weights, whose result nobody else reads, goes
    into weights and bias; any other chain becomes one Mul and one Add, or one of them. Behind a
    convolution there may be a Sub, too, and Transposes, which stay. Factors are computed in float64
    and rounded once.
    Requires: layout NCHW (other nodes are left alone).
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        steps = {
            node.outputs[0]: step
            for node in graph.nodes
            if not isinstance(node.op, Sub) and (step := _affine(graph, node, 1)) is not None
        }
        consumers = graph.consumers
        builder = GraphBuilder.like(graph)
        done: set[str] = set()
        for node in graph.nodes:
            if node.outputs[0] in done:
                continue
            if _foldable(graph, node) and (chain := _behind(graph, node, consumers)):
                _fold_into(builder, node, chain)
            elif _shortens(chain := _chain(graph, node, steps, consumers)):
                _scale_and_shift(builder, graph, chain)
            else:
                builder.add_node(node)
                continue
            done.update(step.node.outputs[0] for step in chain)
        if not done:
            return graph
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _chain(
    graph: Graph,
    node: GraphNode,
    steps: Mapping[str, ChannelAffine],
    consumers: Mapping[str, list[GraphNode]],
) -> tuple[ChannelAffine, ...]:
    """The step that a node is and those after it, each the only reader of the one before."""
    chain: list[ChannelAffine] = []
    step = steps.get(node.outputs[0])
    while step is not None:
        chain.append(step)
        value = step.node.outputs[0]
        reader = only_reader(graph, value, consumers)
        step = steps.get(reader.outputs[0]) if reader is not None else None
        step = step if step is not None and step.value == value else None
    return tuple(chain)


def _behind(
    graph: Graph, node: GraphNode, consumers: Mapping[str, list[GraphNode]]
) -> tuple[ChannelAffine, ...]:
    """The steps after a convolution up to the last one that computes, wherever Transposes between
    them bring its channels.
    """
    chain: list[ChannelAffine] = []
    axis, value = 1, node.outputs[0]
    while (reader := only_reader(graph, value, consumers)) is not None:
        step = _affine(graph, reader, axis)
        if isinstance(reader.op, Transpose):
            axis = reader.op.permutation.index(axis)
            step = ChannelAffine(reader, value, np.ones(1), np.zeros(1))
        if step is None or step.value != value:
            break
        chain.append(step)
        value = reader.outputs[0]
    while chain and chain[-1].moves:
        chain.pop()
    return tuple(chain)


def _affine(graph: Graph, node: GraphNode, axis: int) -> ChannelAffine | None:
    """What `node` does per channel, which are on an axis; None when it does something else."""
    if not node.inputs:
        return None
    x = graph.types[node.inputs[0]]
    if 0 in x.shape:
        return None
    match node.op:
        case BatchNormalization(epsilon, "NCHW") if axis == 1:
            if any(value not in graph.constants for value in node.inputs[1:]):
                return None
            scale, bias, mean, variance = (_doubles(graph, value) for value in node.inputs[1:])
            factor = scale / np.sqrt(variance + epsilon)
            return ChannelAffine(node, node.inputs[0], factor, bias - mean * factor)
        case Add() | Mul() | Sub():
            return _scale_or_shift(graph, node, axis)
    return None


def _scale_or_shift(graph: Graph, node: GraphNode, axis: int) -> ChannelAffine | None:
    """An Add, Sub or Mul of a value and a constant that has at most one number per channel."""
    fixed = [value for value in node.inputs if value in graph.constants]
    if len(fixed) != 1 or (isinstance(node.op, Sub) and fixed[0] == node.inputs[0]):
        return None
    value = node.inputs[1 - node.inputs.index(fixed[0])]
    x, constant = graph.types[value], graph.types[fixed[0]]
    if not x.is_float or x.rank < 2 or graph.types[node.outputs[0]] != x:
        return None
    aligned = (1,) * (x.rank - constant.rank) + constant.shape
    if any(size != 1 for n, size in enumerate(aligned) if n != axis):
        return None
    channels = x.shape[axis]
    if isinstance(channels, Size):
        return None
    numbers = np.broadcast_to(_doubles(graph, fixed[0]).reshape(-1), (channels,))
    if isinstance(node.op, Mul):
        return ChannelAffine(node, value, numbers, np.zeros(channels))
    shift = -numbers if isinstance(node.op, Sub) else numbers
    return ChannelAffine(node, value, np.ones(channels), shift)


def _doubles(graph: Graph, value: str) -> Doubles:
    return array_of(graph.constants[value]).astype(np.float64)


def _foldable(graph: Graph, node: GraphNode) -> bool:
    return (
        isinstance(node.op, Conv)
        and node.op.layout == "NCHW"
        and all(value in graph.constants for value in node.inputs[1:])
    )


def _shortens(chain: tuple[ChannelAffine, ...]) -> bool:
    """Whether one Mul and one Add are less than a chain; no chain is shortened."""
    kinds = [type(step.node.op) for step in chain]
    return BatchNormalization in kinds or len(kinds) > len(set(kinds))


def _total(chain: tuple[ChannelAffine, ...]) -> tuple[Doubles, Doubles]:
    """Factor and shift of all steps together."""
    computing = [step for step in chain if not step.moves]
    factor, shift = computing[0].factor, computing[0].shift
    for step in computing[1:]:
        factor, shift = factor * step.factor, shift * step.factor + step.shift
    return factor, shift


def _fold_into(builder: GraphBuilder, node: GraphNode, chain: tuple[ChannelAffine, ...]) -> None:
    factor, shift = _total(chain)
    x, weights = node.inputs[:2]
    if len(node.inputs) == 3:
        shift = shift + array_of(builder.constants[node.inputs[2]]).astype(np.float64) * factor
    dtype = builder.types[weights].dtype
    folded = builder.constant(
        builder.fresh(f"{weights}.folded"), _scaled(builder.constants[weights], factor, dtype)
    )
    bias = builder.constant(
        builder.fresh(f"{weights}.bias"), _per_channel(shift, dtype, (len(shift),))
    )
    moves, (last,) = [step.node for step in chain if step.moves], chain[-1].node.outputs
    made = builder.fresh(f"{node.outputs[0]}.folded") if moves else last
    builder.add_node(GraphNode(node.op, (x, folded, bias), (made,), node.name))
    for move in moves:
        output = last if move is moves[-1] else builder.fresh(f"{move.outputs[0]}.folded")
        builder.add_node(GraphNode(move.op, (made,), (output,), move.name))
        made = output


def _scale_and_shift(builder: GraphBuilder, graph: Graph, chain: tuple[ChannelAffine, ...]) -> None:
    factor, shift = _total(chain)
    first, last = chain[0], chain[-1].node
    x = graph.types[first.value]
    shape = (len(factor), *(1,) * (x.rank - 2))
    scaled = first.value
    if np.any(factor != 1.0):
        numbers = builder.constant(
            builder.fresh(f"{last.outputs[0]}.factor"), _broadcast(factor, x.dtype, shape)
        )
        alone = not np.any(shift)
        output = last.outputs[0] if alone else builder.fresh(f"{last.outputs[0]}.scaled")
        scaled = builder.add(Mul(), scaled, numbers, output=output, name=first.node.name)
        if alone:
            return
    numbers = builder.constant(
        builder.fresh(f"{last.outputs[0]}.shift"), _broadcast(shift, x.dtype, shape)
    )
    builder.add(Add(), scaled, numbers, output=last.outputs[0], name=last.name)


def _scaled(weights: Constant, factor: Doubles, dtype: str) -> Constant:
    """`weights` times `factor` of their first axis; a splat stays one if the factors agree."""
    if isinstance(weights, Splat) and np.all(factor == factor[:1]):
        value = np.asarray(weights.value * factor[0]).astype(dtype).item()
        return Splat(value, dtype, weights.shape)
    array = array_of(weights)
    columns = factor.reshape(-1, *(1,) * (array.ndim - 1))
    return owned(np.multiply(array, columns).astype(dtype))


def _per_channel(numbers: Doubles, dtype: str, shape: tuple[int, ...]) -> Constant:
    rounded = numbers.astype(dtype)
    if np.all(rounded == rounded[:1]):
        return Splat(rounded[0].item(), dtype, shape)
    return owned(rounded.reshape(shape))


def _broadcast(numbers: Doubles, dtype: str, shape: tuple[int, ...]) -> Constant:
    """As `_per_channel`, but one number for all channels has no axes."""
    found = _per_channel(numbers, dtype, shape)
    return replace(found, shape=()) if isinstance(found, Splat) else found
