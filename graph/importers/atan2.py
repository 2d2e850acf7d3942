"""The angle of a point from the axis of x, spelled in core operators: each is computed once."""

from __future__ import annotations

import math

from ..ops import angles, arithmetic, functions, logic
from .tensor_writer import TensorWriter, WrittenTensor


def atan2(w: TensorWriter, y: WrittenTensor, x: WrittenTensor) -> WrittenTensor:
    """The angle of the points (x, y), between -pi and pi; zeros have signs, as in C's atan2.

    y, x: floats of one type.
    """

    def number(value: float) -> WrittenTensor:
        return w.full(value, x.dtype)

    def chosen(condition: WrittenTensor, one: WrittenTensor, other: WrittenTensor) -> WrittenTensor:
        return w.emit(logic.Where(), condition, one, other)

    up, right = (w.emit(functions.Abs(), one) for one in (y, x))
    steep = w.emit(logic.Less(), right, up)
    low, high = chosen(steep, right, up), chosen(steep, up, right)
    # of equal ones, which may both be infinite, and of two zeros, no quotient is asked
    same = chosen(w.emit(logic.Equal(), high, number(0)), number(0), number(1))
    ratio = chosen(w.emit(logic.Equal(), low, high), same, w.emit(arithmetic.Div(), low, high))
    slope = w.emit(angles.Atan(), ratio)
    angle = chosen(steep, w.emit(arithmetic.Sub(), number(math.pi / 2), slope), slope)
    turned = chosen(_is_negative(w, x), w.emit(arithmetic.Sub(), number(math.pi), angle), angle)
    return chosen(_is_negative(w, y), w.emit(arithmetic.Mul(), turned, number(-1)), turned)


def _is_negative(w: TensorWriter, x: WrittenTensor) -> WrittenTensor:
    """Whether the sign of a number is: 1 / x has it where x is 0."""
    zero, one = w.full(0, x.dtype), w.full(1, x.dtype)
    inverse = w.emit(arithmetic.Div(), one, x)
    return w.emit(logic.Or(), w.emit(logic.Less(), x, zero), w.emit(logic.Less(), inverse, zero))
