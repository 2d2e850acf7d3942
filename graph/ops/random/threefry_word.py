"""Random bits under a key that a run is given: the generator of JAX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....tir.expr import Call, Expr
from ....tir.intrinsics import THREEFRY
from ....tir.te import te
from ...types import Array, TensorType
from ..base import refuse
from ..elementwise import Elementwise


@dataclass(frozen=True, slots=True)
class ThreefryWord(Elementwise):
    """Word 0 or 1 of what Threefry 2x32-20 (`RandomBits`) makes of a counter under a key: inputs
    are the two words of the counter and the two of the key, all uint32.
    """

    word: int = 0

    arity = (4, 4)
    takes = "integer"

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (made,) = Elementwise.infer(self, types)
        if made.dtype != "uint32":
            refuse(self, f"expected words of uint32, got {made.dtype}", code="random-words")
        return (made,)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (THREEFRY[self.word].meaning(*arrays).astype(np.uint32),)

    def element(self, *elements: Expr) -> Expr:
        words = tuple(te.cast(one, "int32") for one in elements)
        return te.cast(Call(THREEFRY[self.word], words), "uint32")
