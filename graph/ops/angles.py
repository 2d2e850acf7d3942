"""Functions of angles and their inverses: Sin, Cos, Tan, Asin, Acos, Atan.

How exact they are stands at their namesakes in tir/te/functions.py.
"""

from __future__ import annotations

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
