"""Activations: Relu, LeakyRelu, ThresholdedRelu, Elu, AffineFunction, HardSigmoid, ScaledTanh,
Softsign, Sigmoid, Softplus, Mish, Gelu.

HardSwish is x times a HardSigmoid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.intrinsics import GELU
from ...tir.te import te
from ..types import Array, Floats
from .elementwise import Elementwise

_LINEAR = -2 * math.sqrt(2 / math.pi)  # of -2 * t
_CUBIC = 0.044715 * _LINEAR


@dataclass(frozen=True, slots=True)
class Relu(Elementwise):
    """max(x, 0), element by element."""

    arity = (1, 1)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.maximum(x, np.zeros((), x.dtype)),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.maximum(x, te.const(0, x.dtype))


@dataclass(frozen=True, slots=True)
class LeakyRelu(Elementwise):
    """x where x is not negative, else alpha * x."""

    alpha: float = 0.01

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (np.where(x < 0, x * self.alpha, x),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.select(x < 0, x * self.alpha, x)


@dataclass(frozen=True, slots=True)
class ThresholdedRelu(Elementwise):
    """x where x is not below alpha, else 0."""

    alpha: float = 1.0

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (np.where(x < self.alpha, np.zeros((), x.dtype), x),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.select(x < self.alpha, te.const(0, x.dtype), x)


@dataclass(frozen=True, slots=True)
class Elu(Elementwise):
    """x where x is not negative, else alpha * (exp(x) - 1)."""

    alpha: float = 1.0

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        with np.errstate(over="ignore"):  # of what is not taken
            return (np.where(x < 0, (np.exp(x) - 1.0) * self.alpha, x),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.select(x < 0, (te.exp(x) - 1.0) * self.alpha, x)


@dataclass(frozen=True, slots=True)
class AffineFunction(Elementwise):
    """alpha * x + beta."""

    alpha: float = 1.0
    beta: float = 0.0

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (x * self.alpha + self.beta,)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return x * self.alpha + self.beta


@dataclass(frozen=True, slots=True)
class HardSigmoid(Elementwise):
    """min(max(alpha * x + beta, 0), 1)."""

    alpha: float = 0.2
    beta: float = 0.5

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        zero, one = np.zeros((), x.dtype), np.ones((), x.dtype)
        return (np.minimum(np.maximum(x * self.alpha + self.beta, zero), one),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        line = x * self.alpha + self.beta
        return te.minimum(te.maximum(line, te.const(0, x.dtype)), te.const(1, x.dtype))


@dataclass(frozen=True, slots=True)
class ScaledTanh(Elementwise):
    """alpha * tanh(beta * x)."""

    alpha: float = 1.0
    beta: float = 1.0

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (np.tanh(x * self.beta) * self.alpha,)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.tanh(x * self.beta) * self.alpha


@dataclass(frozen=True, slots=True)
class Softsign(Elementwise):
    """x / (1 + |x|)."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        with np.errstate(all="ignore"):
            return (x / (np.absolute(x) + 1.0),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return x / (te.abs(x) + 1.0)


@dataclass(frozen=True, slots=True)
class Sigmoid(Elementwise):
    """1 / (1 + exp(-x)).

    It is good to a few ulp wherever the result is a normal number: exp(-x) is infinite only where
    the result is smaller than that, and then it is 0.
    """

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        power = np.exp(-np.absolute(x))
        return (np.where(x < 0, power, np.ones_like(x)) / (1.0 + power),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return 1.0 / (te.exp(-x) + 1.0)


@dataclass(frozen=True, slots=True)
class Softplus(Elementwise):
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which never overflows and keeps small
    results good to a few ulp.
    """

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        return (np.maximum(x, 0.0) + np.log1p(np.exp(-np.absolute(x))),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.maximum(x, 0.0) + te.log1p(te.exp(-te.abs(x)))


@dataclass(frozen=True, slots=True)
class Mish(Elementwise):
    """x * tanh(log(1 + exp(x))) (D. Misra, "Mish: A Self Regularized Non-Monotonic Activation
    Function", 2019).

    With e = exp(x) the factor is n / (n + 2), n = e * (e + 2): no sum cancels. It is 1 in float32
    and in float64 from x = 20 on, up to which e is computed.
    """

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        with np.errstate(all="ignore"):
            return (x * np.tanh(np.log1p(np.exp(np.minimum(x, 40.0)))),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        e = te.exp(te.minimum(x, 20.0))
        n = e * (e + 2.0)
        return x * (n / (n + 2.0))


@dataclass(frozen=True, slots=True)
class Gelu(Elementwise):
    """x * (1 + erf(x / sqrt 2)) / 2; or its approximation x * (1 + tanh(t)) / 2 with
    t = sqrt(2 / pi) * (x + 0.044715 * x**3).

    Where x is negative the sums cancel: written so, nothing would be left of the exact one in
    float32 below x = -5.5, where it is -1e-7. So it is a function of the language, and the
    approximation is x / (1 + exp(-2 * t)), the same without the cancellation.
    """

    approximate: bool = False

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        if self.approximate:
            with np.errstate(over="ignore"):
                return (x / (np.exp(x * (x * x * _CUBIC + _LINEAR)) + 1.0),)
        return (GELU.meaning(x),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        if self.approximate:
            return x / (te.exp(x * (x * x * _CUBIC + _LINEAR)) + 1.0)
        return te.gelu(x)
