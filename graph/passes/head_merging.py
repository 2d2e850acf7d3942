"""Compute what the heads of an attention are made of in one product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...tir.sizes import AnySize, closed, product_of
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add
from ..ops.attention import Attention, Heads
from ..ops.base import Operator
from ..ops.matmul import MatMul
from ..ops.movement import Reshape
from ..types import TensorType, array_of, owned
from .exchange import exchanged


@dataclass(frozen=True, slots=True)
class HeadMerging:
    """Merge the three products that make queries, keys and values of one tensor.

    q = x @ a + d; k = x @ b + e; v = x @ c + f; Attention(q, k, v)
    ->   y = x @ [a b c] + [d e f]; Attention(y, y, y), the heads of each at their place in y

    Requires: constant weights, and biases where there are any, of equal shapes; nobody else reads
    what is merged.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        found = {one.node.outputs[0]: one for one in _merged(graph)}
        if not found:
            return graph
        gone = {value for one in found.values() for value in one.inside}
        return exchanged(graph, found, gone, lambda builder, one: _write(builder, graph, one))


@dataclass(frozen=True, slots=True)
class _Part:
    """One product: its data, weights and bias, "" where there is none; the values on the way."""

    x: str
    weights: str
    bias: str
    inside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Merged:
    """An attention with the products of its queries, keys and values."""

    node: GraphNode
    parts: tuple[_Part, ...]

    @property
    def inside(self) -> set[str]:
        """What is not computed any more."""
        return {value for part in self.parts for value in part.inside}


def _merged(graph: Graph) -> Iterator[_Merged]:
    makers, readers = graph.producers, graph.consumers
    for node in graph.nodes:
        if not isinstance(node.op, Attention):
            continue
        op, inputs = node.op, node.inputs[:3]
        alone = {op.query, op.key, op.value} == {Heads()} and len(set(inputs)) == 3
        whole = all(graph.types[value].shape[2] == op.heads for value in inputs)
        if not alone or not whole or len({graph.types[value] for value in inputs}) != 1:
            continue
        parts = [_part(graph, makers, readers, value) for value in inputs]
        found = tuple(part for part in parts if part is not None)
        kinds = {(part.x, graph.types[part.weights], graph.types.get(part.bias)) for part in found}
        if len(found) == 3 and len(kinds) == 1:
            yield _Merged(node, found)


def _part(
    graph: Graph,
    makers: Mapping[str, GraphNode],
    readers: Mapping[str, list[GraphNode]],
    value: str,
) -> _Part | None:
    """The product that is reshaped to `value`, a bias being added before or behind that; None where
    it is something else or read twice.
    """
    inside: list[str] = []
    bias, width = "", product_of(graph.types[value].shape[2:])
    kinds: list[type[Operator]] = [Reshape, Add]
    while (node := makers.get(value)) is not None:
        if len(readers[value]) != 1 or value in graph.outputs:
            return None
        inside.append(value)
        if isinstance(node.op, MatMul):
            break
        kind = type(node.op)
        if kind not in kinds:
            return None
        kinds.remove(kind)
        value, *others = node.inputs
        if kind is Add:
            value, bias = (value, *others) if value in makers else (*others, value)
            if bias not in graph.constants or not _is_flat(graph.types[bias], width):
                return None
    if node is None or Reshape in kinds:
        return None
    weights = node.inputs[1]
    fixed = weights in graph.constants and graph.types[weights].rank == 2
    columns = graph.types[weights].shape[-1] == width
    return _Part(node.inputs[0], weights, bias, tuple(inside)) if fixed and columns else None


def _is_flat(bias: TensorType, width: AnySize) -> bool:
    """Whether a bias has a number for each column of a product, and nothing else."""
    lead = bias.shape[: max(0, bias.rank - 2)]
    return bias.elements == width and all(size == 1 for size in lead)


def _write(builder: GraphBuilder, graph: Graph, one: _Merged) -> None:
    """Add the one product and the attention that reads its heads in place."""

    def joined(names: list[str], *, flat: bool = False) -> str:
        arrays = [array_of(graph.constants[name]) for name in names]
        arrays = [array.reshape(-1) if flat else array for array in arrays]
        whole = np.concatenate(arrays, axis=-1)
        return builder.constant(builder.fresh(f"{names[0]}.merged"), owned(whole))

    node, op = one.node, one.node.op
    assert isinstance(op, Attention)
    weights = joined([part.weights for part in one.parts])
    value = builder.add(MatMul(), one.parts[0].x, weights, name=node.name)
    if one.parts[0].bias:
        value = builder.add(Add(), value, joined([part.bias for part in one.parts], flat=True))
    batch, places, heads, depth = graph.types[node.inputs[0]].shape
    view = builder.add(Reshape((batch, places, 3 * heads, depth)), value)
    placed = replace(op, key=Heads(closed(heads)), value=Heads(2 * closed(heads)))
    builder.add_node(
        GraphNode(placed, (view, view, view, *node.inputs[3:]), node.outputs, node.name)
    )
