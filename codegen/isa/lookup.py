"""Vectors of numbers that depend on a few bits of a word alone, read from a table that lies in one
register.

AVX-512 exchanges the lanes of a register by the lowest 4 bits of each lane of another one, whatever
the bits above are. So the numbers that 4 bits stand for, as in float(w & 15) - 8, take one
instruction in place of three. An exchange of halves of lanes reads the bits from 16 on as well, and
saves the shift where the 16 numbers are those of their upper halves, which whole numbers up to 256
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tir.dtype import FLOAT32, INT32
from ...tir.expr import BitAnd, Cast, Const, Expr, ShiftRight, Sub, const
from ...tir.lowered import Broadcast
from .selection import shift_count

SIZE = 16  # numbers in a table
HALF = 16  # bits
_MASKS = (1, 3, 7, 15)


@dataclass(frozen=True, slots=True)
class Lookup:
    """numbers[index & 15] in each lane; high: of the bits from `HALF` on, (index >> 16) & 15."""

    index: Expr
    numbers: tuple[float, ...]
    high: bool


def lookup(expr: Expr) -> Lookup | None:
    """A vector of float32 as numbers of a table; None where more than 4 bits decide them."""
    if expr.dtype.scalar != FLOAT32 or expr.dtype.lanes == 1:
        return None
    match expr:
        case Sub(Cast(BitAnd() as bits), Broadcast(Const(less))):
            return _of_bits(bits, float(less))
        case Cast(BitAnd() as bits):
            return _of_bits(bits, 0.0)
    return None


def _of_bits(bits: BitAnd, less: float) -> Lookup | None:
    match bits.b:
        case Broadcast(Const(ones)) if ones in _MASKS and bits.dtype.scalar == INT32:
            pass
        case _:
            return None
    wide = (np.arange(SIZE) & int(ones)).astype(np.float32) - np.float32(less)
    numbers = tuple(map(float, wide))
    index = bits.a
    count = shift_count(index.b) if isinstance(index, ShiftRight) else None
    short = not np.any(wide.view(np.uint32) & ((1 << HALF) - 1))
    if isinstance(index, ShiftRight) and count is not None and count >= HALF and short:
        rest = count - HALF
        moved = Broadcast(const(rest, INT32), index.dtype.lanes)
        return Lookup(ShiftRight(index.a, moved) if rest else index.a, numbers, True)
    return Lookup(index, numbers, False)
