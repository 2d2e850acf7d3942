"""Numbers that go no farther than two ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.expr import Call, Expr
from ...tir.intrinsics import MAX_ANY, MIN_ANY
from ..types import Array
from .elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class Within(Elementwise):
    """x from low to high: the end that it is beyond, and low where x is NaN. Promised for ends that
    are numbers, low no greater than high.
    """

    arity = (3, 3)
    takes = "float"
    is_of_levels = True

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, low, high = arrays
        raised = np.where(np.greater(x, low), x, low)
        return (np.where(np.less(raised, high), raised, high),)

    def element(self, *elements: Expr) -> Expr:
        x, low, high = elements
        return Call(MIN_ANY, (Call(MAX_ANY, (x, low)), high))
