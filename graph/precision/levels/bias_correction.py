"""Take from biases what rounding weights adds to the mean of a product.

The mean of sum (w + d) x is that of sum w x, and d times the mean of x: what the rounding errors d
of the weights add is known before a run (M. Nagel et al., Data-Free Quantization Through Weight
Equalization and Bias Correction, 2019). At borders that are padded it is not exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ir.ir import Graph, GraphNode
from ...ops.arithmetic import Add
from ...ops.convolution import Conv
from ...passes.exchange import only_reader
from ...types import Array, Floats, array_of
from ..layers import Layer
from .spelled_levels import weight_levels

Corrected = dict[tuple[str, int], Array]  # operands of nodes, by result and place


def corrected_biases(
    graph: Graph, layers: Iterable[Layer], means: Mapping[str, NDArray[np.float32]]
) -> Corrected:
    """The constants that are added to the results of layers, less what rounding adds to their mean.

    means: of each channel of the data, by value. A layer without such a constant has none here.
    """
    consumers = graph.consumers
    found: Corrected = {}
    for layer in layers:
        bias = _bias(graph, layer, consumers)
        if bias is None or layer.data not in means:
            continue
        node, place = bias
        value = array_of(graph.constants[node.inputs[place]]).astype(np.float64)
        added = _added(graph, layer, means[layer.data])
        found[node.outputs[0], place] = (value - added.reshape(value.shape)).astype(np.float32)
    return found


def _added(graph: Graph, layer: Layer, mean: NDArray[np.float32]) -> NDArray[np.float64]:
    """What rounding its weights adds to the mean of each output of a layer."""
    weights = cast(Floats, array_of(graph.constants[layer.weights]))
    levels, scales = weight_levels(weights, layer.scale_axis)
    errors = levels * scales.astype(np.float64) - weights
    by_output = np.moveaxis(errors, layer.axis, 0)
    sums = by_output.reshape(*by_output.shape[:2], -1).sum(axis=2)
    groups = layer.node.op.groups if isinstance(layer.node.op, Conv) else 1
    outputs, channels = sums.shape
    parts = sums.reshape(groups, outputs // groups, channels)
    added = parts @ mean.astype(np.float64).reshape(groups, channels, 1)
    return cast(NDArray[np.float64], added.reshape(outputs))


def _bias(
    graph: Graph, layer: Layer, consumers: Mapping[str, list[GraphNode]]
) -> tuple[GraphNode, int] | None:
    """The constant with a number for each output that is added to a result: the node that adds it,
    and which of its operands it is.
    """
    outputs = graph.types[layer.weights].shape[layer.axis]
    node, place = layer.node, 2
    if len(node.inputs) < 3:
        after = only_reader(graph, layer.result, consumers)
        if after is None or not isinstance(after.op, Add):
            return None
        node, place = after, 1 - after.inputs.index(layer.result)
        if graph.types[node.outputs[0]] != graph.types[layer.result]:
            return None
        if graph.types[node.inputs[place]].shape[-1:] != (outputs,):
            return None
    value = node.inputs[place]
    if value not in graph.constants or graph.types[value].elements != outputs:
        return None
    return node, place
