"""Random scalar expressions over given operands, with a bound on what they can be."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ...tir.dtype import DType, dtype
from ...tir.expr import Expr
from ...tir.te import te

LIMIT = 1 << 20  # magnitudes of exact floats stay below
_INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32")
_CASTS = ("float32", "float64", "int32", "int64", "int8", "uint8")

_SUMS = te.comm_reducer(lambda p, q: (p[0] + q[0], p[1] + q[1]), lambda s, t: (0, 0), name="sums")
_LARGEST = te.comm_reducer(  # of floats
    lambda p, q: (te.maximum(p[0], q[0]), te.maximum(p[1], q[1])),
    lambda s, t: (te.const(-1e30, s), te.const(-1e30, t)),
    name="largest",
)

Leaf = Callable[[DType], "ScalarOperand"]


@dataclass(frozen=True, slots=True)
class ScalarOperand:
    """An expression that a function is made of.

    bound: the largest magnitude that it can have; of floats that are exact. computed: it may carry
    a rounding.
    """

    expr: Expr
    bound: int
    computed: bool = False


@dataclass(frozen=True, slots=True)
class OperandPair:
    """A reduction of two values, and their bounds."""

    expr: Expr
    bounds: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Joined:
    """How a step of a scan joins the state and an element, and the bound of what comes of it."""

    join: Callable[[Expr, Expr], Expr]
    bound: int


class ScalarCases:
    """Draws expressions; those of a rounded function may round, and then decide nothing."""

    def __init__(self, rng: Random, *, rounded: bool) -> None:
        self.rng = rng
        self.rounded = rounded

    def constant(self, kind: DType) -> ScalarOperand:
        """A small number of a type."""
        if kind.is_bool:
            return ScalarOperand(te.const(self.rng.random() < 0.5, kind), 1)
        low = 0 if kind.kind.value == "uint" else -3
        value = self.rng.randint(low, 5)
        return ScalarOperand(te.const(value, kind), abs(value))

    def tree(self, value: ScalarOperand, leaf: Leaf, steps: int) -> ScalarOperand:
        """`value` after some operations, each with another operand or alone."""
        for _ in range(steps):
            if value.expr.dtype.is_bool:
                value = self._of_truth(value, leaf)
            elif value.expr.dtype.is_float and self.rounded:
                value = self._rounded(value, leaf)
            else:
                value = self._exact(value, leaf)
        return value

    def product(self, a: ScalarOperand, b: ScalarOperand) -> ScalarOperand:
        """a * b, or the larger one where the product may be too large; "and" of truth values."""
        if a.expr.dtype.is_bool:
            return ScalarOperand(te.all_of(a.expr, b.expr), 1, a.computed or b.computed)
        if self._fits(a, a.bound * b.bound):
            return ScalarOperand(a.expr * b.expr, a.bound * b.bound, True)
        return ScalarOperand(te.maximum(a.expr, b.expr), max(a.bound, b.bound), True)

    def reduction(self, value: ScalarOperand, axes: Sequence[te.ReduceAxis]) -> ScalarOperand:
        """A reduction whose result stays within the limit."""
        rng = self.rng
        if value.expr.dtype.is_bool:
            value = ScalarOperand(te.cast(value.expr, "int32"), 1, value.computed)
        count = 1
        for axis in axes:
            count *= axis.extent
        form = rng.random()
        if form < 0.65 and self._fits(value, value.bound * count):
            total = te.sum(value.expr, axis=axes, dtype=value.expr.dtype)
            return ScalarOperand(total, value.bound * count, True)
        if form < 0.72 and count <= 8 and self._fits(value, value.bound**count):
            product = te.prod(value.expr, axis=axes, dtype=value.expr.dtype)
            return ScalarOperand(product, value.bound**count, True)
        if value.expr.dtype.is_float and form > 0.94:
            return ScalarOperand(te.max_any(value.expr, axis=axes), value.bound, True)
        reduce = te.max if rng.random() < 0.6 else te.min
        return ScalarOperand(reduce(value.expr, axis=axes), value.bound, True)

    def pair(self, value: ScalarOperand, axes: Sequence[te.ReduceAxis]) -> OperandPair:
        """A reduction of two values: the extreme one and its place, where no rounding decides; or
        the sum and the sum of opposites.
        """
        rng = self.rng
        if value.expr.dtype.is_bool:
            value = ScalarOperand(te.cast(value.expr, "int32"), 1, value.computed)
        count = 1
        for axis in axes:
            count *= axis.extent
        exact = not (self.rounded and value.computed)
        if exact and (rng.random() < 0.6 or not self._fits(value, value.bound * count)):
            place = te.argmax if rng.random() < 0.5 else te.argmin
            kind = rng.choice(("int32", "int64"))
            return OperandPair(place(value.expr, axis=axes, dtype=kind), (value.bound, count))
        fits = self._fits(value, value.bound * count)
        reduce, bound = (_SUMS, value.bound * count) if fits else (_LARGEST, value.bound)
        both = (value.expr, te.const(0, value.expr.dtype) - value.expr)
        return OperandPair(reduce(both, axis=axes), (bound, bound))

    def step(self, kind: DType, bound: int, steps: int) -> Joined:
        """How a scan over elements of a type goes on."""
        rng = self.rng
        if self.rounded and kind.is_float:
            return Joined(lambda s, x: s * te.const(0.5, kind) + x, 2 * bound)
        if rng.random() < 0.6 and (not kind.is_float or bound * steps < LIMIT):
            less = rng.random() < 0.3
            return Joined(lambda s, x: x - s if less else s + x, bound * steps)
        return Joined(te.maximum if rng.random() < 0.5 else te.minimum, bound)

    def _fits(self, like: ScalarOperand, bound: int) -> bool:
        """Integers wrap around; floats must stay exact."""
        return not like.expr.dtype.is_float or bound < LIMIT

    def _of_truth(self, value: ScalarOperand, leaf: Leaf) -> ScalarOperand:
        form = self.rng.randrange(4)
        if form == 0:
            return ScalarOperand(te.logical_not(value.expr), 1, value.computed)
        if form == 1:
            other = self.compared(leaf(dtype("int32")), leaf)
            join = te.all_of if self.rng.random() < 0.5 else te.any_of
            return ScalarOperand(join(value.expr, other.expr), 1, True)
        kind = dtype(self.rng.choice(("float32", "int32", "int64")))
        if form == 2:
            return ScalarOperand(te.cast(value.expr, kind), 1, True)
        a, b = leaf(kind), self.constant(kind)
        return ScalarOperand(te.select(value.expr, a.expr, b.expr), max(a.bound, b.bound), True)

    def compared(self, value: ScalarOperand, leaf: Leaf) -> ScalarOperand:
        """A comparison of numbers."""
        rng = self.rng
        kind = value.expr.dtype
        other = (leaf(kind) if rng.random() < 0.5 else self.constant(kind)).expr
        a = value.expr
        made = (a < other, a <= other, te.eq(a, other), te.ne(a, other))[rng.randrange(4)]
        return ScalarOperand(made, 1, True)

    def _exact(self, value: ScalarOperand, leaf: Leaf) -> ScalarOperand:
        rng, a = self.rng, value.expr
        kind = a.dtype
        form = rng.random()
        if form < 0.12:
            return self._alone(value)
        if form < 0.2:
            return self._cast(value)
        if form < 0.26:
            return self.compared(value, leaf)
        other = leaf(kind) if rng.random() < 0.75 else self.constant(kind)
        b = other.expr
        larger = max(value.bound, other.bound)
        if kind.is_integer and form < 0.32:
            return ScalarOperand((a & b, a | b, a ^ b)[rng.randrange(3)], larger, True)
        if form < 0.36:
            condition = self.compared(leaf(kind), leaf).expr
            return ScalarOperand(te.select(condition, a, b), larger, True)
        if form < 0.46:
            return ScalarOperand(te.minimum(a, b), larger, True)
        if form < 0.56:
            return ScalarOperand(te.maximum(a, b), larger, True)
        if form < 0.72 and self._fits(value, value.bound * other.bound):
            return ScalarOperand(a * b, value.bound * other.bound, True)
        if self._fits(value, value.bound + other.bound):
            made = a + b if rng.random() < 0.6 else a - b
            return ScalarOperand(made, value.bound + other.bound, True)
        return ScalarOperand(te.maximum(a, b), larger, True)

    def _alone(self, value: ScalarOperand) -> ScalarOperand:
        """An operation on one number."""
        rng, a = self.rng, value.expr
        if a.dtype.is_float:
            unary: tuple[Callable[[Expr], Expr], ...] = (te.abs, te.floor, te.round, operator.neg)
            return ScalarOperand(unary[rng.randrange(4)](a), value.bound, True)
        divisor = rng.choice((2, 3, 4, 5, 7, 8))
        if rng.random() < 0.2 and a.dtype.kind.value == "int":
            divisor = -divisor
        number = te.const(divisor, a.dtype)
        if rng.random() < 0.4:
            bits = te.const(rng.randint(0, 5), a.dtype)
            made = (a << bits, a >> bits, ~a, te.abs(a))[rng.randrange(4)]
            return ScalarOperand(made, value.bound * 32, True)
        if rng.random() < 0.5:
            return ScalarOperand(a // number, value.bound, True)
        return ScalarOperand(a % number, min(value.bound, abs(divisor)), True)

    def _cast(self, value: ScalarOperand) -> ScalarOperand:
        """A conversion of what is known to fit; integers wrap around."""
        rng = self.rng
        a = value.expr
        if a.dtype.is_integer:
            if rng.random() < 0.4:
                return ScalarOperand(te.cast(a, rng.choice(_INTEGERS)), value.bound, True)
            small = a % te.const(16, a.dtype)  # so that floats stay exact
            return ScalarOperand(te.cast(small, rng.choice(("float32", "float64"))), 16, True)
        return ScalarOperand(te.cast(a, rng.choice(_CASTS)), value.bound, True)

    def _rounded(self, value: ScalarOperand, leaf: Leaf) -> ScalarOperand:
        rng, a = self.rng, value.expr
        form = rng.randrange(12)
        if form < 3:
            return ScalarOperand(self._elementary(a, form), value.bound, True)
        if form == 3:
            return ScalarOperand(te.sqrt(te.abs(a) + 0.25), value.bound, True)
        if form == 4:
            return ScalarOperand(
                te.pow(te.abs(a) + 0.5, rng.choice((0.5, 0.75, 1.5, -0.5))), 9, True
            )
        if form == 5:
            return ScalarOperand(te.log(te.abs(a) + 0.5), value.bound, True)
        other = leaf(a.dtype) if rng.random() < 0.8 else self.constant(a.dtype)
        b = other.expr
        if form == 6:
            return ScalarOperand(a / (te.abs(b) + 0.75), value.bound, True)
        if form == 7:
            raw = leaf(dtype("int32"))
            if raw.computed:
                return ScalarOperand(te.minimum(a, b), 9, True)
            return ScalarOperand(te.select(raw.expr < te.const(1, "int32"), a, b), 9, True)
        made = (a + b, a - b, a * b, te.maximum(a, b))[form - 8]
        return ScalarOperand(made, 9, True)

    def _elementary(self, a: Expr, form: int) -> Expr:
        if form == 0:
            return te.exp(te.minimum(a, te.const(3.0, a.dtype)))
        return te.tanh(a) if form == 1 else self.rng.choice((te.erf, te.gelu))(a)
