"""Factors of channels under which levels of one scale stand for numbers and weights better.

Cross-layer equalisation needs weights alone (M. Nagel et al., Data-Free Quantization Through Weight
Equalization and Bias Correction, 2019); SmoothQuant, for products behind normalisations, what their
data were (G. Xiao et al., SmoothQuant, 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ir.ir import Graph, GraphNode
from ...ops.convolution import Conv
from ...ops.matmul import Gemm
from ...types import Floats, array_of
from .channel_factors import Doubles, Factors, is_weighted, maker_of, readers_of

_ROUNDS = 20
_MOST = 1e4  # times a channel may grow, or shrink
_LEAST_QUANTILE = 0.1  # of the factors of SmoothQuant: smaller ones are that


@dataclass(frozen=True, slots=True)
class _Pair:
    """A value that one product makes and products alone read."""

    value: str
    maker: GraphNode
    readers: tuple[GraphNode, ...]


def equalised_factors(graph: Graph) -> Factors:
    """Factors under which each channel between two products has weights as large on either side.

    Of values that a product makes, through bounds below and pools, and that only products read.
    """
    pairs = list(_pairs(graph))
    made = {pair.maker.outputs[0]: pair for pair in pairs}
    nodes = {node.outputs[0]: node for pair in pairs for node in (pair.maker, *pair.readers)}
    sizes = {name: _magnitudes(graph, node) for name, node in nodes.items()}
    factors = {pair.value: np.ones(sizes[name].shape[0]) for name, pair in made.items()}
    for _ in range(_ROUNDS):
        for name, pair in made.items():
            before = sizes[name].max(axis=1)
            heights = [_by_input(sizes[node.outputs[0]], node) for node in pair.readers]
            behind = np.max(heights, axis=0)
            both = (before > 0) & (behind > 0)
            step = np.ones(before.shape)
            step[both] = np.sqrt(before[both] / behind[both])
            step = np.clip(step * factors[pair.value], 1 / _MOST, _MOST) / factors[pair.value]
            factors[pair.value] = factors[pair.value] * step
            sizes[name] = sizes[name] / step[:, None]
            for node in pair.readers:
                sizes[node.outputs[0]] = _with_inputs(sizes[node.outputs[0]], node, step)
    return {value: one.astype(np.float32) for value, one in factors.items() if np.any(one != 1)}


def smoothing_factors(
    graph: Graph, peaks: Mapping[str, NDArray[np.float32]], alpha: float
) -> Factors:
    """Factors that move the peaks of the data of matrix products to their weights: for a channel
    of the largest magnitude a and weights of at most w, a^alpha / w^(1 - alpha).

    peaks: the largest magnitude of each channel, by value.
    """
    found = {}
    for value, peak in peaks.items():
        products, _ = readers_of(graph, value)
        if not products or any(isinstance(node.op, Conv) for node in products):
            continue
        heights = [_by_input(_magnitudes(graph, node), node) for node in products]
        weights = np.max(heights, axis=0)
        both = (peak > 0) & (weights > 0)
        if not both.any():
            continue
        factors = np.ones(peak.shape)
        factors[both] = peak[both].astype(np.float64) ** alpha / weights[both] ** (1 - alpha)
        least = np.quantile(factors[both], _LEAST_QUANTILE)
        factors[both] = np.clip(factors[both], least, least * _MOST)
        factors[~both] = least
        found[value] = factors.astype(np.float32)
    return found


def _pairs(graph: Graph) -> list[_Pair]:
    found = []
    for value, type_ in graph.types.items():
        if value in graph.constants or type_.dtype != "float32":
            continue
        products, others = readers_of(graph, value)
        maker = maker_of(graph, value) if products and not others else None
        if maker is not None:
            found.append(_Pair(value, maker, tuple(products)))
    return found


def _magnitudes(graph: Graph, node: GraphNode) -> Doubles:
    """The largest magnitude of the weights of each output and input, [outputs, inputs]; of a
    convolution of groups the inputs of the group.
    """
    assert is_weighted(graph, node)
    array = np.abs(cast(Floats, array_of(graph.constants[node.inputs[1]])).astype(np.float64))
    if isinstance(node.op, Conv):
        return cast(Doubles, array.reshape(*array.shape[:2], -1).max(axis=2))
    return array if isinstance(node.op, Gemm) and node.op.trans_b else array.T


def _by_input(size: Doubles, node: GraphNode) -> Doubles:
    """The largest magnitude of the weights of each input of a product."""
    return cast(Doubles, size.reshape(_groups(node), -1, size.shape[1]).max(axis=1).reshape(-1))


def _with_inputs(size: Doubles, node: GraphNode, factors: Doubles) -> Doubles:
    """Magnitudes of weights whose inputs are multiplied with factors."""
    groups = _groups(node)
    return size * np.repeat(factors.reshape(groups, -1), size.shape[0] // groups, axis=0)


def _groups(node: GraphNode) -> int:
    return node.op.groups if isinstance(node.op, Conv) else 1
