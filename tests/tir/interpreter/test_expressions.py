"""tir/interpreter/expressions.py: the meaning of each expression, of scalars and of vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir import intrinsics
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BOOL, FLOAT32, INT32, INT64, DType, dtype
from tilewright.tir.expr import (
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    const,
)
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import InterpreterError, interpret
from tilewright.tir.lowered import Reinterpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reduce import Reduce
from tilewright.tir.stmt import For, ForKind, Parameter, Store
from tilewright.tir.te import te
from tilewright.tir.te.reductions import SUM

RNG = np.random.default_rng(0)
INTEGERS = [dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


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


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("node", [Add, Sub, Mul, Min, Max, FloorDiv, FloorMod])
def test_integers_wrap_around_and_divide_downwards(kind: DType, node: type) -> None:
    info = np.iinfo(kind.numpy)
    a = np.array([info.max, info.min, 7, 7, info.min, 0, info.max], kind.numpy)
    b = np.array([2, 3, info.min or 3, info.max, info.max, 5, info.max], kind.numpy)
    meaning = {
        Add: np.add,
        Sub: np.subtract,
        Mul: np.multiply,
        Min: np.minimum,
        Max: np.maximum,
        FloorDiv: np.floor_divide,
        FloorMod: np.mod,
    }[node]
    with np.errstate(all="ignore"):
        expected = meaning(a, b)
    got = result_of(elementwise(node, kind, kind, kind), a, b)
    assert got.dtype == kind.numpy
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("node", [BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight])
def test_bits_and_shifts_are_those_of_numpy_for_every_count(kind: DType, node: type) -> None:
    info = np.iinfo(kind.numpy)
    a = np.array([info.max, info.min, 7, 85, info.min, 9, info.max - 1], kind.numpy)
    meaning = {
        BitAnd: np.bitwise_and,
        BitOr: np.bitwise_or,
        BitXor: np.bitwise_xor,
        ShiftLeft: np.left_shift,
        ShiftRight: np.right_shift,
    }[node]
    for start in (0, kind.bits - 4, info.min or 100, info.max - 7):
        b = np.array(range(start, start + 7), kind.numpy)
        got = result_of(elementwise(node, kind, kind, kind), a, b)
        assert got.dtype == kind.numpy
        assert np.array_equal(got, meaning(a, b)), b


def test_a_count_beyond_the_width_leaves_nothing_but_the_sign() -> None:
    a = np.array([-9, 9, -1, 1, -9, 9, 5], np.int32)
    b = np.array([32, 32, -1, -1, 2**31 - 1, 40, 31], np.int32)
    left = result_of(elementwise(ShiftLeft, INT32, INT32, INT32), a, b)
    right = result_of(elementwise(ShiftRight, INT32, INT32, INT32), a, b)
    assert left.tolist() == [0, 0, 0, 0, 0, 0, -(2**31)]
    assert right.tolist() == [-1, 0, -1, 0, -1, 0, 0]


def test_the_smallest_integer_divided_by_minus_one_wraps_around() -> None:
    low = np.iinfo(np.int32).min
    a, b = np.full(7, low, np.int32), np.full(7, -1, np.int32)
    assert (result_of(elementwise(FloorDiv, INT32, INT32, INT32), a, b) == low).all()
    assert (result_of(elementwise(FloorMod, INT32, INT32, INT32), a, b) == 0).all()


@pytest.mark.parametrize("source", [*INTEGERS, BOOL, FLOAT32, dtype("float64")], ids=str)
@pytest.mark.parametrize("target", [*INTEGERS, BOOL, FLOAT32, dtype("float64")], ids=str)
def test_casts_truncate_wrap_and_compare_with_zero(source: DType, target: DType) -> None:
    if source.is_float:
        a = np.array([0.0, 1.0, 99.75, 0.25, 3.0, -0.0, 100.5], source.numpy)
    elif source.is_bool:
        a = np.array([0, 1, 1, 0, 1, 0, 1], bool)
    else:
        info = np.iinfo(source.numpy)
        a = np.array([info.min, info.max, 0, 1, info.max - 1, 100, info.max // 3], source.numpy)
    expected = a != 0 if target.is_bool else a.astype(target.numpy)
    got = result_of(elementwise(lambda x: Cast(x, target), target, source), a)
    assert np.array_equal(got, expected)


def test_reinterpret_reads_the_same_bits() -> None:
    a = RNG.standard_normal(7).astype("f4")
    func = elementwise(lambda x: Reinterpret(x, INT32), INT32, FLOAT32)
    assert np.array_equal(result_of(func, a), a.view(np.int32))
    func = elementwise(lambda x: Reinterpret(x, FLOAT32), FLOAT32, INT32)
    assert np.array_equal(result_of(func, a.view(np.int32)), a)


@pytest.mark.parametrize("intrinsic", intrinsics.ALL, ids=lambda item: item.name)
def test_intrinsics_are_what_they_are_declared_to_mean(intrinsic: intrinsics.Intrinsic) -> None:
    arrays = [np.arange(1, 8, dtype="f4") for _ in range(intrinsic.arity)]
    func = elementwise(lambda *x: Call(intrinsic, x), FLOAT32, *[FLOAT32] * intrinsic.arity)
    got = result_of(func, *arrays)
    np.testing.assert_allclose(got, intrinsic.meaning(*arrays), rtol=1e-6)


def test_floats_follow_ieee_where_python_would_raise() -> None:
    a = te.placeholder((4,), "float32", name="a")
    func = te.func(a, te.compute((4,), lambda i: a[i] / (a[i] - a[i]) * a[i], name="r"), name="f")
    got = result_of(func, np.array([1, -1, 0, 3e38], np.float32))
    assert np.array_equal(got, [np.inf, np.inf, np.nan, np.inf], equal_nan=True)


def test_min_and_max_propagate_nan() -> None:
    a = np.array([1, np.nan, 3, np.nan, 5, -1, 0], "f4")
    b = np.array([np.nan, 2, 1, np.nan, 7, -2, 0], "f4")
    for node, meaning in ((Min, np.minimum), (Max, np.maximum)):
        got = result_of(elementwise(node, FLOAT32, FLOAT32, FLOAT32), a, b)
        assert np.array_equal(got, meaning(a, b), equal_nan=True)


def test_let_evaluates_its_value_once_under_its_own_name() -> None:
    x = Var("x", FLOAT32)

    def square(a: Expr) -> Expr:
        return Let(x, Add(a, const(1, "float32")), Mul(x, x))

    a = np.arange(7, dtype="f4")
    assert np.array_equal(result_of(elementwise(square, FLOAT32, FLOAT32), a), (a + 1) ** 2)


def test_a_let_in_a_branch_is_evaluated_only_in_that_branch() -> None:
    inputs, i, x = Buffer("a", INT64, (7,)), Var("i"), Var("x")
    out = Buffer("out", INT64, (7,))
    seven = const(7, INT64)
    safe = Let(x, Load(inputs, (Add(i, const(3, INT64)),)), FloorDiv(seven, x))
    value = Select(te.all_of(i < 4, te.ne(Load(inputs, (i + 3,)), 0)), safe, seven)
    parameters = (Parameter(inputs, "input"), Parameter(out, "output"))
    func = PrimFunc("f", parameters, For(i, 7, ForKind.SERIAL, Store(out, (i,), value)))
    got = result_of(func, np.array([1, 2, 3, 0, 5, 2, -2]))
    assert list(got) == [7, 1, 3, -4, 7, 7, 7]


def test_expressions_may_nest_deeper_than_python_lets_parentheses() -> None:
    def deep(a: Expr) -> Expr:
        value = a
        for _ in range(60):
            value = Select(te.ne(a, 3.5), Min(Add(value, a), const(1e6, "float32")), a)
        return value

    a = np.arange(7, dtype="f4")
    assert np.array_equal(result_of(elementwise(deep, FLOAT32, FLOAT32), a), a * 61)


LOWERED = """
def axpy(x: float32[21], y: float32[21], n: int64[1], z: output(float32[21])):
    total = alloc(float32x8[()], "register")
    for i in range(3):
        on: boolx8 = ramp(i * 8, 1, 8) < broadcast(21, 8)
        total[()] = masked(y[ramp(i * 8, 1, 8)], on, broadcast(0.5, 8))
        v: float32x8 = masked(x[ramp(i * 8, 1, 8)], on)
        prefetch(x[i * 8 + 8], "read", 1)
        if i < 2:
            z[ramp(i * 8, 1, 8)] = fma(v, broadcast(2.0, 8), total[()])
        else:
            masked(z[ramp(i * 8, 1, 8)], on) = fma(v, broadcast(2.0, 8), total[()])
        barrier()
"""


def test_lowered_code_with_vectors_masks_and_registers() -> None:
    x, y = RNG.standard_normal((2, 21)).astype("f4")
    func = parse(LOWERED.replace("        barrier()\n", ""))
    got = result_of(func, x, y, np.zeros(1, np.int64))
    expected = (x.astype("f8") * 2 + y).astype("f4")  # the product by 2 is exact
    assert np.array_equal(got, expected)


VECTOR = """
def f(a: int32[8], b: int32[8], x: float32[8], p: output(int32[8]), q: output(float32[8])):
    w: int32x8 = a[ramp(0, 1, 8)]
    v: int32x8 = b[ramp(7, -1, 8)]
    on: boolx8 = v != broadcast(int32(0), 8)
    p[ramp(0, 1, 8)] = PLACE
    q[ramp(0, 1, 8)] = select(on and not w == v, max(x[ramp(0, 1, 8)], broadcast(0.25, 8)), \
broadcast(x[3], 8))
"""


@pytest.mark.parametrize(
    ("text", "scalar"),
    [
        ("w + v * w - v", lambda w, v: w + v * w - v),
        ("select(on, w // v, v)", lambda w, v: np.where(v != 0, w // np.where(v, v, 1), v)),
        ("select(on, w % v, v)", lambda w, v: np.where(v != 0, w % np.where(v, v, 1), v)),
        (
            "select(on and 0 < 1, min(w, v), w)".replace("0 < 1", "w <= v"),
            lambda w, v: np.where((v != 0) & (w <= v), np.minimum(w, v), w),
        ),
        (
            "select(w < v or v == w, broadcast(int32(7), 8), reinterpret(x[ramp(0, 1, 8)],"
            ' "int32x8"))',
            None,
        ),
        ('cast(cast(w, "float32x8"), "int32x8")', lambda w, v: w),
        ("b[a[ramp(0, 1, 8)] * int32(0) + v * int32(0)]".replace("int32(0)", "z"), None),
    ],
)
def test_vectors_do_in_each_lane_what_scalars_do(
    text: str, scalar: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
) -> None:
    a = np.array([5, -7, 9, 2**31 - 1, 0, 3, 3, -1], np.int32)
    b = np.array([2, 3, -4, 0, 5, 2, -2, 7], np.int32)
    x = RNG.standard_normal(8).astype("f4")
    text = text.replace(" * z", " * broadcast(int32(0), 8)")
    p, q = interpret(parse(VECTOR.replace("PLACE", text)), a, b, x)
    checked = interpret(parse(VECTOR.replace("PLACE", text)), a, b, x, checked=True)
    w, v = a, b[::-1]
    with np.errstate(all="ignore"):
        if scalar is not None:
            expected = scalar(w, v)
        elif text.startswith("select"):
            expected = np.where(w <= v, 7, x.view(np.int32))
        else:
            expected = np.full(8, b[0])
    assert np.array_equal(p, expected)
    assert np.array_equal(q, np.where((v != 0) & (w != v), np.maximum(x, 0.25), x[3]))
    assert np.array_equal(p, checked[0])
    assert np.array_equal(q, checked[1])


def test_lanes_of_a_vector_are_a_shorter_one_or_a_number() -> None:
    func = parse(
        """
        def f(a: int32[8], y: output(int32[4])):
            v: int32x8 = a[ramp(0, 1, 8)]
            y[ramp(0, 1, 4)] = lanes(v, 4, 4)
            y[1] = lanes(v, 2, 1) + lanes(lanes(v, 4, 4), 3, 1)
        """
    )
    a = np.array([0, 1, 2**31 - 1, 3, 4, 5, 6, 1], np.int32)
    assert list(result_of(func, a)) == [4, -(2**31), 6, 1]


def test_lanes_that_a_select_leaves_out_load_nothing() -> None:
    func = parse(
        """
        def f(x: float32[5], y: output(float32[8])):
            i: int64x8 = ramp(-2, 1, 8)
            inside: boolx8 = broadcast(0, 8) <= i and i < broadcast(5, 8)
            y[ramp(0, 1, 8)] = select(inside, x[i], broadcast(9.0, 8))
        """
    )
    x = np.arange(5, dtype="f4")
    assert list(result_of(func, x)) == [9, 9, 0, 1, 2, 3, 4, 9]


def test_a_mask_of_lanes_says_nothing_of_the_elements_of_a_lane() -> None:
    """The first lane alone is on, and has three of its four points."""
    func = parse(
        """
        def f(a: uint8[4], b: int8[16], c: output(int32[4])):
            c[ramp(0, 1, 4)] = broadcast(int32(5), 4)
            c[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(1, 4), usdot(c[ramp(0, 1, 4)], \
broadcast(reinterpret(masked(a[ramp(0, 1, 4)], ramp(0, 1, 4) < broadcast(3, 4)), "int32"), 4), \
reinterpret(b[ramp(0, 1, 16) // broadcast(1, 16)], "int32x4")), c[ramp(0, 1, 4)])
        """
    )
    a, b = np.array([1, 2, 3, 4], np.uint8), np.arange(1, 17).astype(np.int8)
    assert list(result_of(func, a, b)) == [5 + 1 * 1 + 2 * 2 + 3 * 3, 5, 5, 5]


def test_a_broadcast_load_in_a_branch_that_no_lane_takes_does_not_happen() -> None:
    func = parse(
        """
        def f(x: float32[2], y: output(float32[4])):
            for i in range(3):
                on: boolx4 = broadcast(i, 4) < broadcast(2, 4)
                y[ramp(0, 1, 4)] = select(on, broadcast(x[i], 4), broadcast(5.0, 4))
        """
    )
    assert list(result_of(func, np.ones(2, "f4"))) == [5, 5, 5, 5]


def test_or_does_not_evaluate_its_second_operand_in_vain() -> None:
    func = parse(
        """
        def f(x: int32[4], y: output(bool[4])):
            for i in range(4):
                y[i] = 2 <= i or x[i + 2] == int32(3)
        """
    )
    assert list(result_of(func, np.array([0, 0, 3, 4], np.int32))) == [True, False, True, True]


def test_masked_scalars_load_and_store_only_where_the_mask_holds() -> None:
    func = parse(
        """
        def f(x: float32[4], y: output(float32[4])):
            for i in range(4):
                y[i] = 1.0
                masked(y[i], i % 2 == 0) = masked(x[i + 2], i < 2, -1.0)
        """
    )
    assert list(result_of(func, np.arange(4, dtype="f4"))) == [2, 1, -1, 1]


def test_masked_register_vectors_keep_the_lanes_that_are_off() -> None:
    func = parse(
        """
        def f(x: float32[4], y: output(float32[4])):
            r = alloc(float32x4[2], "register")
            r[1] = broadcast(7.0, 4)
            masked(r[1], ramp(0, 1, 4) < broadcast(2, 4)) = x[ramp(0, 1, 4)]
            y[ramp(3, -1, 4)] = masked(r[1], broadcast(True, 4), broadcast(0.0, 4))
        """
    )
    assert list(result_of(func, np.arange(4, dtype="f4"))) == [7, 7, 1, 0]


def test_select_of_a_scalar_condition_takes_one_vector() -> None:
    func = parse(
        """
        def f(x: float32[4], y: output(float32[8])):
            for i in range(2):
                y[ramp(i * 4, 1, 4)] = select(i < 1, x[ramp(i * 4, 1, 4)], broadcast(3.0, 4))
        """
    )
    assert list(result_of(func, np.arange(4, dtype="f4"))) == [0, 1, 2, 3, 3, 3, 3, 3]


def rendered(func: PrimFunc, *arrays: np.ndarray, **options: object) -> str:
    with pytest.raises(InterpreterError) as caught:
        interpret(func, *arrays, **options)
    return str(caught.value)


def test_names_that_nothing_binds_are_refused() -> None:
    out = Buffer("out", INT64, (7,))
    assert rendered(elementwise(lambda x: Var("j"), INT64, INT64), np.ones(7, int)) == (
        "InterpreterError: interpreter: variable 'j' is used where nothing binds it. "
        "[interpreter-variable]"
    )
    assert rendered(elementwise(lambda x: Load(out, x.indices), INT64, INT64), np.ones(7, int)) == (
        "InterpreterError: interpreter: buffer 'out' is used outside its Alloc; "
        "expected one of 'a0', 'out'. [interpreter-scope]"
    )
    total = Reduce(SUM, (Const(1, INT64),), (), ())
    assert rendered(elementwise(lambda x: total, INT64, INT64), np.ones(7, int)) == (
        "InterpreterError: interpreter: 'Reduce' cannot be executed; "
        "expected an expression of a function. [interpreter-expression]"
    )


def test_a_vector_is_converted_to_the_type_of_a_buffer_of_the_same_function() -> None:
    func = parse("""
def f(A: int64[4], Y: output(float64[4])):
    T = alloc(float64[4], "global")
    T[ramp(0, 1, 4)] = cast(A[ramp(0, 1, 4)], "float64x4")
    Y[ramp(0, 1, 4)] = T[ramp(0, 1, 4)]
""")
    (result,) = interpret(func, np.arange(4))
    np.testing.assert_array_equal(result, np.arange(4.0))
