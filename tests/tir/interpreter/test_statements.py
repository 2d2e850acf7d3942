"""tir/interpreter/statements.py: the meaning of statements, above all of init."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT64, DType
from tilewright.tir.expr import Add, Expr, Var, const
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret, python_program
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For, ForKind, Parameter, Store, seq


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


def test_more_loops_may_nest_than_python_allows() -> None:
    out = Buffer("out", INT64, (1,))
    element = (const(0, INT64),)
    loops = [Var(f"i{n}") for n in range(27)]
    value: Expr = Load(out, element)
    for var in loops:
        value = Add(value, var)
    body = Store(out, element, value)
    for n, var in enumerate(loops):
        body = For(var, 2 if n % 5 == 0 else 1, ForKind.SERIAL, body)
    start = Store(out, element, const(0, INT64))
    whole = PrimFunc("deep", (Parameter(out, "output"),), seq(start, body))
    assert result_of(whole)[0] == 6 * 2**5


def test_init_runs_before_the_first_executed_update_wherever_that_lands() -> None:
    func = parse(
        """
        def f(a: float32[5, 7], s: output(float32[5])):
            for k0 in range(2):
                for i in range(5):
                    for k1 in range(4):
                        with block("s", vi=spatial(5, i), vk=reduce(7, k0 * 4 + k1)):
                            where(k0 * 4 + k1 < 7)
                            with init():
                                s[vi] = 100.0
                            s[vi] = s[vi] + a[vi, vk]
        """
    )
    a = np.arange(35, dtype="f4").reshape(5, 7)
    assert np.array_equal(result_of(func, a), 100 + a.sum(1))


def test_the_init_of_a_staged_accumulator_runs_once_per_element_of_its_origin() -> None:
    func = parse(
        """
        def f(a: float32[6, 8], s: output(float32[6])):
            for k0 in range(2):
                for i0 in range(3):
                    r = alloc(float32[6], "register", origin=s)
                    for i in range(2):
                        with block("in", v=spatial(6, i0 * 2 + i), copy="s"):
                            r[v] = s[v]
                    for i in range(2):
                        for k1 in range(4):
                            with block("s", vi=spatial(6, i0 * 2 + i), vk=reduce(8, k0 * 4 + k1)):
                                with init():
                                    r[vi] = 0.0
                                r[vi] = r[vi] + a[vi, vk]
                    for i in range(2):
                        with block("out", v=spatial(6, i0 * 2 + i), copy="s"):
                            s[v] = r[v]
        """
    )
    a = np.arange(48, dtype="f4").reshape(6, 8)
    assert np.array_equal(result_of(func, a), a.sum(1))


def test_a_recomputed_reduction_starts_again_when_a_point_comes_back() -> None:
    func = parse(
        """
        def f(a: float32[6, 3], y: output(float32[5])):
            s = alloc(float32[6], "global")
            for i in range(5):
                for h in range(2):
                    for k in range(3):
                        with block("s", vi=spatial(6, i + h), vk=reduce(3, k), recomputed=True):
                            with init():
                                s[vi] = 0.0
                            s[vi] = s[vi] + a[vi, vk]
                with block("y", v=spatial(5, i)):
                    y[v] = s[v] + s[v + 1]
        """
    )
    a = np.arange(18, dtype="f4").reshape(6, 3)
    s = a.sum(1)
    assert np.array_equal(result_of(func, a), s[1:] + s[:-1])


def test_a_reduction_in_storage_of_its_own_iteration_is_initialised_in_each() -> None:
    func = parse(
        """
        def f(a: float32[3, 4], y: output(float32[3])):
            for i in parallel(3):
                t = alloc(float32[3], "thread")
                for k in range(4):
                    with block("t", vi=spatial(3, i), vk=reduce(4, k)):
                        with init():
                            t[vi] = 0.0
                        t[vi] = t[vi] + a[vi, vk]
                with block("y", v=spatial(3, i)):
                    y[v] = t[v] * 2.0
        """
    )
    a = np.arange(12, dtype="f4").reshape(3, 4)
    assert np.array_equal(result_of(func, a), a.sum(1) * 2)


def test_stores_may_scatter() -> None:
    func = parse(
        """
        def f(at: int64[4], x: float32[4], y: output(float32[2, 4])):
            for i in range(8):
                y[i // 4, i % 4] = 0.0
            masked(y[1, at[ramp(0, 1, 4)]], x[ramp(0, 1, 4)] < broadcast(3.0, 4)) = x[ramp(0, 1, 4)]
        """
    )
    got = result_of(func, np.array([3, 1, 0, 2]), np.array([1, 2, 3, 0], "f4"))
    assert got.tolist() == [[0, 0, 0, 0], [0, 2, 0, 1]]


def test_the_text_is_python_that_names_nothing_of_the_user() -> None:
    func = elementwise(lambda x: Add(x, x), FLOAT32, FLOAT32)
    source = python_program(func).source
    assert source == (
        "def run(arrays, watch):\n"
        " new = 0\n"
        " b1 = arrays[0]\n"
        " b2 = arrays[1]\n"
        " for v3 in range(7):\n"
        "  b2[v3] = (b1[v3] + b1[v3])"
    )


def test_the_values_of_all_stores_of_a_block_are_computed_before_any_is_written() -> None:
    func = parse("""
def f(X: float32[3], A: output(float32[3]), B: output(float32[3])):
    for i in range(3):
        with block("A_first", v=spatial(3, i)):
            A[v] = X[v]
            B[v] = X[v] * 2.0
    for i in range(3):
        with block("A", v=spatial(3, i)):
            A[v] = B[v]
            B[v] = A[v]
""")
    data = np.arange(3, dtype=np.float32)
    for checked in (False, True):
        a, b = interpret(func, data, checked=checked)
        np.testing.assert_array_equal(a, data * 2)
        np.testing.assert_array_equal(b, data)


def test_an_element_none_of_whose_points_counts_is_initialised_all_the_same() -> None:
    func = parse("""
def f(X: float32[3, 4], Y: output(float32[3])):
    for i in range(3):
        for k in range(4):
            with block("Y", vi=spatial(3, i), vk=reduce(4, k)):
                counts(vk < vi)
                with init():
                    Y[vi] = 7.0
                Y[vi] = Y[vi] + X[vi, vk]
""")
    for checked in (False, True):
        (y,) = interpret(func, np.ones((3, 4), np.float32), checked=checked)
        np.testing.assert_array_equal(y, [7, 8, 9])


def test_a_vector_cast_beside_an_allocation_of_its_type_converts() -> None:
    func = parse("""
def f(X: int32[8], Y: output(float32[8])):
    t = alloc(float32[8], "thread")
    t[ramp(0, 1, 8)] = cast(X[ramp(0, 1, 8)], "float32x8")
    Y[ramp(0, 1, 8)] = t[ramp(0, 1, 8)]
""")
    data = np.arange(8, dtype=np.int32)
    (y,) = interpret(func, data)
    np.testing.assert_array_equal(y, data.astype(np.float32))
