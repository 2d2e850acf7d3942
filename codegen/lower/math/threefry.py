"""threefry: random words of a counter under a key, by 20 rounds of an addition, a rotation and an
exclusive or of words of 32 bits; after each fourth round the words of the key are added.

Threefry 2x32-20 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers:
as easy as 1, 2, 3 (SC 2011). Every bit is that of the definition, on every target.
"""

from __future__ import annotations

from ....tir.dtype import INT32
from ....tir.expr import Expr, const
from ....tir.intrinsics import PARITY, ROTATIONS
from .build import Lets

_ROUNDS = 20


def expand_threefry(low: Expr, high: Expr, first: Expr, second: Expr, *, word: int) -> Expr:
    """A word of the two, in arithmetic."""
    lets = Lets()
    keys = (first, second, lets.let("key", first ^ second ^ const(PARITY, INT32)))
    x0, x1 = lets.let("x0", low + first), lets.let("x1", high + second)
    for number in range(_ROUNDS):
        x0 = lets.let("x0", x0 + x1)
        is_last = number == _ROUNDS - 1
        if word == 0 and is_last:
            break
        x1 = lets.let("x1", _turned(x1, ROTATIONS[number % 8]) ^ x0)
        if number % 4 == 3 and not is_last:
            step = number // 4 + 1
            x0 = lets.let("x0", x0 + keys[step % 3])
            x1 = lets.let("x1", x1 + (keys[(step + 1) % 3] + step))
    step = _ROUNDS // 4
    return lets.close(x1 + (keys[(step + 1) % 3] + step) if word else x0 + keys[step % 3])


def _turned(x: Expr, bits: int) -> Expr:
    """The bits of x, the upper ones of which come in again below; a shift down brings the sign."""
    return x << bits | (x >> 32 - bits) & (1 << bits) - 1
