"""Random integer and truth-valued expressions of three variables, and their values in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from hypothesis import strategies as st

from tilewright.tir.dtype import INT64
from tilewright.tir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
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

VARIABLES = (Var("x"), Var("y"), Var("z"))
Point = Mapping[Var, int]

small = st.integers(-9, 9)
positive = st.integers(1, 12)
leaves = st.one_of(st.sampled_from(VARIABLES), small.map(lambda n: Const(n, INT64)))
counts = st.integers(0, 3).map(lambda n: Const(n, INT64))
divisors = positive.map(lambda n: Const(n, INT64))


def _extend(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(inner, inner)
    compared = st.tuples(st.sampled_from((EQ, NE, LT, LE)), inner, inner).map(
        lambda item: item[0](item[1], item[2])
    )
    return st.one_of(
        st.tuples(st.sampled_from((Add, Sub, Min, Max)), pair).map(lambda t: t[0](*t[1])),
        st.tuples(inner, small).map(lambda t: Mul(t[0], Const(t[1], INT64))),
        st.tuples(st.sampled_from((FloorDiv, FloorMod)), inner, divisors).map(
            lambda t: t[0](t[1], t[2])
        ),
        st.builds(Select, compared, inner, inner),
    )


def _extend_with_bits(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        _extend(inner),
        st.tuples(st.sampled_from((BitAnd, BitOr, BitXor)), pair).map(lambda t: t[0](*t[1])),
        st.tuples(st.sampled_from((ShiftLeft, ShiftRight)), inner, counts).map(
            lambda t: t[0](t[1], t[2])
        ),
    )


quasi_affine = st.recursive(leaves, _extend, max_leaves=12)
integers = st.recursive(leaves, _extend_with_bits, max_leaves=12)
comparisons = st.tuples(st.sampled_from((EQ, NE, LT, LE)), integers, integers).map(
    lambda item: item[0](item[1], item[2])
)
booleans = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from((And, Or)), inner, inner).map(lambda t: t[0](t[1], t[2])),
        st.builds(Not, inner),
    ),
    max_leaves=4,
)


@st.composite
def boxes(draw: st.DrawFn) -> dict[Var, tuple[int, int]]:
    """A range for each variable, sometimes of one value."""
    found = {}
    for var in VARIABLES:
        low = draw(st.integers(-20, 20))
        found[var] = (low, low + draw(st.integers(0, 15)))
    return found


@st.composite
def points(draw: st.DrawFn, ranges: Mapping[Var, tuple[int, int]]) -> dict[Var, int]:
    """A value for each variable inside its range."""
    return {var: draw(st.integers(low, high)) for var, (low, high) in ranges.items()}


def value(expr: Expr, at: Point) -> int:
    """The value of an expression, in exact integers; truth values are 0 and 1."""
    match expr:
        case Var():
            return at[expr]
        case Const():
            return int(expr.value)
        case Select(condition, a, b):
            return value(a, at) if value(condition, at) else value(b, at)
        case Not(a):
            return int(not value(a, at))
        case And(a, b):
            return int(bool(value(a, at)) and bool(value(b, at)))
        case Or(a, b):
            return int(bool(value(a, at)) or bool(value(b, at)))
    a, b = value(expr.a, at), value(expr.b, at)  # type: ignore[attr-defined]
    match expr:
        case Add():
            return a + b
        case Sub():
            return a - b
        case Mul():
            return a * b
        case FloorDiv():
            return a // b
        case FloorMod():
            return a % b
        case BitAnd():
            return a & b
        case BitOr():
            return a | b
        case BitXor():
            return a ^ b
        case ShiftLeft():
            return a << b
        case ShiftRight():
            return a >> b
        case Min():
            return min(a, b)
        case Max():
            return max(a, b)
        case EQ():
            return int(a == b)
        case NE():
            return int(a != b)
        case LT():
            return int(a < b)
        case LE():
            return int(a <= b)
    assert_never(expr)  # type: ignore[arg-type]
