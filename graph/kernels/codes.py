"""Elements of rows as codes: numbers whose order is that of a TopK, and which say where the element
stood.

A code is a float64 of 63 bits, read as an integer: an offset, then 32 bits that order the elements,
then 30 bits for their places. All codes are positive, normal and finite, so that floats are ordered
as the integers are, and one instruction compares two of them on every processor with vectors of
float64. No two elements of a row have one code; of equal elements the one with the smaller place
comes first. Integers and floats of 64 bits have two words of 32 bits each, the higher one first.
"""

from __future__ import annotations

from ...tir.dtype import FLOAT64, INT32, INT64, TypeKind
from ...tir.expr import Expr, const, index
from ...tir.te import te

PLACE_BITS = 30
_LEAST = 1 << 31  # makes words of both signs positive
_NORMAL = 1 << 52  # the least normal number
_INFINITY = {INT32: 0x7F800000, INT64: 0x7FF0000000000000}  # the bits of an infinite float
BEHIND = const(4.0, FLOAT64)  # behind all codes; no place, and no number below it


def words(value: Expr, *, largest: bool) -> tuple[Expr, ...]:
    """The words, int32, the highest one first, by which an element is ordered: the largest first or
    the smallest. A NaN counts as larger than every number, and zeros are equal.
    """
    kind = value.dtype
    wide = INT64 if kind.bits == 64 else INT32
    least = te.const(-(1 << (wide.bits - 1)), wide)
    if kind.is_float:
        whole = _ordered(te.reinterpret(value, wide), _INFINITY[wide], least)
    elif kind.kind is TypeKind.UINT and kind.bits == wide.bits:
        whole = te.reinterpret(value, wide) ^ least
    else:
        whole = te.cast(value, wide)
    if wide == INT32:
        found: tuple[Expr, ...] = (whole,)
    else:
        low = te.cast(whole, INT32) ^ te.const(-_LEAST, INT32)
        found = (te.cast(whole >> 32, INT32), low)
    return tuple(~word for word in found) if largest else found


def _ordered(bits: Expr, infinity: int, least: Expr) -> Expr:
    """The bits of a float as an integer that is ordered as floats are: its magnitude with its sign;
    the largest integer for NaN. No choices, which would take masks.
    """
    sign = bits >> (bits.dtype.bits - 1)
    size = bits & ~least
    nan = (te.const(infinity, bits.dtype) - size) >> (bits.dtype.bits - 1)
    return ((size ^ sign) - sign | nan) ^ (nan & least)


def code(word: Expr, place: Expr, low: int) -> Expr:
    """The code of an element. low: how many bits are left free below its place."""
    ordered = te.cast(word, INT64) + _LEAST
    bits = (ordered << PLACE_BITS) + (te.cast(place, INT64) << low) + _NORMAL
    return te.reinterpret(bits, FLOAT64)


def marked(own: Expr, number: Expr) -> Expr:
    """A code with a number in the bits that are free below its place."""
    return te.reinterpret(te.reinterpret(own, INT64) + te.cast(number, INT64), FLOAT64)


def place_of(own: Expr, low: int) -> Expr:
    """The place in a code, int32."""
    return (_low_bits(own) & ((1 << PLACE_BITS) - 1)) >> low


def number_of(own: Expr, low: int) -> Expr:
    """The number in the bits below the place of a code, int32."""
    return _low_bits(own) & ((1 << low) - 1)


def negated(own: Expr, odd: Expr) -> Expr:
    """A code, or a negative one, with the other sign where an integer is odd."""
    sign = te.cast(odd, INT64) << 63
    return te.reinterpret(te.reinterpret(own, INT64) ^ sign, FLOAT64)


def _low_bits(own: Expr) -> Expr:
    return te.cast(te.reinterpret(own, INT64), INT32)


def bit_of(number: Expr, place: Expr | int) -> Expr:
    """A bit of an index that is not negative, as an index of 0 or 1."""
    return (number >> place) & index(1)
