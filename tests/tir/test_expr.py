"""tir/expr.py: nodes compare by value, constants by bits, operators fold constants and no more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BOOL, FLOAT32, INT32, INT64, dtype
from tilewright.tir.errors import IRError
from tilewright.tir.expr import (
    TRUE,
    Add,
    Cast,
    Const,
    Expr,
    Let,
    Mul,
    Sub,
    Var,
    const,
    index,
    is_const,
)
from tilewright.tir.lowered import Broadcast, Ramp
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_expr

X, J = Var("i"), Var("j")
A = Buffer("A", FLOAT32, (4, 8))
N = Buffer("N", INT32, (4,))
H = Buffer("H", dtype("bfloat16"), (4,))
E = Buffer("E", dtype("float8_e5m2"), (4,))
Q = Buffer("Q", dtype("int4"), (4,))
S, U = Buffer("S", dtype("int8"), (4,)), Buffer("U", dtype("uint8"), (4,))
W = Buffer("W", dtype("uint64"), (4,))


def test_floats_of_16_bits_are_computed_with_in_float32() -> None:
    wide = 'cast(H[0], "float32")'
    assert print_expr(H[0] * H[1]) == f'{wide} * cast(H[1], "float32")'
    assert print_expr(0.1 - H[0]) == f"0.1 - {wide}"  # 0.1 as float32 has it
    assert print_expr(-H[0]) == f"{wide} * (-1.0)"
    assert print_expr(abs(H[0])) == f"abs({wide})"
    assert print_expr(H[0] + A[0, 0]) == f"{wide} + A[0, 0]"
    assert print_expr(np.exp(H[0])) == print_expr(te.exp(H[0])) == f"exp({wide})"
    assert print_expr(te.maximum(H[0], 0.0)) == f"max({wide}, 0.0)"
    assert print_expr(H[0] < H[1]) == f'{wide} < cast(H[1], "float32")'
    assert (H[0] * 2.0).dtype == FLOAT32


# -- equality --------------------------------------------------------------------------------------


def test_nodes_of_one_kind_with_equal_fields_are_equal_and_hash_alike() -> None:
    one, two = Add(X, Const(1, INT64)), Add(X, Const(1, INT64))
    assert one is not two
    assert one == two
    assert hash(one) == hash(two)
    assert one != Sub(X, Const(1, INT64))
    assert one != Add(J, Const(1, INT64))


def test_variables_and_buffers_are_equal_only_to_themselves() -> None:
    assert Var("i") != Var("i")
    assert Buffer("A", FLOAT32, (4,)) != Buffer("A", FLOAT32, (4,))
    assert len({X, Var("i"), X}) == 2


def test_constants_compare_by_type_and_bits() -> None:
    nan = float("nan")
    assert Const(1, INT64) != Const(1, INT32)
    assert Const(1, INT64) != Const(1.0, FLOAT32)
    assert Const(True, BOOL) != Const(1, INT64)
    assert Const(0.0, FLOAT32) != Const(-0.0, FLOAT32)
    assert Const(nan, FLOAT32) == Const(nan, FLOAT32)
    assert hash(Const(nan, FLOAT32)) == hash(Const(nan, FLOAT32))


def test_a_chain_of_ten_thousand_nodes_hashes_and_compares_once_built_bottom_up() -> None:
    def chain() -> Expr:
        expr: Expr = X
        for _ in range(10_000):
            expr = Add(expr, J)
            hash(expr)
        return expr

    assert hash(chain()) == hash(chain())


# -- operators -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (X + 0, "i"),
        (0 + X, "i"),
        (X - 0, "i"),
        (X * 1, "i"),
        (1 * X, "i"),
        (X * 0, "0"),
        (X // 1, "i"),
        (X % 1, "0"),
        (index(7) // -2, "-4"),
        (index(7) % -2, "-1"),
        (index(3) - 5, "-2"),
        (-X, "0 - i"),
        (-A[0, 0], "A[0, 0] * (-1.0)"),
        (1.0 - A[0, 0], "1.0 - A[0, 0]"),
        (1.0 / A[0, 0], "1.0 / A[0, 0]"),
        (A[0, 0] + 0.0, "A[0, 0] + 0.0"),
        (A[0, 0] * 1.0, "A[0, 0] * 1.0"),
        (2 - X, "2 - i"),
        (X > 3, "3 < i"),
        (X >= 3, "3 <= i"),
        (index(3) < 4, "True"),
        (te.eq(index(3), 4), "False"),
        (te.ne(X, J), "i != j"),
        (X & J, "i & j"),
        (7 & X, "7 & i"),
        (X | 8, "i | 8"),
        (X ^ J, "i ^ j"),
        (~X, "i ^ (-1)"),
        (~index(5), "-6"),
        (index(12) & 10, "8"),
        (index(12) | 3, "15"),
        (X << 3, "i << 3"),
        (1 << X, "1 << i"),
        (X >> 0, "i"),
        (index(-7) >> 1, "-4"),
        (const(3, "int8") << 6, "int8(-64)"),
        ((X < J) & (J < 3), "i < j and j < 3"),
        ((X < J) | (J < 3), "i < j or j < 3"),
        ((X < J) ^ (J < 3), "(i < j) != (j < 3)"),
        (~(X < J), "not i < j"),
        ((X < J) & True, "i < j and True"),
        (A[0, 0] ** 2.0, "pow(A[0, 0], 2.0)"),
        (2.0 ** A[0, 0], "pow(2.0, A[0, 0])"),
        (abs(A[0, 0]), "abs(A[0, 0])"),
        (abs(N[0]), "max(N[0], int32(0) - N[0])"),
        (te.abs(Var("u", dtype("uint8"))), "u"),
    ],
)
def test_operators_fold_constants_and_the_neutral_elements_of_integers(
    expr: Expr, text: str
) -> None:
    assert print_expr(expr) == text


def test_constants_are_rounded_and_wrapped_to_their_type() -> None:
    assert const(0.1, "float32").value == 0.10000000149011612
    assert const(300, "uint8").value == 44
    assert const(200, "int8").value == -56
    assert const(-1, "uint64").value == (1 << 64) - 1
    assert const(3, "bool").value is True
    assert (const(200, "uint8") + const(100, "uint8")) == const(44, "uint8")


def test_float_constants_fold_with_the_rounding_of_their_type() -> None:
    tenth = const(0.1, "float32")
    assert (tenth + tenth) == const(0.2, "float32")
    assert (const(1e30, "float32") * const(1e30, "float32")).value == float("inf")


def test_is_const_knows_integers_and_truth_values_only() -> None:
    assert is_const(index(1), 1)
    assert is_const(TRUE, 1)
    assert not is_const(const(1.0, "float32"), 1)
    assert not is_const(X, 1)


# -- types -----------------------------------------------------------------------------------------


def test_each_node_knows_its_type() -> None:
    assert (X < J).dtype == BOOL
    assert Cast(X, FLOAT32).dtype == FLOAT32
    assert Ramp(X, 2, 8).dtype == INT64.with_lanes(8)
    assert Broadcast(A[0, 0], 8).dtype == FLOAT32.with_lanes(8)
    assert Load(A, (X, Ramp(J, 1, 8))).dtype == FLOAT32.with_lanes(8)
    assert (Ramp(X, 1, 8) < Broadcast(J, 8)).dtype == BOOL.with_lanes(8)
    assert Let(X, J, A[0, 0]).dtype == FLOAT32
    assert Mul(A[0, 0], A[0, 1]).dtype == FLOAT32


# -- refusals --------------------------------------------------------------------------------------

REFUSALS: dict[Callable[[], object], str] = {
    lambda: bool(A[0, 0] < 1.0): (
        "IRError: expression: a comparison by < has no truth value until a kernel runs; expected "
        "no `if`, `and`, `or`, `not` or `a < b < c` of Python on it. [expr-bool]\n"
        "  Hint: te.select(condition, a, b) is a if condition else b.\n"
        "  Hint: te.all_of(a, b) is and, te.any_of(a, b) or, te.logical_not(a) not, te.eq(a, b) "
        "==."
    ),
    lambda: N[0] * 0.5: (
        "IRError: expression: the number 0.5 does not fit type int32; expected an integer. "
        "[expr-number]\n"
        "  Hint: cast the other operand: te.cast(x, 'float32') * 0.5."
    ),
    lambda: A[0, 0] + N[0]: (
        "IRError: add: the operands have types float32 and int32; expected one type. "
        "[expr-types]\n"
        "  Hint: te.cast(x, 'float32') converts one of them."
    ),
    lambda: U[0] * S[0]: (
        "IRError: multiply: the operands have types uint8 and int8; expected one type. "
        "[expr-types]\n"
        "  Hint: te.cast(x, 'int32') converts both."
    ),
    lambda: N[0] < X: (
        "IRError: compare: the operands have types int32 and int64; expected one type. "
        "[expr-types]\n"
        "  Hint: te.cast(x, 'int64') converts one of them."
    ),
    lambda: X + W[0]: (
        "IRError: add: the operands have types int64 and uint64; expected one type. [expr-types]\n"
        "  Hint: te.cast(x, 'int64') converts one of them; what lies above 9223372036854775807 "
        "wraps around."
    ),
    lambda: N[0] + W[0]: (
        "IRError: add: the operands have types int32 and uint64; expected one type. [expr-types]\n"
        "  Hint: te.cast(x, 'int64') converts both; what lies above 9223372036854775807 wraps "
        "around."
    ),
    lambda: Broadcast(A[0, 0], 4) + A[0, 0]: (
        "IRError: add: the operands have types float32x4 and float32; expected one type. "
        "[expr-types]"
    ),
    lambda: N[0] / 2: (
        "IRError: divide: '/' is for floats, got int32. [expr-divide]\n  Hint: use // for integers."
    ),
    lambda: A[0, 0] // 2.0: (
        "IRError: floor division: expected integers, got float32. [expr-floor]"
    ),
    lambda: A[0, 0] % 2.0: "IRError: modulo: expected integers, got float32. [expr-floor]",
    lambda: E[0] * E[1]: (
        "IRError: multiply: the operands have type float8_e5m2, which is only stored; expected a "
        "type to compute with. [expr-storage]\n"
        "  Hint: te.cast(x, 'float32') holds its values; te.cast(y, 'float8_e5m2') converts back."
    ),
    lambda: Q[0] < 3: (
        "IRError: compare: the operands have type int4, which is only stored; expected a type to "
        "compute with. [expr-storage]\n"
        "  Hint: te.cast(x, 'int32') holds its values; te.cast(y, 'int4') converts back."
    ),
    lambda: X // 0: "IRError: floor division: the divisor is 0. [expr-zero]",
    lambda: X % 0: "IRError: modulo: the divisor is 0. [expr-zero]",
    lambda: A[0, 0] & A[0, 1]: (
        "IRError: &: expected integers, got float32. [expr-bits]\n"
        "  Hint: te.cast(x, 'int32') converts it."
    ),
    lambda: (X < J) | X: (
        "IRError: |: the operands have types bool and int64; expected one type. [expr-types]\n"
        "  Hint: te.cast(x, 'int64') converts one of them."
    ),
    lambda: (X < J) << True: (
        "IRError: shift: expected integers, got bool. [expr-bits]\n"
        "  Hint: te.cast(x, 'int32') converts it."
    ),
    lambda: N[0] << 32: (
        "IRError: shift: the count is 32; expected 0 to 31 for int32. [expr-shift]"
    ),
    lambda: X >> -1: "IRError: shift: the count is -1; expected 0 to 63 for int64. [expr-shift]",
    lambda: X**2: (
        "IRError: te.pow: the argument has type int64; expected a float. [te-float]\n"
        "  Hint: te.cast(x, 'float32') converts it."
    ),
    lambda: abs(X < J): (
        "IRError: abs: the operands have type bool; expected numbers. [expr-bool-operand]\n"
        "  Hint: te.all_of and te.any_of combine truth values; te.cast(x, 'int32') makes 0 and 1."
    ),
    lambda: A[X]: (
        "IRError: load: 'A' has 2 dimensions; expected as many indices, got 1. [load-rank]\n"
        "  Hint: A[i0, i1]"
    ),
    lambda: A[A[0, 0], 0]: (
        "IRError: load: an index of 'A' has type float32; expected an integer. "
        "[load-index-type]\n"
        "  Hint: te.cast(index, 'int64') converts it."
    ),
}


@pytest.mark.parametrize("build", REFUSALS, ids=[text.split("[")[-1] for text in REFUSALS.values()])
def test_what_has_no_meaning_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(IRError) as refusal:
        build()
    assert str(refusal.value) == REFUSALS[build]


def test_an_if_on_an_expression_is_refused_rather_than_taken() -> None:
    with pytest.raises(IRError, match=r"\[expr-bool\]"):
        _ = 1 if X < 3 else 2


def test_equality_of_nodes_is_no_expression() -> None:
    assert (X == J) is False
    assert dtype("int64") == X.dtype
