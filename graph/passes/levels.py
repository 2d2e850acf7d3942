"""Integers that stand for floating-point numbers: (levels - zero) * scale, as a graph spells it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tir.sizes import largest
from ..ir.ir import Graph, GraphNode
from ..ops.arithmetic import Add, Div, Mul, Sub
from ..ops.functions import Cast, Round
from ..ops.movement import Reshape, Transpose
from ..reference.reference import apply
from ..types import Array, array_of

Scales = NDArray[np.float32]
Zeros = NDArray[np.int32]

_MOST_NUMBERS = 1 << 16  # of scales and zeros
NARROW = ("int8", "uint8", "int4", "uint4", "int2", "uint2")
_WHOLE = (*NARROW, "int32")
WORDS = (*_WHOLE, "int16")


@dataclass(frozen=True, slots=True)
class Levels:
    """A float32 that is (value - zero) * scale. value: integers; zero: integers, or what they are
    as float32, "" for 0.
    """

    value: str
    scale: str
    zero: str


@dataclass(frozen=True, slots=True)
class KnownLevels:
    """The same whose scale and zero are constants.

    order: how the axes of `value` are permuted, None for not; scale, zero: with as many axes, after
    that.
    """

    value: str
    order: tuple[int, ...] | None
    scale: Scales
    zero: Zeros


@dataclass(frozen=True, slots=True)
class RoundedLevels:
    """Levels to which a float32 is rounded: saturate(round(source / scale) + zero), or, where
    `is_inverse`, saturate(round(source * scale) + zero).

    inside: the values on the way, the nearest to the levels first.
    """

    source: str
    scale: str
    zero: str
    inside: tuple[str, ...]
    is_inverse: bool = False


class LevelReader:
    """Finds levels in a graph whose constants are not folded. kinds: the types of levels."""

    def __init__(self, graph: Graph, kinds: Collection[str] = _WHOLE) -> None:
        self.graph = graph
        self.kinds = kinds
        self.makers: Mapping[str, GraphNode] = graph.producers

    def known(self, value: str) -> Array | None:
        """The few numbers of a constant, or of one that is converted, reshaped or permuted; None
        for what is none, and for more.
        """
        if largest(self.graph.types[value].elements) > _MOST_NUMBERS:
            return None
        if value in self.graph.constants:
            return array_of(self.graph.constants[value])
        node = self.makers.get(value)
        if node is None or not isinstance(node.op, Cast | Reshape | Transpose):
            return None
        source = self.known(node.inputs[0])
        return None if source is None else apply(node.op, source)[0]

    def zeros(self, value: str) -> Zeros | None:
        """The known numbers that stand for 0, levels too; None for others. value: "" for 0."""
        found = self.known(value) if value else np.zeros((), np.int32)
        if found is None:
            return None
        with np.errstate(invalid="ignore"):  # NaN becomes some integer, which it does not equal
            whole = found.astype(np.int32)
        most = 2**15 if "int16" in self.kinds else 255
        return whole if np.array_equal(whole, found) and np.all(np.abs(whole) <= most) else None

    def levels(self, value: str) -> Levels | None:
        """What a float32 stands for; None where it is spelled otherwise."""
        node, types = self.makers.get(value), self.graph.types
        if node is None or not isinstance(node.op, Mul) or types[value].dtype != "float32":
            return None
        for centred, scale in (node.inputs, node.inputs[::-1]):
            found = self._centred(centred)
            if found is not None and types[value] == types[centred]:
                return Levels(found[0], scale, found[1])
        return None

    def known_levels(self, value: str) -> KnownLevels | None:
        """The same where scale and zero are constants, perhaps with the axes permuted."""
        node = self.makers.get(value)
        if node is not None and isinstance(node.op, Transpose):
            inner = self.known_levels(node.inputs[0])
            if inner is None or inner.order is not None:
                return None
            order = node.op.permutation
            scale, zero = inner.scale.transpose(order), inner.zero.transpose(order)
            return KnownLevels(inner.value, order, scale, zero)
        found = self.levels(value)
        if found is None:
            return None
        scales, zeros = self.known(found.scale), self.zeros(found.zero)
        if scales is None or zeros is None:
            return None
        rank = self.graph.types[value].rank
        aligned = [
            array.reshape((1,) * (rank - array.ndim) + array.shape) for array in (scales, zeros)
        ]
        return KnownLevels(
            found.value, None, aligned[0].astype(np.float32), aligned[1].astype(np.int32)
        )

    def rounded(self, value: str) -> RoundedLevels | None:
        """How bytes are made of floats; None where it is spelled otherwise."""
        node, zero, inside = self.makers.get(value), "", list[str]()
        if node is None or not isinstance(node.op, Cast) or node.op.to not in ("int8", "uint8"):
            return None
        inside += node.inputs
        node = self.makers.get(inside[-1])
        if node is not None and isinstance(node.op, Add):
            inside.append(node.inputs[0])
            zero, node = self._whole(node.inputs[1]), self.makers.get(node.inputs[0])
        if node is None or not isinstance(node.op, Round):
            return None
        inside += node.inputs
        node = self.makers.get(inside[-1])
        match node:
            case GraphNode(op=Div(), inputs=(source, scale)):
                return RoundedLevels(source, scale, zero, tuple(inside))
            case GraphNode(op=Mul(), inputs=(source, scale)) if scale in self.graph.constants:
                return RoundedLevels(source, scale, zero, tuple(inside), is_inverse=True)
        return None

    def _centred(self, value: str) -> tuple[str, str] | None:
        """Integers as floats, perhaps less their zero: the integers, and the zero."""
        node, zero = self.makers.get(value), ""
        if node is not None and isinstance(node.op, Sub):
            value, zero = node.inputs
            node = self.makers.get(value)
        if node is None or not self._is_widened(node):
            return None
        return node.inputs[0], self._whole(zero)

    def _whole(self, zero: str) -> str:
        """The integers that a zero was before it became a float32; itself where it was none."""
        node = self.makers.get(zero)
        return node.inputs[0] if node is not None and self._is_widened(node) else zero

    def _is_widened(self, node: GraphNode) -> bool:
        return isinstance(node.op, Cast) and self.graph.types[node.inputs[0]].dtype in self.kinds


def has_bytes(graph: Graph) -> bool:
    """Whether a graph has integers of at most 8 bits."""
    return any(type_.dtype in NARROW for type_ in graph.types.values())
