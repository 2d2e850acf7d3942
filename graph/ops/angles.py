"""Functions of angles and their inverses: Sin, Cos, Tan, Asin, Acos, Atan, Atan2.

How exact they are stands at their namesakes in tir/te/functions.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.intrinsics import COS, SIN
from ...tir.te import te
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class Sin(Elementwise):
    """The sine; NaN where |x| > 32768, where te.sin has no digits."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (SIN.meaning(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.sin(*elements)


@dataclass(frozen=True, slots=True)
class Cos(Elementwise):
    """The cosine; NaN where |x| > 32768."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (COS.meaning(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.cos(*elements)


@dataclass(frozen=True, slots=True)
class Tan(Elementwise):
    """The tangent; NaN where |x| > 32768."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.divide(SIN.meaning(*arrays), COS.meaning(*arrays)),)

    def element(self, *elements: Expr) -> Expr:
        return te.tan(*elements)


@dataclass(frozen=True, slots=True)
class Asin(Elementwise):
    """The angle between -pi/2 and pi/2 whose sine is x; NaN where |x| > 1."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arcsin(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.asin(*elements)


@dataclass(frozen=True, slots=True)
class Acos(Elementwise):
    """The angle between 0 and pi whose cosine is x; NaN where |x| > 1."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arccos(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.acos(*elements)


@dataclass(frozen=True, slots=True)
class Atan(Elementwise):
    """The angle between -pi/2 and pi/2 whose tangent is x."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arctan(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.atan(*elements)


@dataclass(frozen=True, slots=True)
class Atan2(Elementwise):
    """The angle of the point (x, y) from the axis of x, between -pi and pi; inputs are y and x.

    Zeros have signs: of y = -0 it is -0, or -pi where x is negative, or -0, too.
    """

    takes = "float"
    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arctan2(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        y, x = elements
        up, right = te.abs(y), te.abs(x)
        steep = right < up
        low, high = te.select(steep, right, up), te.select(steep, up, right)
        # of equal ones, which may both be infinite, and of two zeros, no quotient is asked
        same = te.select(te.eq(high, 0.0), te.const(0, x.dtype), te.const(1, x.dtype))
        slope = te.atan(te.select(te.eq(low, high), same, low / high))
        angle = te.select(steep, math.pi / 2 - slope, slope)
        turned = te.select(_is_negative(x), math.pi - angle, angle)
        return te.select(_is_negative(y), -turned, turned)


def _is_negative(x: Expr) -> Expr:
    """Whether the sign of a number is: 1 / x has it where x is 0."""
    return te.any_of(x < 0.0, 1.0 / x < 0.0)
