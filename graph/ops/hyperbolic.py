"""Hyperbolic functions and their inverses: Sinh, Cosh, Asinh, Acosh, Atanh.

How exact they are stands at their namesakes in tir/te/functions.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.te import te
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class Sinh(Elementwise):
    """The hyperbolic sine; infinite where exp(|x|) is."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.sinh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.sinh(*elements)


@dataclass(frozen=True, slots=True)
class Cosh(Elementwise):
    """The hyperbolic cosine; infinite where exp(|x|) is."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.cosh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.cosh(*elements)


@dataclass(frozen=True, slots=True)
class Asinh(Elementwise):
    """The number whose hyperbolic sine is x."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arcsinh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.asinh(*elements)


@dataclass(frozen=True, slots=True)
class Acosh(Elementwise):
    """The number of 0 or more whose hyperbolic cosine is x; NaN where x < 1."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arccosh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.acosh(*elements)


@dataclass(frozen=True, slots=True)
class Atanh(Elementwise):
    """The number whose hyperbolic tangent is x; NaN where |x| > 1."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.arctanh(*arrays),)

    def element(self, *elements: Expr) -> Expr:
        return te.atanh(*elements)
