"""Random bits of a counter-based generator: no state, so that an element of a result is a function
of its own index, in whatever order, on however many threads and on whichever target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....tir.expr import Expr
from ....tir.intrinsics import THREEFRY
from ....tir.te import te
from ...types import Array, TensorType
from ..base import refuse
from ..elementwise import Elementwise

_INDICES = ("int32", "int64", "uint32", "uint64")
_LOW = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class RandomBits(Elementwise):
    """The upper `bits` bits, 31 at most, of a random word for each index, as an int32 of 0 or more.

    It is word 0 or 1 of what Threefry 2x32-20 makes of the index as a counter of 64 bits and `key`,
    an integer of 64 bits: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random
    numbers: as easy as 1, 2, 3 (SC 2011). Words and keys are independent of each other.
    """

    key: int = 0
    word: int = 0
    bits: int = 31

    arity = (1, 1)
    takes = "integer"

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (index,) = Elementwise.infer(self, types)
        if index.dtype not in _INDICES:
            refuse(self, f"expected an index of 32 or 64 bits, got {index}", code="random-index")
        return (TensorType("int32", index.shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (index,) = arrays
        counter = index.astype(f"uint{8 * index.dtype.itemsize}").astype(np.uint64)
        words = (counter & _LOW, counter >> 32, self.key & _LOW, self.key >> 32)
        found = THREEFRY[self.word].meaning(*(np.asarray(x).astype(np.uint32) for x in words))
        return ((found.astype(np.uint32) >> np.uint32(32 - self.bits)).astype(np.int32),)

    def element(self, *elements: Expr) -> Expr:
        (index,) = elements
        found = te.threefry(index, self.key, self.word)
        return found >> 32 - self.bits & (1 << self.bits) - 1
