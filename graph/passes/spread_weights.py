"""Constant weights that levels of few bits stand for, as a graph spells them: three arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Mul, Sub
from ..ops.functions import Cast
from ..ops.movement import Identity, Reshape, Transpose
from ..ops.repetition import Expand
from ..ops.slicing import Slice
from ..reference.reference import apply
from ..types import Array, Floats, array_of
from .levels import NARROW

_BITS = (2, 4, 8)  # in which levels are stored
_MOVES = (Identity, Reshape, Transpose)
_SMALL = (Cast, Expand, Slice, *_MOVES)  # that make scales and zeros as wide as levels


def has_narrow_constants(graph: Graph) -> bool:
    """Whether a graph has constant integers of at most 8 bits."""
    return any(graph.types[name].dtype in NARROW for name in graph.constants)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadWeights:
    """Constant weights (levels - zeros) * scales, three arrays of one shape."""

    levels: Array
    zeros: Array
    scales: Array

    def moved(self, node: GraphNode) -> SpreadWeights:
        """The same behind an operator that moves elements."""
        moved = (apply(node.op, array)[0] for array in (self.levels, self.zeros, self.scales))
        return SpreadWeights(*moved)


class SpreadReader:
    """Finds such weights in a graph whose constants are not folded."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._makers: Mapping[str, GraphNode] = graph.producers

    def spread(self, value: str) -> SpreadWeights | None:
        """What a constant number stands for; None where it is spelled otherwise."""
        node, types = self._makers.get(value), self._graph.types
        match node:
            case GraphNode(op=Reshape() | Transpose() | Identity()):
                inner = self.spread(node.inputs[0])
                return None if inner is None else inner.moved(node)
            case GraphNode(op=Cast()) if types[node.inputs[0]].dtype == "float32":
                return self.spread(node.inputs[0])
            case GraphNode(op=Mul()):
                for centred, other in (node.inputs, node.inputs[::-1]):
                    if (pair := self._centred(centred)) is None:
                        continue
                    scales, shape = self._constant(other), pair[0].shape
                    plain = scales is not None and scales.dtype == np.float32
                    if plain and types[value].shape == shape:
                        return SpreadWeights(*pair, np.broadcast_to(cast(Floats, scales), shape))
                return None
        pair = self._centred(value)
        if pair is None:
            return None
        ones = np.broadcast_to(np.float32(1), pair[0].shape)  # what follows scales
        return SpreadWeights(*pair, ones)

    def _centred(self, value: str) -> tuple[Array, Array] | None:
        """Levels, and the zeros that are subtracted from them, of one shape."""
        node = self._makers.get(value)
        if node is not None and isinstance(node.op, Sub):
            levels, zeros = self._levels(node.inputs[0]), self._constant(node.inputs[1])
            if levels is None or zeros is None or self._graph.types[value].shape != levels.shape:
                return None
            return levels, np.broadcast_to(zeros, levels.shape)
        levels = self._levels(value)
        return None if levels is None else (levels, np.broadcast_to(np.float32(0), levels.shape))

    def _levels(self, value: str) -> Array | None:
        """Constant narrow integers, as float32 in the graph, perhaps moved."""
        node = self._makers.get(value)
        if node is None or not isinstance(node.op, Cast) or node.op.to != "float32":
            return None
        source = node.inputs[0]
        return self._constant(source) if self._graph.types[source].dtype in NARROW else None

    def _constant(self, value: str) -> Array | None:
        """A constant, perhaps moved, repeated or converted."""
        if value in self._graph.constants:
            return array_of(self._graph.constants[value])
        node = self._makers.get(value)
        if node is None or not isinstance(node.op, _SMALL) or len(node.inputs) != 1:
            return None
        source = self._constant(node.inputs[0])
        return None if source is None else apply(node.op, source)[0]


def stored_levels(levels: Array, zeros: Array) -> tuple[int, Array, Array] | None:
    """In how many bits levels are stored, as numbers from 0 on, and their zeros; None where these
    are no integers that a byte holds.
    """
    wide, whole = levels.astype(np.int16), zeros.astype(np.int16)
    if not np.array_equal(whole, zeros):
        return None
    low, high = int(wide.min()), int(wide.max())
    for bits in _BITS:
        offset = 0 if low >= 0 else 1 << (bits - 1)
        if low + offset >= 0 and high + offset < 1 << bits:
            moved = whole + offset
            fits = moved.min() >= 0 and moved.max() <= 255
            return (bits, (wide + offset).astype(np.uint8), moved) if fits else None
    return None


def equal_rows(scales: Array, zeros: Array, in_word: int) -> int:
    """The length of the longest blocks of rows in which scales and zeros stay the same; 0 where
    they are no whole words.
    """
    differs = np.any(scales[1:] != scales[:-1], axis=1) | np.any(zeros[1:] != zeros[:-1], axis=1)
    changes = np.flatnonzero(differs) + 1
    if not changes.size:
        return -(-len(scales) // in_word) * in_word
    group = math.gcd(*map(int, changes))
    return 0 if group % in_word else group
