"""Mod: what is left of a quotient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.intrinsics import FMOD
from ...tir.te import te
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class Mod(Elementwise):
    """a - b * q, where q is a / b rounded down, so that it has the sign of b, or towards 0
    (`truncated`), so that it has that of a. Of integers it is 0 for a divisor of 0. Of floats it
    is exact but for one rounding of what has the sign of b; as in te.fmod, float64 has none where
    |a / b| > 2**96.
    """

    truncated: bool = False

    decides = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        with np.errstate(all="ignore"):
            if not np.issubdtype(a.dtype, np.floating):
                return ((np.fmod if self.truncated else np.remainder)(a, b),)
            left = FMOD.meaning(a, b)
            if self.truncated:
                return (left,)
            other = np.not_equal(left, 0) & np.not_equal(np.less(left, 0), np.less(b, 0))
            return (np.where(other, np.add(left, b), left).astype(a.dtype),)

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        if not a.dtype.is_float:
            return self._of_integers(a, b)
        left = te.fmod(a, b)
        if self.truncated:
            return left
        other = te.all_of(te.ne(left, 0.0), te.ne(left < 0.0, b < 0.0))
        return te.select(other, left + b, left)

    def _of_integers(self, a: Expr, b: Expr) -> Expr:
        left = a % b
        if not self.truncated or str(a.dtype).startswith("uint"):
            return left
        other = te.all_of(te.ne(left, 0), te.ne(a < 0, b < 0))
        return te.select(other, left - b, left)
