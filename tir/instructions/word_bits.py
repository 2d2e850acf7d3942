"""Numbers of few bits that lie in a word, as the operand of an instruction that takes a number from
each part of it: bytes of which only the low bits may be on.

    (word >> (shift + width * point)) & mask     at the points 0 .. 32 / width - 1

are the parts, each of `width` bits, of (word >> shift) & (mask, mask, ...), where the mask is
within a part. So one shift and one conjunction make the numbers of all points. A shift to the right
copies the sign, here as there: what lies beyond the word is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.linear import expression, linear
from ..buffer import Load
from ..dtype import INT32
from ..expr import BitAnd, Cast, Const, Expr, ShiftRight, Var, const
from ..visit import free_vars

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class WordBits:
    """The numbers that a word has, the first one at bit `shift`, an int32."""

    word: Load
    shift: Expr
    mask: int
    width: int

    @property
    def together(self) -> Expr:
        """The numbers of all points, each in its part of an int32."""
        everywhere = sum(self.mask << at for at in range(0, WORD_BITS, self.width))
        signed = everywhere - (1 << WORD_BITS) if everywhere >> (WORD_BITS - 1) else everywhere
        moved = self.word if self.shift == const(0, INT32) else ShiftRight(self.word, self.shift)
        return moved if signed == -1 else BitAnd(moved, const(signed, INT32))


def word_bits(expr: Expr, point: Var, width: int) -> WordBits | None:
    """An expression as a number of `width` bits at most of a word; None where it is none, or is
    another one than that of its point.
    """
    match expr:
        case BitAnd(ShiftRight(Load() as word, shift), Const(mask)) if word.dtype == INT32:
            pass
        case _:
            return None
    inner = shift.value if isinstance(shift, Cast) else shift
    form = linear(inner)
    rest = form.without(point)
    apart = all(point not in free_vars(atom) for atom, _ in rest.terms)
    if form.coefficient(point) != width or not apart or not 0 < int(mask) < 1 << width:
        return None
    if word.mask is not None or any(point in free_vars(item) for item in word.indices):
        return None
    first = Cast(expression(rest), INT32) if rest.terms else const(rest.constant, INT32)
    return WordBits(word, first, int(mask), width)
