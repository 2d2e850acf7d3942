"""The products of a model: along which axes they sum, and what identifies a model by them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....tir.text.display import printable
from ...ir.ir import Graph, GraphNode
from ...ops.convolution import Conv
from ...ops.matmul import Gemm, MatMul
from ...ops.window import channel_axis
from ...types import Constant, array_of, type_of


@dataclass(frozen=True, slots=True)
class ProductChannels:
    """A product of floats. reads: the operands that are no constants, each with the axis that the
    product sums over.
    """

    node: GraphNode
    reads: tuple[tuple[str, int], ...]


def product_channels(graph: Graph) -> Iterator[ProductChannels]:
    """The products of float32 of a graph, in order; those within branches and loops are none."""
    for node in graph.nodes:
        if isinstance(node.op, Conv | MatMul | Gemm) and _is_of_floats(graph, node):
            axes = zip(node.inputs, _summed_axes(graph, node), strict=False)
            reads = tuple((name, axis) for name, axis in axes if name not in graph.constants)
            yield ProductChannels(node, reads)


def channel_axes(graph: Graph) -> dict[str, int]:
    """The axis of each operand of products that they sum over. Without operands of which products
    sum over different axes, and where a run decides how many channels there are.
    """
    read: dict[str, set[int]] = {}
    for product in product_channels(graph):
        for name, axis in product.reads:
            read.setdefault(name, set()).add(axis)
    types = graph.types
    agreed = {name: axes.pop() for name, axes in read.items() if len(axes) == 1}
    return {name: axis for name, axis in agreed.items() if isinstance(types[name].shape[axis], int)}


def products_digest(prepared: Graph) -> str:
    """What identifies a model, whatever its file is called and whichever sizes it was given: its
    products in order, the names of what they read and make, and the bits of their weights.
    """
    digest = hashlib.sha256()
    for product in product_channels(prepared):
        node = product.node
        digest.update(repr((node.op.title, node.inputs, node.outputs)).encode())
        for name in node.inputs:
            if name in prepared.constants:
                digest.update(_bits(prepared.constants[name]))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ModelProducts:
    """The products of a model, whatever its values are called. names: of each product, what it
    reads of a run and what it makes. form: what identifies the operators, the bits of their
    weights, and which products and inputs of the model each reads from.
    """

    names: tuple[tuple[str, ...], ...]
    form: str

    def __str__(self) -> str:
        return printable(f"products {len(self.names)}, form {self.form[:12]}")

    __repr__ = __str__

    def renaming(self, others: ModelProducts) -> dict[str, str] | None:
        """What the values of these products are called in a model of the same ones; None where it
        is another one.
        """
        if self.form != others.form or not self.form:
            return None
        found: dict[str, str] = {}
        for mine, theirs in zip(self.names, others.names, strict=True):
            for name, other in zip(mine, theirs, strict=True):
                if found.setdefault(name, other) != other:
                    return None
        return found


def model_products(prepared: Graph) -> ModelProducts:
    """The products of a prepared graph, in order."""
    digest, names = hashlib.sha256(), list[tuple[str, ...]]()
    sources = {name: frozenset({f"input {n}"}) for n, name in enumerate(prepared.inputs)}
    products = {one.node.outputs[0]: one for one in product_channels(prepared)}
    for node in prepared.nodes:
        read = [sources.get(name, frozenset()) for name in node.inputs]
        made = frozenset[str]().union(*read)
        if node.outputs[0] in products:
            digest.update(repr((node.op.title, [sorted(one) for one in read])).encode())
            for name in node.inputs:
                if name in prepared.constants:
                    digest.update(_bits(prepared.constants[name]))
            made = frozenset({f"product {len(names)}"})
            runs = (name for name in node.inputs if name not in prepared.constants)
            names.append((*runs, *node.outputs))
        sources |= dict.fromkeys(node.outputs, made)
    outputs = [sorted(sources.get(name, ())) for name in prepared.outputs]
    digest.update(repr(outputs).encode())
    return ModelProducts(tuple(names), digest.hexdigest())


def _bits(constant: Constant) -> bytes:
    """The type and the bits of a constant; those of a splat once."""
    array = array_of(constant)
    one = array[(slice(1),) * array.ndim] if 0 in array.strides else array
    return str(type_of(constant)).encode() + np.ascontiguousarray(one).tobytes()


def _is_of_floats(graph: Graph, node: GraphNode) -> bool:
    return graph.types[node.outputs[0]].dtype == "float32"


def _summed_axes(graph: Graph, node: GraphNode) -> tuple[int, int]:
    """The axis of each of both operands that the product sums over."""
    ranks = [graph.types[name].rank for name in node.inputs[:2]]
    match node.op:
        case Conv() as conv:
            # weights [O, C, kernel...] or [kernel..., C, O]
            inner = 1 if conv.layout == "NCHW" else ranks[1] - 2
            return channel_axis(conv.data_layout, ranks[0]), inner
        case Gemm() as gemm:
            return int(not gemm.trans_a), int(gemm.trans_b)
    return ranks[0] - 1, ranks[1] - 2
