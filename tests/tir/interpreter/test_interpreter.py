"""tir/interpreter/interpreter.py: whole functions against NumPy, arguments and errors."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT32, INT64, DType
from tilewright.tir.expr import Expr, FloorDiv, Var, const
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import InterpreterError, interpret
from tilewright.tir.stmt import For, ForKind, Parameter, Store
from tilewright.tir.te import te

RNG = np.random.default_rng(0)


def elementwise(make: Callable[..., Expr], result: DType, *types: DType) -> PrimFunc:
    """out[i] = make(a[i], b[i], ...) over seven elements."""
    i = Var("i")
    inputs = [Buffer(f"a{n}", kind, (7,)) for n, kind in enumerate(types)]
    out = Buffer("out", result, (7,))
    value = make(*(Load(buffer, (i,)) for buffer in inputs))
    parameters = (*(Parameter(b, "input") for b in inputs), Parameter(out, "output"))
    return PrimFunc("f", parameters, For(i, 7, ForKind.SERIAL, Store(out, (i,), value)))


def result_of(func: PrimFunc, *arrays: np.ndarray) -> np.ndarray:
    """The output, plain and checked alike."""
    (plain,) = interpret(func, *arrays)
    (checked,) = interpret(func, *arrays, checked=True)
    np.testing.assert_array_equal(plain, checked)
    return plain


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    axis = te.reduce_axis(k)
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="matmul")


def test_a_matrix_product_accumulates_in_float32_in_the_order_of_its_definition() -> None:
    a = RNG.standard_normal((7, 13), dtype=np.float32)
    b = RNG.standard_normal((13, 5), dtype=np.float32)
    expected = np.zeros((7, 5), np.float32)
    for k in range(13):
        expected += a[:, k : k + 1] * b[k : k + 1]
    assert np.array_equal(result_of(matmul(7, 5, 13), a, b), expected)


def test_constants_are_bound_by_name_and_given_outputs_are_written() -> None:
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    out = np.zeros((2, 4), np.float32)
    (result,) = interpret(matmul(2, 4, 3), a, out, constants={"B": b})
    assert result is out
    assert (out == 3).all()


@pytest.mark.parametrize("checked", [False, True])
def test_a_reduction_over_no_points_is_its_identity_and_empty_shapes_work(checked: bool) -> None:
    a, b = np.ones((2, 0), "f4"), np.ones((0, 4), "f4")
    out = np.full((2, 4), 7, "f4")
    interpret(matmul(2, 4, 0), a, b, out, checked=checked)
    assert np.array_equal(out, np.zeros((2, 4)))
    x, k = te.placeholder((3, 0), "float32", name="x"), te.reduce_axis(0)
    most = te.compute((3,), lambda i: te.max(x[i, k], axis=k), name="y")
    twice = te.compute((3,), lambda i: most[i] * 2.0, name="z")
    (result,) = interpret(te.func(x, twice, name="f"), np.ones((3, 0), "f4"), checked=checked)
    assert np.array_equal(result, np.full(3, -np.inf))
    (none,) = interpret(matmul(0, 4, 3), np.ones((0, 3), "f4"), np.ones((3, 4), "f4"))
    assert none.shape == (0, 4)


def test_convolution_with_padding_never_loads_outside() -> None:
    x = te.placeholder((9,), "float32", name="x")
    w = te.placeholder((3,), "float32", name="w")
    k = te.reduce_axis(3)
    padded = te.compute(
        (11,), lambda i: te.select(te.all_of(i >= 1, i < 10), x[i - 1], 0.0), name="padded"
    )
    y = te.compute((9,), lambda i: te.sum(padded[i + k] * w[k], axis=k), name="y")
    xs, ws = RNG.standard_normal(9).astype("f4"), RNG.standard_normal(3).astype("f4")
    got = result_of(te.func(x, w, y, name="conv"), xs, ws)
    np.testing.assert_allclose(got, np.convolve(xs, ws[::-1], "same"), rtol=1e-5, atol=1e-6)


def test_a_million_scalar_steps_take_seconds_at_most() -> None:
    a, b = np.ones((50, 100), "f4"), np.ones((100, 40), "f4")
    func = matmul(50, 40, 100)
    begin = time.perf_counter()
    interpret(func, a, b)
    assert (time.perf_counter() - begin) / (50 * 40 * 100) < 10e-6


def rendered(func: PrimFunc, *arrays: np.ndarray, **options: object) -> str:
    with pytest.raises(InterpreterError) as caught:
        interpret(func, *arrays, **options)
    return str(caught.value)


def test_wrong_arguments_are_refused_with_what_was_expected() -> None:
    a, b = np.ones((2, 3), "f4"), np.ones((3, 4), "f4")
    assert rendered(matmul(2, 4, 3), a) == (
        "InterpreterError: interpreter: function 'matmul' was given 1 arrays; "
        "expected 2 or 3 arrays, for 'A', 'B', 'C'. [interpreter-arguments]"
    )
    assert rendered(matmul(2, 4, 3), a, b, constants={"D": b}) == (
        "InterpreterError: interpreter: function 'matmul' was given a constant 'D', which it does "
        "not have; expected 2 or 3 arrays, for 'A', 'B', 'C'. [interpreter-arguments]"
    )
    assert rendered(matmul(2, 4, 3), a, b.astype("f8")) == (
        "InterpreterError: interpreter: parameter 'B' of 'matmul' is float64[3, 4]; "
        "expected float32[3, 4]. [interpreter-array]"
    )


def test_an_integer_divided_by_zero_is_an_error() -> None:
    func = elementwise(FloorDiv, INT32, INT32, INT32)
    assert rendered(func, np.ones(7, np.int32), np.zeros(7, np.int32)) == (
        "InterpreterError: interpreter: function 'f' divides an integer by 0. "
        "[interpreter-division]"
    )


def test_an_access_that_numpy_refuses_is_an_error_without_checks_too() -> None:
    func = elementwise(lambda x: Load(x.buffer, (const(7, INT64),)), FLOAT32, FLOAT32)
    assert rendered(func, np.ones(7, "f4")) == (
        "InterpreterError: interpreter: function 'f' leaves a buffer: "
        "index 7 is out of bounds for axis 0 with size 7. [interpreter-index]\n"
        "  Hint: interpret(..., checked=True) names the access."
    )
