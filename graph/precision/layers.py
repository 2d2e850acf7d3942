"""The products of a model that may multiply bytes, and why others may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...runtime.model.precision_report import LayerTimes
from ...tir.sizes import largest, product_of
from ..ir.integer_sums import fills_lanes
from ..ir.ir import Graph, GraphNode
from ..ops.convolution import Conv
from ..ops.matmul import Gemm, MatMul
from ..passes.integer_products import MOST_TERMS, output_axis
from ..types import Splat, array_of

Product = MatMul | Gemm | Conv
WeightScales = Literal["channel", "tensor"]
WEIGHTS: tuple[WeightScales, ...] = ("channel", "tensor")  # what may have a scale of its own


@dataclass(frozen=True, slots=True)
class Layer:
    """A product of data and constant weights. axis: of the weights, along which its outputs lie.
    is_by_tensor: whether levels of the weights have one scale, not one for each output.
    """

    node: GraphNode
    axis: int
    is_by_tensor: bool = False

    @property
    def name(self) -> str:
        """What reports and options call it: as the model does, else by its result."""
        return self.node.name or self.node.outputs[0]

    @property
    def data(self) -> str:
        """The value that it multiplies."""
        return self.node.inputs[0]

    @property
    def weights(self) -> str:
        """The constant that it multiplies with."""
        return self.node.inputs[1]

    @property
    def scale_axis(self) -> int | None:
        """The axis of the weights along which scales of their levels lie; None: there is one."""
        return None if self.is_by_tensor else self.axis

    @property
    def result(self) -> str:
        """The value that it makes."""
        return self.node.outputs[0]


@dataclass(frozen=True, slots=True)
class KeptLayer:
    """A product that stays as it is, and why. times: where these are the reason."""

    name: str
    why: str
    times: LayerTimes | None = None


def find_layers(graph: Graph) -> tuple[tuple[Layer, ...], tuple[KeptLayer, ...]]:
    """The products of a graph that may multiply bytes, in order, and those that may not."""
    found, kept = list[Layer](), list[KeptLayer]()
    for node in _products(graph):
        layer = Layer(node, output_axis(node.op, graph.types[node.inputs[1]].rank))
        why = _why_kept(graph, layer)
        if why:
            kept.append(KeptLayer(layer.name, why))
        else:
            found.append(layer)
    return tuple(found), tuple(kept)


def _products(graph: Graph) -> Iterator[GraphNode]:
    return (node for node in graph.nodes if isinstance(node.op, Product))


def _why_kept(graph: Graph, layer: Layer) -> str:
    """Why a product stays one of floats; "" where it need not."""
    node, types = layer.node, graph.types
    if types[layer.result].dtype != "float32":
        return f"it computes {types[layer.result].dtype}"
    weights = graph.constants.get(layer.weights)
    if weights is None:
        return "a run computes what it multiplies with"
    if isinstance(weights, Splat) or not np.all(np.isfinite(array_of(weights))):
        is_splat = isinstance(weights, Splat)
        return f"its weights {'are all one number' if is_splat else 'have NaN or infinity'}"
    shape = types[layer.weights].shape
    if len(node.inputs) > 2:
        if node.inputs[2] not in graph.constants:
            return "a run computes its bias"
        if types[node.inputs[2]].elements not in (1, shape[layer.axis]):
            return "its bias is not one number for each output"
    match node.op:
        case Conv() as op if not fills_lanes(op, shape):
            few = "" if shape[1] == 1 else ", which fill no vectors"
            return f"its channels are in {op.groups} groups{few}"
        case Conv(layout="NCHW", data=None):
            terms = largest(product_of(shape[1:]))
        case Gemm(trans_a=False, beta=1.0):
            terms = largest(types[layer.data].shape[-1])
        case MatMul() if len(shape) == 2:
            terms = largest(types[layer.data].shape[-1])
        case _:
            return "it multiplies another way than rows by columns"
    if not 0 < terms <= MOST_TERMS:
        return f"sums of {terms} products may exceed int32"
    return ""
