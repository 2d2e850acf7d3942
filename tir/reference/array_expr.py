"""The value of an expression on whole NumPy arrays: one NumPy operation per node, not per element.

Variables stand for integer arrays that broadcast against each other, so one call evaluates a box
of points, or a list of them.
- Select, And and Or evaluate both sides, but an index that leaves its buffer is an error only where
  that side is taken; elsewhere it is clamped.
- `working` promotes: every float (buffers, constants, casts) is of that type, so a cast to a
  narrower float rounds nothing.
- Fma is rounded once in float32 (the float64 sum is rounded to odd first); in float64 it is a
  compensated sum, which may differ from one rounding next to a tie. With `fused` off it is a
  product and a sum, as a target without the instruction computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from ..analysis.offsets import offsets
from ..buffer import Buffer, Load
from ..dtype import DType
from ..errors import IRError
from ..expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Compare,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from ..lowered import Fma, Reinterpret
from ..text.printer import print_expr
from .arithmetic import convert_array

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
View = Callable[[Load], Array | None]

ARITHMETIC: dict[type[Expr], Callable[..., Array]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: np.true_divide,
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
    BitAnd: np.bitwise_and,
    BitOr: np.bitwise_or,
    BitXor: np.bitwise_xor,
    ShiftLeft: np.left_shift,
    ShiftRight: np.right_shift,
    Min: np.minimum,
    Max: np.maximum,
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
}


def evaluate_expr(
    expr: Expr,
    values: Mapping[Var, Array],
    buffers: Mapping[Buffer, Array] | None = None,
    *,
    working: DType | None = None,
    fused: bool = True,
) -> Array:
    """The value of `expr` where each variable has the values of its array; arrays broadcast.

    Raises: IRError when an element outside a buffer is read.
    """
    return ArrayEvaluator(values, buffers or {}, working=working, fused=fused).evaluate(expr)


class ArrayEvaluator:
    """Evaluates expressions for one set of values and buffers; see the module for what it promises.

    view: an array for a Load that needs no gathering (a strided view, say), or None.
    """

    def __init__(
        self,
        values: Mapping[Var, Array],
        buffers: Mapping[Buffer, Array],
        *,
        working: DType | None = None,
        fused: bool = True,
        view: View | None = None,
    ) -> None:
        self._values = dict(values)
        self._buffers = buffers
        self._working = working
        self._fused = fused
        self._view = view
        self._active: Array | None = None

    def evaluate(self, expr: Expr) -> Array:
        """The value of `expr`; its shape is what the variables that it mentions broadcast to."""
        with np.errstate(all="ignore"):
            return np.asarray(self._visit(expr))

    def _type(self, dtype: DType) -> np.dtype[np.generic]:
        promoted = self._working is not None and dtype.is_float
        return self._working.numpy if promoted and self._working is not None else dtype.numpy

    def _visit(self, expr: Expr) -> Array:
        match expr:
            case Binary() | Compare():
                result = ARITHMETIC[type(expr)](self._visit(expr.a), self._visit(expr.b))
            case Const():
                result = np.asarray(expr.value, dtype=self._type(expr.type))
            case Var():
                result = self._values[expr]
            case Load():
                result = self._load(expr)
            case Select():
                result = self._select(expr)
            case And() | Or():
                result = self._connect(expr)
            case Not():
                result = np.logical_not(self._visit(expr.a))
            case Cast():
                result = convert_array(np.asarray(self._visit(expr.value)), self._type(expr.type))
            case Reinterpret():
                bits = np.asarray(self._visit(expr.value)).astype(expr.value.dtype.numpy)
                result = bits.view(expr.type.numpy).astype(self._type(expr.type))
            case Call():
                result = expr.intrinsic.meaning(*(self._visit(a) for a in expr.arguments))
            case Let():  # variables are unique objects, so nothing is hidden
                self._values[expr.var] = self._visit(expr.value)
                result = self._visit(expr.body)
                del self._values[expr.var]
            case Fma():
                multiply_add = fma if self._fused else _multiply_add
                result = multiply_add(
                    *(np.asarray(self._visit(x)) for x in (expr.a, expr.b, expr.c))
                )
            case _:
                raise TypeError(f"array evaluation: no value for {type(expr).__name__}")
        return result

    def _where(self, condition: Array, expr: Expr) -> Array:
        """`expr`, of which only the points where `condition` holds are wanted."""
        outer = self._active
        self._active = condition if outer is None else np.logical_and(outer, condition)
        result = self._visit(expr)
        self._active = outer
        return result

    def _select(self, select: Select) -> Array:
        condition = self._visit(select.condition)
        if np.size(condition):  # of no points each part is read as if it were not wanted
            if np.all(condition):
                return self._visit(select.on_true)
            if not np.any(condition):
                return self._visit(select.on_false)
        on_true = self._where(condition, select.on_true)
        on_false = self._where(np.logical_not(condition), select.on_false)
        return np.where(condition, on_true, on_false)

    def _connect(self, expr: And | Or) -> Array:
        a = self._visit(expr.a)
        if isinstance(expr, And):
            return cast(Array, np.logical_and(a, self._where(a, expr.b)))
        return cast(Array, np.logical_or(a, self._where(np.logical_not(a), expr.b)))

    def _load(self, load: Load) -> Array:
        if self._view is not None and (seen := self._view(load)) is not None:
            return seen
        data = self._buffers[load.buffer]
        inside = offsets(load, self._visit) if data.shape == load.buffer.shape else None
        if inside is not None:
            return self._promoted(load, data.reshape(-1).take(inside))
        indices = [np.asarray(self._visit(index)) for index in load.indices]
        flat = np.asarray(0)
        for dimension, (index, size) in enumerate(zip(indices, data.shape, strict=True)):
            outside = np.logical_or(np.less(index, 0), np.greater_equal(index, size))
            if np.any(outside):
                self._check_outside(load, dimension, index, outside)
                index = np.clip(index, 0, max(size - 1, 0))
            flat = flat * size + index
        if data.size == 0:
            return self._promoted(load, np.zeros(flat.shape, dtype=data.dtype))
        return self._promoted(load, data.reshape(-1).take(flat))

    def _promoted(self, load: Load, found: Array) -> Array:
        """What was gathered, in the type to compute in: a table may be in its own."""
        if self._working is None or not load.buffer.type.is_float:
            return found
        return found.astype(self._working.numpy, copy=False)

    def _check_outside(self, load: Load, dimension: int, index: Array, outside: Array) -> None:
        wrong = outside if self._active is None else np.logical_and(outside, self._active)
        if not np.any(wrong):
            return
        value = np.broadcast_to(index, wrong.shape)[wrong][0]
        raise IRError(
            f"evaluate: dimension {dimension} of '{load.buffer.name}' is read at {value}; "
            f"expected 0 to {load.buffer.shape[dimension] - 1}.",
            code="evaluate-bounds",
            where=lambda: f"in {print_expr(load)}",
        )


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return cast(Array, np.add(np.multiply(a, b), c))


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of arrays of one type, rounded once as the module says.

    Call it under np.errstate(all="ignore").
    """
    if a.dtype == np.float32:
        return _fma32(a.astype(np.float64), b.astype(np.float64), c.astype(np.float64))
    return _fma64(a, b, c) if a.dtype == np.float64 else _multiply_add(a, b, c)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b rounded, and what the rounding lost."""
    total = np.add(a, b)
    shadow = np.subtract(total, a)
    return total, np.add(np.subtract(a, np.subtract(total, shadow)), np.subtract(b, shadow))


def _fma32(a: Array, b: Array, c: Array) -> Array:
    total, lost = _two_sum(np.multiply(a, b), c)
    bits = np.asarray(total).view(np.int64)
    inexact = np.logical_and(np.isfinite(lost), np.not_equal(lost, 0))
    even = np.logical_and(inexact, np.equal(np.bitwise_and(bits, 1), 0))
    nudged = np.nextafter(total, np.copysign(np.inf, lost))
    return np.asarray(np.where(even, nudged, total)).astype(np.float32)


_SPLITTER = 134217729.0  # 2**27 + 1: halves of a float64 whose products are exact


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = np.multiply(x, _SPLITTER)
    high = np.subtract(scaled, np.subtract(scaled, x))
    return high, np.subtract(x, high)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    product = np.multiply(a, b)
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    lost = np.subtract(np.multiply(ah, bh), product)
    for x, y in ((ah, bl), (al, bh), (al, bl)):
        lost = np.add(lost, np.multiply(x, y))
    total, rest = _two_sum(product, c)
    rest = np.add(rest, lost)
    result = np.where(np.equal(rest, 0), total, np.add(total, rest))  # -0 + 0 is 0
    infinite = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, np.add(product, c))
    return cast(Array, np.where(np.isfinite(result), result, infinite))
