"""Functions of one number: Abs, Sign, Sqrt, Exp, Expm1, Log, Log1p, Tanh, Erf, Erfc, Floor, Ceil,
Round, Cast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...tir.dtype import dtype as as_dtype
from ...tir.expr import Expr
from ...tir.intrinsics import ERF
from ...tir.reference.arithmetic import convert_array
from ...tir.te import te
from ..types import Array, TensorType, numpy_type
from .base import check_arity
from .elementwise import Elementwise

_NO_ROOM = 1e-20  # erfc of less is 1, and a quotient of two that small may have no digits
_ENDS = 30.0  # beyond, erfc is 2 or 0


@dataclass(frozen=True, slots=True)
class Abs(Elementwise):
    """The magnitude; that of the least integer wraps around to itself."""

    arity = (1, 1)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.absolute(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.abs(*elements)


@dataclass(frozen=True, slots=True)
class Sign(Elementwise):
    """1 for a positive number, -1 for a negative one, else x itself, which is 0 or NaN."""

    arity = (1, 1)
    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.sign(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.sign(*elements)


@dataclass(frozen=True, slots=True)
class Sqrt(Elementwise):
    """The square root; NaN of a negative number."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.sqrt(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.sqrt(*elements)


@dataclass(frozen=True, slots=True)
class Exp(Elementwise):
    """e to the power x."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.exp(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.exp(*elements)


@dataclass(frozen=True, slots=True)
class Log(Elementwise):
    """The natural logarithm; NaN of a negative number, -inf of 0."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.log(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.log(*elements)


@dataclass(frozen=True, slots=True)
class Expm1(Elementwise):
    """exp(x) - 1, also where x is small."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.expm1(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.expm1(*elements)


@dataclass(frozen=True, slots=True)
class Log1p(Elementwise):
    """log(1 + x), also where x is small; NaN where x < -1, -inf of -1."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.log1p(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.log1p(*elements)


@dataclass(frozen=True, slots=True)
class Tanh(Elementwise):
    """The hyperbolic tangent."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.tanh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.tanh(*elements)


@dataclass(frozen=True, slots=True)
class Erf(Elementwise):
    """The error function."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (ERF.meaning(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.erf(*elements)


@dataclass(frozen=True, slots=True)
class Erfc(Elementwise):
    """1 - erf(x), also where that cancels: 2 * gelu(z) / z with z = -x * sqrt 2, of which the
    rounding costs 2 * x**2 places.
    """

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.vectorize(math.erfc, otypes=[np.float64])(x).astype(x.dtype),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        within = te.minimum(te.maximum(x, -_ENDS), _ENDS)  # of which there is a quotient
        z = within * -math.sqrt(2.0)
        small = te.abs(x) < _NO_ROOM
        return te.select(small, te.const(1, x.dtype), te.gelu(z) * 2.0 / z)


@dataclass(frozen=True, slots=True)
class Floor(Elementwise):
    """The largest integer that is not above x."""

    arity = (1, 1)
    takes = "float"
    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.floor(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.floor(*elements)


@dataclass(frozen=True, slots=True)
class Ceil(Elementwise):
    """The smallest integer that is not below x."""

    arity = (1, 1)
    takes = "float"
    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.ceil(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return -te.floor(-x)


@dataclass(frozen=True, slots=True)
class Round(Elementwise):
    """The nearest integer, ties to even."""

    arity = (1, 1)
    takes = "float"
    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.rint(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.round(*elements)


@dataclass(frozen=True, slots=True)
class Cast(Elementwise):
    """The same numbers in element type `to`.

    A float becomes an integer by truncation towards zero, the nearest one that the type has, and 0
    for NaN; another float as the language has it. To bool: whether it is not 0.
    """

    to: str

    arity = (1, 1)
    takes = "any"

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        return (TensorType(self.to, types[0].shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        with np.errstate(all="ignore"):
            return (convert_array(x, numpy_type(self.to)),)

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        return 0

    def at_precision(self, dtype: str) -> Cast:
        return Cast(dtype) if as_dtype(self.to).is_float else self

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.cast(x, self.to)
