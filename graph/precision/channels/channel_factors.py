"""Divide the channels of values by factors, and multiply what reads them by these.

The model computes the same function; what differs is which numbers its values and weights have, so
how well levels of one scale stand for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, rebuilt
from ...ops.activation import Relu
from ...ops.arithmetic import Add, Mul
from ...ops.convolution import Conv
from ...ops.layer_norm import LayerNormalization, RMSNormalization
from ...ops.matmul import Gemm, MatMul
from ...ops.movement import Reshape
from ...ops.pooling import AveragePool, GlobalAveragePool, MaxPool
from ...passes.dead_code import DeadCode
from ...types import array_of, numpy_type, owned

Factors = Mapping[str, NDArray[np.float32]]  # of the channels of values, by name; all positive
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScaledOperand:
    """A constant operand of a node, and the factors that it is multiplied with, which broadcast."""

    node: GraphNode
    place: int
    factors: Doubles


@dataclass(frozen=True, slots=True)
class ChannelDivision:
    """`rescaled` as a pass, so that it is compared as others are: by the outputs, since values of
    a name are to be the same in both graphs, and what is divided is none. Here it has another name.
    """

    factors: Factors

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        divided = rescaled(graph, self.factors)
        if divided is graph:
            return graph
        inner = divided.types.keys() - {*graph.inputs, *graph.outputs, *divided.constants}
        builder = GraphBuilder.like(divided)
        names = {name: builder.fresh(f"{name}.divided") for name in sorted(inner)}

        def named(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names.get(value, value) for value in values)

        nodes = tuple(
            replace(node, inputs=named(node.inputs), outputs=named(node.outputs))
            for node in divided.nodes
        )
        return rebuilt(divided, nodes, divided.constants)


def rescaled(graph: Graph, factors: Factors) -> Graph:
    """The graph with values whose channels are divided by factors.

    factors: of values that products of constant weights read, one for each channel that these sum
    over. What makes a value is divided where it is a product, a normalisation, a sum or a product
    with constants; else a division stands in front of the products.
    """
    return _Rescaler(graph, factors).write() if factors else graph


def readers_of(graph: Graph, value: str) -> tuple[list[GraphNode], list[GraphNode]]:
    """The nodes that multiply a value by constant weights, and the others that read it."""
    products, others = list[GraphNode](), list[GraphNode]()
    for node in graph.consumers[value]:
        is_data = node.inputs.index(value) == 0 and node.inputs.count(value) == 1
        (products if is_data and is_weighted(graph, node) else others).append(node)
    return products, others


def is_weighted(graph: Graph, node: GraphNode) -> bool:
    """Whether a node multiplies its data by constant weights, a bias of constants besides."""
    match node.op:
        case Conv(layout="NCHW", data=None):
            pass
        case Gemm(trans_a=False):
            pass
        case MatMul() if graph.types[node.inputs[1]].rank == 2:
            pass
        case _:
            return False
    return all(value in graph.constants for value in node.inputs[1:])


def by_inputs(graph: Graph, node: GraphNode, factors: Doubles) -> ScaledOperand:
    """The weights of a product, multiplied along what it sums over."""
    shape = graph.types[node.inputs[1]].shape
    match node.op:
        case Conv(groups=groups):
            outputs, inner, *taps = cast(tuple[int, ...], shape)
            by_group = np.repeat(factors.reshape(groups, inner), outputs // groups, axis=0)
            return ScaledOperand(node, 1, by_group.reshape(outputs, inner, *(1,) * len(taps)))
        case Gemm(trans_b=True):
            return ScaledOperand(node, 1, factors[None, :])
    return ScaledOperand(node, 1, factors[:, None])


def absorbed(graph: Graph, value: str, factors: Doubles) -> list[ScaledOperand] | None:
    """The operands of what makes a value by which its channels are multiplied; None where it is not
    made so, or others read it on the way.
    """
    found = list[ScaledOperand]()
    producers, consumers, axis = graph.producers, graph.consumers, _axis(graph, value)
    first = value
    while axis is not None and value not in graph.outputs:
        node = producers.get(value)
        if node is None or (value != first and len(consumers[value]) > 1):
            return None
        step = _step(graph, node, axis, factors)
        if step is None:
            return None
        operands, value = step
        found += operands
        if not value:
            return found
        axis = _axis_within(graph, node, axis)
    return None


def maker_of(graph: Graph, value: str) -> GraphNode | None:
    """The product whose channels are those of a value, where `absorbed` ends at one."""
    ones = np.ones(1)
    found = absorbed(graph, value, ones)
    products = [one.node for one in found or () if is_weighted(graph, one.node)]
    return products[0] if products else None


def _step(
    graph: Graph, node: GraphNode, axis: int, factors: Doubles
) -> tuple[list[ScaledOperand], str] | None:
    """What of a node is multiplied, and the value that is to be multiplied next, "" for none."""
    rank = graph.types[node.outputs[0]].rank
    match node.op:
        case Relu() | MaxPool() | AveragePool() | GlobalAveragePool() | Reshape():
            # c f(x) = f(c x) for c > 0; what a Reshape does to the axis its caller knows
            return [], node.inputs[0]
        case Conv() | Gemm() | MatMul() if is_weighted(graph, node):
            biases = (ScaledOperand(node, n, factors) for n in range(2, len(node.inputs)))
            return [_by_outputs(graph, node, factors), *biases], ""
        case LayerNormalization() | RMSNormalization() if axis == rank - 1:
            affine = range(1, len(node.inputs))
            if node.op.axis != axis or any(node.inputs[n] not in graph.constants for n in affine):
                return None
            return [ScaledOperand(node, n, factors) for n in affine], ""
        case Add() | Mul():
            constant = [n for n in (0, 1) if node.inputs[n] in graph.constants]
            if len(constant) != 1 or len(node.inputs) != 2:
                return None
            along = factors.reshape(-1, *(1,) * (rank - 1 - axis))
            scaled = [ScaledOperand(node, constant[0], along)]
            return scaled, node.inputs[1 - constant[0]] if isinstance(node.op, Add) else ""
    return None


def _by_outputs(graph: Graph, node: GraphNode, factors: Doubles) -> ScaledOperand:
    """The weights of a product, multiplied along its outputs."""
    rank = graph.types[node.inputs[1]].rank
    if isinstance(node.op, Conv):
        return ScaledOperand(node, 1, factors.reshape(-1, *(1,) * (rank - 1)))
    if isinstance(node.op, Gemm) and node.op.trans_b:
        return ScaledOperand(node, 1, factors[:, None])
    return ScaledOperand(node, 1, factors[None, :])


def _axis(graph: Graph, value: str) -> int | None:
    """The axis of a value that products sum over."""
    products, _ = readers_of(graph, value)
    if not products:
        return None
    return 1 if isinstance(products[0].op, Conv) else graph.types[value].rank - 1


def _axis_within(graph: Graph, node: GraphNode, axis: int) -> int | None:
    """The axis of a node's input that is an axis of its output; None where there is none."""
    if not isinstance(node.op, Reshape):
        return axis
    before, after = (graph.types[value].shape for value in (node.inputs[0], node.outputs[0]))
    same = before[: axis + 1] == after[: axis + 1]
    behind = (*before[axis + 1 :], *after[axis + 1 :])
    return axis if same and all(size == 1 for size in behind) else None


class _Rescaler:
    def __init__(self, graph: Graph, factors: Factors) -> None:
        self.graph = graph
        self.operands: dict[tuple[str, int], Doubles] = {}  # result of the node, place -> factors
        self.divided: dict[str, Doubles] = {}  # values in front of whose products a division stands
        for value, given in factors.items():
            wide = given.astype(np.float64)
            products, others = readers_of(graph, value)
            for node in products:
                self._add(by_inputs(graph, node, wide))
            found = None if others else absorbed(graph, value, 1 / wide)
            for one in found or ():
                self._add(one)
            axis = _axis(graph, value)
            if found is None and axis is not None:
                behind = (1,) * (graph.types[value].rank - 1 - axis)
                self.divided[value] = (1 / wide).reshape(-1, *behind)

    def _add(self, one: ScaledOperand) -> None:
        key = one.node.outputs[0], one.place
        self.operands[key] = one.factors * self.operands.get(key, 1.0)

    def write(self) -> Graph:
        """The graph with other constants."""
        builder = GraphBuilder.like(self.graph)
        smaller: dict[str, str] = {}
        for node in self.graph.nodes:
            builder.add_node(replace(node, inputs=tuple(self._inputs(builder, node, smaller))))
        result = builder.finish(self.graph.outputs)
        return DeadCode()(rebuilt(self.graph, result.nodes, result.constants))

    def _inputs(
        self, builder: GraphBuilder, node: GraphNode, smaller: dict[str, str]
    ) -> Iterator[str]:
        for place, value in enumerate(node.inputs):
            factors = self.operands.get((node.outputs[0], place))
            if factors is not None:
                given = array_of(self.graph.constants[value])
                array = given.astype(np.float64) * factors
                name = builder.fresh(f"{value}.scaled")
                yield builder.constant(name, owned(array.astype(given.dtype)))
            elif value in self.divided and place == 0 and is_weighted(self.graph, node):
                if value not in smaller:
                    kind = self.graph.types[value].dtype
                    table = owned(self.divided[value].astype(numpy_type(kind)))
                    divisors = builder.constant(builder.fresh(f"{value}.inverse"), table)
                    smaller[value] = builder.add(
                        Mul(), value, divisors, output=builder.fresh(f"{value}.scaled")
                    )
                yield smaller[value]
            else:
                yield value
