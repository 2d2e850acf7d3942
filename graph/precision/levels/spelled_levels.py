"""Levels as a graph spells them: bytes made of numbers, and the numbers that bytes stand for.

    x * w   ->   ((q - z) * r) * (v * s),   q = saturate(round(x * (1 / r)) + z),  v = round(w / s)

as ONNX's QuantizeLinear and DequantizeLinear have it, but that these divide, which takes a
processor ten times as long. q is uint8 with one scale r and one zero z; v is int8 with a scale for
each output, or one for all, without a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ir.build import GraphBuilder
from ...ir.ir import Graph
from ...ops.arithmetic import Add, Mul, Sub
from ...ops.base import Operator
from ...ops.functions import Cast, Round
from ...passes.levels import Scales
from ...types import Constant, Floats, Splat, array_of, owned
from ..layers import Layer

LEVELS = 255  # from the smallest to the largest uint8
_WEIGHTS = 127  # the largest level of weights; -128 is left out, as it has no opposite

WholeWeights = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class LevelScale:
    """What uint8 levels stand for: (level - zero) * step."""

    step: np.float32
    zero: int

    @staticmethod
    def of(low: float, high: float) -> LevelScale:
        """The scale of a range, to which 0 is added: that of ONNX's DynamicQuantizeLinear."""
        least, most = np.float32(min(low, 0.0)), np.float32(max(high, 0.0))
        step = np.float32((most - least) / np.float32(LEVELS))
        if not step > 0:
            return LevelScale(np.float32(1), 0)
        return LevelScale(step, int(np.clip(np.rint(-least / step), 0, LEVELS)))

    @property
    def low(self) -> np.float32:
        """What the level 0 stands for."""
        return np.float32(-self.zero) * self.step

    @property
    def high(self) -> np.float32:
        """What the level 255 stands for."""
        return np.float32(LEVELS - self.zero) * self.step


class LevelSpeller:
    """Adds levels to a graph under construction; weights that several layers share once."""

    def __init__(self, graph: Graph, builder: GraphBuilder) -> None:
        self._graph = graph
        self._builder = builder
        self._weights: dict[tuple[str, int | None], str] = {}

    def number(self, source: str, scale: LevelScale, name: str) -> str:
        """The float32 that the levels of a value stand for; name: what they are called after."""
        step = self._number(f"{name}.step", scale.step)
        inverse = self._number(f"{name}.inverse", np.float32(1) / scale.step)
        zero = self._number(f"{name}.zero", np.float32(scale.zero)) if scale.zero else ""
        levels = self.add(Round(), self.add(Mul(), source, inverse, of=name), of=name)
        if zero:
            levels = self.add(Add(), levels, zero, of=name)
        levels = self.add(Cast("uint8"), levels, of=name)
        number = self.add(Cast("float32"), levels, of=name)
        if zero:
            number = self.add(Sub(), number, zero, of=name)
        return self.add(Mul(), number, step, of=name)

    def weights(self, layer: Layer) -> str:
        """The float32 that the levels of the weights of a layer stand for."""
        key = name, axis = layer.weights, layer.scale_axis
        if key not in self._weights:
            levels, scales = weight_levels(
                cast(Floats, array_of(self._graph.constants[name])), axis
            )
            number = self.add(Cast("float32"), self.table(f"{name}.levels", owned(levels)), of=name)
            scale = self.table(f"{name}.scales", owned(scales))
            self._weights[key] = self.add(Mul(), number, scale, of=name)
        return self._weights[key]

    def add(self, op: Operator, *inputs: str, of: str) -> str:
        """A node whose value is called after another one."""
        name = self._builder.fresh(f"{of}.{op.title.lower()}")
        return self._builder.add(op, *inputs, output=name, name=of)

    def _number(self, name: str, number: np.float32) -> str:
        return self.table(name, Splat(float(number), "float32", ()))

    def table(self, name: str, value: Constant) -> str:
        """A constant, by a name that no other value has."""
        return self._builder.constant(self._builder.fresh(name), value)


def weight_levels(weights: Floats, axis: int | None) -> tuple[WholeWeights, Scales]:
    """Weights as int8 from -127 to 127, and the scale of each output, which lie along `axis`, or
    one of all where that is None, with as many axes.
    """
    others = tuple(n for n in range(weights.ndim) if n != axis)
    peaks = np.max(np.abs(weights), axis=others, keepdims=True).astype(np.float32)
    scale = peaks / np.float32(_WEIGHTS)
    scale[~(scale > 0)] = 1
    levels = np.clip(np.rint(weights / scale), -_WEIGHTS, _WEIGHTS).astype(np.int8)
    return levels, scale
