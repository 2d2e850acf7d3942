"""tir/reference/array_expr.py: operations on whole arrays, against scalars and exact numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64, dtype
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Cast, Expr, Let, Mul, Var, const
from tilewright.tir.lowered import Fma, Reinterpret
from tilewright.tir.reference.arithmetic import fma32, fma64
from tilewright.tir.reference.array_expr import evaluate_expr, fma
from tilewright.tir.te import te

ROW, COLUMN = Var("i"), Var("j")
ROWS, COLUMNS = np.arange(4)[:, None], np.arange(5)[None, :]


def test_variables_broadcast_against_each_other() -> None:
    value = evaluate_expr(ROW * 10 + COLUMN, {ROW: ROWS, COLUMN: COLUMNS})
    np.testing.assert_array_equal(value, ROWS * 10 + COLUMNS)


def test_integer_quotients_and_remainders_round_towards_minus_infinity() -> None:
    values = np.arange(-7, 8)
    np.testing.assert_array_equal(evaluate_expr(ROW // 3, {ROW: values}), values // 3)
    np.testing.assert_array_equal(evaluate_expr(ROW % 3, {ROW: values}), values % 3)


def test_integers_wrap_around() -> None:
    top = Var("top", INT32)
    value = evaluate_expr(top + const(1, INT32), {top: np.array([2**31 - 1], dtype=np.int32)})
    assert value.dtype == np.int32
    assert value[0] == -(2**31)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "uint64"])
def test_bits_and_shifts_wrap_around_and_know_counts_beyond_the_width(kind: str) -> None:
    a, b = Var("a", dtype(kind)), Var("b", dtype(kind))
    info = np.iinfo(kind)
    values = np.array([5, info.max, info.min, 85], kind)
    for count in (0, 1, info.bits - 1, info.bits, info.max, *([-1] if info.min else [])):
        at = {a: values, b: np.full(4, count, kind)}
        left, right = evaluate_expr(a << b, at), evaluate_expr(a >> b, at)
        inside = 0 <= count < info.bits
        exact = [int(v) << count if inside else 0 for v in values]
        assert left.tolist() == [const(v, kind).value for v in exact]
        assert right.tolist() == [int(v) >> (count if inside else 64) for v in values]
    masked = evaluate_expr(a & ~b | a ^ b, {a: values, b: values})
    assert masked.tolist() == [0, 0, 0, 0]


def test_a_load_takes_the_elements_at_its_indices() -> None:
    data = np.arange(20.0, dtype=np.float32).reshape(4, 5)
    buffer = Buffer("A", FLOAT32, (4, 5))
    value = evaluate_expr(buffer[ROW, 4 - COLUMN], {ROW: ROWS, COLUMN: COLUMNS}, {buffer: data})
    np.testing.assert_array_equal(value, data[:, ::-1])


def test_an_index_outside_counts_only_where_its_side_is_taken() -> None:
    data = np.arange(5.0, dtype=np.float32)
    buffer = Buffer("A", FLOAT32, (5,))
    shifted = te.select(ROW >= 2, buffer[ROW - 2], 0.0)
    value = evaluate_expr(shifted, {ROW: np.arange(7)}, {buffer: data})
    np.testing.assert_array_equal(value, [0, 0, 0, 1, 2, 3, 4])
    guarded = te.all_of(ROW < 5, buffer[ROW] < 3.0)
    taken = evaluate_expr(guarded, {ROW: np.arange(7)}, {buffer: data})
    np.testing.assert_array_equal(taken, [True, True, True, False, False, False, False])


@pytest.mark.parametrize("holds", [True, False])
def test_of_no_points_none_is_read_outside(holds: bool) -> None:
    buffer = Buffer("A", FLOAT32, (3,))
    inside = ROW + COLUMN < 3
    chosen = (
        te.select(inside, buffer[ROW], 0.0)
        if holds
        else te.select(te.logical_not(inside), 0.0, buffer[ROW])
    )
    points = {ROW: np.arange(5)[:, None], COLUMN: np.arange(0)[None, :]}
    assert evaluate_expr(chosen, points, {buffer: np.ones(3, np.float32)}).shape == (5, 0)


def test_an_index_outside_on_the_side_taken_is_an_error() -> None:
    buffer = Buffer("A", FLOAT32, (5,))
    shifted = te.select(ROW >= 1, buffer[ROW - 2], 0.0)
    with pytest.raises(IRError) as error:
        evaluate_expr(shifted, {ROW: np.arange(7)}, {buffer: np.zeros(5, dtype=np.float32)})
    assert str(error.value) == (
        "IRError: evaluate: dimension 0 of 'A' is read at -1; expected 0 to 4. [evaluate-bounds]\n"
        "  in A[i - 2]"
    )


def test_promotion_reaches_constants_casts_and_functions() -> None:
    x = Var("x", FLOAT32)
    expr: Expr = te.exp(Cast(x * 0.1, FLOAT32))
    wide = evaluate_expr(expr, {x: np.array([1.0])}, working=FLOAT64)
    assert wide.dtype == np.float64
    assert wide[0] == np.exp(np.float64(np.float32(0.1)))


def test_let_reinterpret_and_casts_keep_their_meaning() -> None:
    x, bits = Var("x", FLOAT32), Var("bits", INT32)
    expr = Let(bits, Reinterpret(x, INT32), Cast(bits, INT64))
    values = np.array([1.0, -2.5], dtype=np.float32)
    np.testing.assert_array_equal(evaluate_expr(expr, {x: values}), values.view(np.int32))
    np.testing.assert_array_equal(evaluate_expr(Cast(x, INT32), {x: values}), [1, -2])


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_fma_has_the_bits_of_one_rounding(kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(2000).astype(kind) for _ in range(2))
    c = (-a * b * rng.choice([1.0, 1.0 + 1e-6, 0.5, 1e-9], 2000)).astype(kind)
    single = fma32 if kind == "float32" else fma64
    expected = [single(*numbers) for numbers in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(fma(a, b, c), np.array(expected, dtype=kind))


def test_without_fusing_fma_rounds_twice() -> None:
    x = Var("x", FLOAT32)
    square = Mul(x, x)
    lost = Fma(x, x, square * -1.0)
    values = {x: np.array([1 + 2**-12], dtype=np.float32)}
    assert evaluate_expr(lost, values)[0] == np.float32(2**-24)
    assert evaluate_expr(lost, values, fused=False)[0] == 0


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_fma_of_zeros_has_the_sign_of_the_sum(kind: str) -> None:
    minus = np.array([-0.0, -20.0, 1.0], kind)
    result = fma(minus, np.array([1.0, 0.0, 0.0], kind), np.array([-0.0, -0.0, -0.0], kind))
    assert np.signbit(result).tolist() == [True, True, False]
