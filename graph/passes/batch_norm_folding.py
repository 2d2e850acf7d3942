"""Fold batch normalisation, and scales and shifts per channel, into the convolution before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...tir.sizes import Size
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.arithmetic import Add, Mul
from ..ops.convolution import Conv
from ..ops.normalisation import BatchNormalization
from ..types import Constant, Splat, array_of, owned

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChannelAffine:
    """A node that computes value * factor[c] + shift[c] from one value, channel by channel (axis
    1).
    """

    node: GraphNode
    value: str
    factor: Doubles
    shift: Doubles


@dataclass(frozen=True, slots=True)
class BatchNormFolding:
    """Fold chains of BatchNormalization, Mul and Add into one factor and one shift per channel.

    A chain that follows a convolution of constant weights, whose result nobody else reads, goes
    into weights and bias; any other chain becomes one Mul and one Add. Factors are computed in
    float64 and rounded once.
    Requires: layout NCHW (other nodes are left alone).
    """

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        steps = {
            node.outputs[0]: step
            for node in graph.nodes
            if (step := _affine(graph, node)) is not None
        }
        if not steps:
            return graph
        consumers = graph.consumers
        builder = GraphBuilder.like(graph)
        done: set[str] = set()
        for node in graph.nodes:
            if node.outputs[0] in done:
                continue
            chain = _chain(graph, node, steps, consumers)
            if _foldable(graph, node) and chain:
                _fold_into(builder, node, chain)
            elif node.outputs[0] in steps and _shortens(chain := (steps[node.outputs[0]], *chain)):
                _scale_and_shift(builder, graph, chain)
            else:
                builder.add_node(node)
                continue
            done.update(step.node.outputs[0] for step in chain)
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _chain(
    graph: Graph,
    node: GraphNode,
    steps: Mapping[str, ChannelAffine],
    consumers: Mapping[str, list[GraphNode]],
) -> tuple[ChannelAffine, ...]:
    """The steps after `node`, each the only reader of the one before."""
    chain: list[ChannelAffine] = []
    value = node.outputs[0]
    while value not in graph.outputs and len(consumers[value]) == 1:
        step = steps.get(consumers[value][0].outputs[0])
        if step is None or step.value != value:
            break
        chain.append(step)
        value = step.node.outputs[0]
    return tuple(chain)


def _affine(graph: Graph, node: GraphNode) -> ChannelAffine | None:
    """What `node` does per channel; None when it does something else."""
    if not node.inputs:
        return None
    x = graph.types[node.inputs[0]]
    if 0 in x.shape:
        return None
    match node.op:
        case BatchNormalization(epsilon, "NCHW"):
            if any(value not in graph.constants for value in node.inputs[1:]):
                return None
            scale, bias, mean, variance = (_doubles(graph, value) for value in node.inputs[1:])
            factor = scale / np.sqrt(variance + epsilon)
            return ChannelAffine(node, node.inputs[0], factor, bias - mean * factor)
        case Add() | Mul():
            return _scale_or_shift(graph, node)
    return None


def _scale_or_shift(graph: Graph, node: GraphNode) -> ChannelAffine | None:
    """An Add or Mul of a value and a constant that has at most one number per channel."""
    fixed = [value for value in node.inputs if value in graph.constants]
    if len(fixed) != 1:
        return None
    value = node.inputs[1 - node.inputs.index(fixed[0])]
    x, constant = graph.types[value], graph.types[fixed[0]]
    if not x.is_float or x.rank < 2 or graph.types[node.outputs[0]] != x:
        return None
    aligned = (1,) * (x.rank - constant.rank) + constant.shape
    if any(size != 1 for axis, size in enumerate(aligned) if axis != 1):
        return None
    channels = x.shape[1]
    if isinstance(channels, Size):
        return None
    numbers = np.broadcast_to(_doubles(graph, fixed[0]).reshape(-1), (channels,))
    if isinstance(node.op, Mul):
        return ChannelAffine(node, value, numbers, np.zeros(channels))
    return ChannelAffine(node, value, np.ones(channels), numbers)


def _doubles(graph: Graph, value: str) -> Doubles:
    return array_of(graph.constants[value]).astype(np.float64)


def _foldable(graph: Graph, node: GraphNode) -> bool:
    return (
        isinstance(node.op, Conv)
        and node.op.layout == "NCHW"
        and all(value in graph.constants for value in node.inputs[1:])
    )


def _shortens(chain: tuple[ChannelAffine, ...]) -> bool:
    """Whether one Mul and one Add are less than the chain."""
    kinds = [type(step.node.op) for step in chain]
    return BatchNormalization in kinds or len(kinds) > len(set(kinds))


def _total(chain: tuple[ChannelAffine, ...]) -> tuple[Doubles, Doubles]:
    """Factor and shift of all steps together."""
    factor, shift = chain[0].factor, chain[0].shift
    for step in chain[1:]:
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
    builder.add_node(GraphNode(node.op, (x, folded, bias), chain[-1].node.outputs, node.name))


def _scale_and_shift(builder: GraphBuilder, graph: Graph, chain: tuple[ChannelAffine, ...]) -> None:
    factor, shift = _total(chain)
    first, last = chain[0], chain[-1].node
    x = graph.types[first.value]
    shape = (len(factor), *(1,) * (x.rank - 2))
    scaled = first.value
    if np.any(factor != 1.0):
        numbers = builder.constant(
            builder.fresh(f"{last.outputs[0]}.factor"), _per_channel(factor, x.dtype, shape)
        )
        scaled = builder.add(
            Mul(),
            scaled,
            numbers,
            output=builder.fresh(f"{last.outputs[0]}.scaled"),
            name=first.node.name,
        )
    numbers = builder.constant(
        builder.fresh(f"{last.outputs[0]}.shift"), _per_channel(shift, x.dtype, shape)
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
