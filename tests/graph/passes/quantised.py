"""Quantised networks for tests of passes, as QuantizeLinear and DequantizeLinear spell them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Sub
from tilewright.graph.ops.functions import Cast, Round
from tilewright.graph.types import Array, Splat, TensorType, owned


class Quantised(GraphBuilder):
    """A builder that writes numbers as levels, and levels as numbers."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__("net")
        self.generator = np.random.default_rng(seed)

    def bytes_of(self, name: str, dtype: str, *shape: int) -> str:
        """Constant bytes of their whole range."""
        ends = ml_dtypes.iinfo(dtype)
        drawn = self.generator.integers(int(ends.min), int(ends.max) + 1, shape)
        return self.constant(name, owned(drawn.astype(dtype)))

    def number(self, value: float, dtype: str = "float32") -> str:
        return self.constant(self.fresh("number"), Splat(value, dtype, ()))

    def array(self, numbers: Array) -> str:
        return self.constant(self.fresh("array"), owned(np.ascontiguousarray(numbers)))

    def real(self, levels: str, scale: str, zero: str = "") -> str:
        """(levels - zero) * scale; zero: integers."""
        value = self.add(Cast("float32"), levels)
        if zero:
            value = self.add(Sub(), value, self.add(Cast("float32"), zero))
        return self.add(Mul(), value, scale)

    def levels(self, x: str, scale: str, zero: str, dtype: str = "uint8", output: str = "") -> str:
        """saturate(round(x / scale) + zero)."""
        value = self.add(Round(), self.add(Div(), x, scale))
        value = self.add(Add(), value, self.add(Cast("float32"), zero))
        return self.add(Cast(dtype), value, output=output)

    def quantised_input(self, *shape: int, dtype: str = "uint8", zero: int = 7) -> tuple[str, str]:
        """An input as levels, and the number that these stand for."""
        x = self.input("x", TensorType("float32", shape))
        scale, zero_ = self.number(0.03), self.number(zero, dtype)
        levels = self.levels(x, scale, zero_, dtype)
        return levels, self.real(levels, scale, zero_)
