"""tir/te/reductions.py: reductions of one value and of several, by NumPy; what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te
from tilewright.tir.verify.verify import Stage, verify

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

A = te.placeholder((5, 12), "float32", name="A")
K = te.reduce_axis(12, name="k")


def joined(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """(largest, sum of the exponentials of what is below it)"""
    top = te.maximum(a[0], b[0])
    return top, a[1] * te.exp(a[0] - top) + b[1] * te.exp(b[0] - top)


log_sum_exp = te.comm_reducer(joined, lambda m, s: (te.const(-1e30, m), 0), name="log_sum_exp")


def run(func: PrimFunc, *arrays: Array) -> tuple[Array, ...]:
    """What the interpreter gives; the evaluator gives the same, the text is read back."""
    verify(func, Stage.TENSOR)
    assert str(parse(str(func))) == str(func)
    results = interpret(func, *arrays, checked=True)
    expected = evaluate(func, arrays)
    for buffer, result in zip(func.outputs, results, strict=True):
        np.testing.assert_allclose(result, expected[buffer.name], rtol=2e-6)
    return results


def test_a_reduction_of_several_values_is_one_block_of_several_stores() -> None:
    x = te.placeholder((4, 3), "float32", name="X")
    k = te.reduce_axis(3, name="k")
    one = te.const(1, "float32")
    m, s = te.compute((4,), lambda i: log_sum_exp((x[i, k], one), axis=k), name=("m", "s"))
    assert (m.name, s.name, m.shape, str(s.dtype)) == ("m", "s", (4,), "float32")
    assert str(te.func(x, m, s, name="lse")) == (
        "def lse(X: float32[4, 3], m: output(float32[4]), s: output(float32[4])):\n"
        "    for i in range(4):\n"
        "        for k in range(3):\n"
        '            with block("m", vi=spatial(4, i), vk=reduce(3, k)):\n'
        "                with init():\n"
        "                    m[vi] = -1e+30\n"
        "                    s[vi] = 0.0\n"
        "                m[vi] = let(x0, X[vi, vk], let(x1, 1.0, max(m[vi], x0)))\n"
        "                s[vi] = let(x0_1, X[vi, vk], let(x1_1, 1.0, "
        "s[vi] * exp(m[vi] - max(m[vi], x0_1)) + x1_1 * exp(x0_1 - max(m[vi], x0_1))))"
    )


def test_log_sum_exp_is_that_of_numpy() -> None:
    one = te.const(1, "float32")
    m, s = te.compute((5,), lambda i: log_sum_exp((A[i, K], one), axis=K), name=("m", "s"))
    y = te.compute((5,), lambda i: m[i] + te.log(s[i]), name="Y")
    data = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32) * 30
    (found,) = run(te.func(A, y, name="lse"), data)
    wide = data.astype(np.float64)
    top = np.max(wide, axis=1)
    wanted = top + np.log(np.sum(np.exp(wide - top[:, None]), axis=1))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_nobody_asked_for_becomes_an_intermediate() -> None:
    _, at = te.compute((5,), lambda i: te.argmax(A[i, K], axis=K), name=("best", "at"))
    func = te.func(A, at, name="where_is_it")
    assert [buffer.name for buffer in func.allocations] == ["best"]
    (found,) = run(func, np.eye(5, 12, dtype=np.float32))
    np.testing.assert_array_equal(found, np.arange(5))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_place_is_that_of_numpy_for_ties_infinities_and_nan(name: str, dtype: str) -> None:
    x = te.placeholder((5, 12), dtype, name="X")
    reduce = getattr(te, name)
    best, at = te.compute((5,), lambda i: reduce(x[i, K], axis=K), name=("best", "at"))
    data = np.random.default_rng(3).integers(-1, 2, (5, 12)).astype(dtype)
    if x.dtype.is_float:
        data[1] = -np.inf if name == "argmax" else np.inf
        data[2, 7:9] = np.nan
    values, places = run(te.func(x, best, at, name="f"), data)
    np.testing.assert_array_equal(places, getattr(np, name)(data, axis=1))
    np.testing.assert_array_equal(values, getattr(np, name.removeprefix("arg"))(data, axis=1))


def test_a_place_counts_through_several_axes_in_row_major_order() -> None:
    x = te.placeholder((3, 4, 5), "float32", name="X")
    p, q = te.reduce_axis(4, name="p"), te.reduce_axis(5, name="q")
    _, at = te.compute(
        (3,), lambda i: te.argmax(x[i, p, q], axis=(p, q), dtype="int32"), name=("best", "at")
    )
    data = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    (found,) = run(te.func(x, at, name="f"), data)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.argmax(data.reshape(3, -1), axis=1))


def test_any_and_all_reduce_truth_values() -> None:
    some = te.compute((5,), lambda i: te.any(A[i, K] > 2.0, axis=K), name="some")
    every = te.compute((5,), lambda i: te.all(A[i, K] > -2.0, axis=K), name="every")
    data = np.random.default_rng(1).standard_normal((5, 12)).astype(np.float32)
    found = run(te.func(A, some, every, name="f"), data)
    np.testing.assert_array_equal(found[0], np.any(data > 2, axis=1))
    np.testing.assert_array_equal(found[1], np.all(data > -2, axis=1))
    assert {array.dtype for array in found} == {np.dtype(np.bool_)}


def test_points_where_the_condition_fails_are_left_out() -> None:
    total = te.compute((5,), lambda i: te.sum(A[i, K], axis=K, where=i > K), name="total")
    func = te.func(A, total, name="causal")
    assert str(func) == (
        "def causal(A: float32[5, 12], total: output(float32[5])):\n"
        "    for i in range(5):\n"
        "        for k in range(12):\n"
        '            with block("total", vi=spatial(5, i), vk=reduce(12, k)):\n'
        "                counts(vk < vi)\n"
        "                with init():\n"
        "                    total[vi] = 0.0\n"
        "                total[vi] = total[vi] + A[vi, vk]"
    )
    data = np.random.default_rng(0).integers(-5, 6, (5, 12)).astype(np.float32)
    (found,) = run(func, data)
    wanted = [float(np.sum(data[i, :i])) for i in range(5)]
    np.testing.assert_array_equal(found, wanted)


def test_a_condition_on_data_combines_the_identity_where_it_fails() -> None:
    flags = te.placeholder((12,), "bool", name="F")
    most = te.compute(
        (5,),
        lambda i: te.max(A[i, K], axis=K, where=te.all_of(flags[K], K < 10)),
        name="most",
    )
    func = te.func(A, flags, most, name="masked")
    assert "counts(vk < 10)" in str(func)
    assert 'max(most[vi], select(F[vk], A[vi, vk], float("-inf")))' in str(func)
    data = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
    on = np.arange(12) % 3 != 0
    (found,) = run(func, data, on)
    np.testing.assert_array_equal(found, np.max(data[:, :10][:, on[:10]], axis=1))


def test_what_is_left_out_is_not_read() -> None:
    shifted = te.compute((5,), lambda i: te.max(A[i, K - 3], axis=K, where=K >= 3), name="shifted")
    data = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
    (found,) = run(te.func(A, shifted, name="f"), data)
    np.testing.assert_array_equal(found, np.max(data[:, :9], axis=1))


def test_where_no_point_counts_there_is_the_identity() -> None:
    reduced = te.compute((5,), lambda i: te.max(A[i, K], axis=K, where=i - 9 > K), name="none")
    best, at = te.compute(
        (5,), lambda i: te.argmax(A[i, K], axis=K, where=K < 0), name=("best", "at")
    )
    found = run(te.func(A, reduced, best, at, name="f"), np.zeros((5, 12), np.float32))
    np.testing.assert_array_equal(found[0], np.full(5, -np.inf))
    np.testing.assert_array_equal(found[1], np.full(5, -np.inf))
    np.testing.assert_array_equal(found[2], np.full(5, np.iinfo(np.int64).max))


def test_several_expressions_are_several_tensors() -> None:
    low, high = te.compute((5, 12), lambda i, j: (A[i, j] - 1, A[i, j] + 1), name=("low", "high"))
    func = te.func(A, low, high, name="both")
    assert str(func).endswith(
        '            with block("low", vi=spatial(5, i), vj=spatial(12, j)):\n'
        "                low[vi, vj] = A[vi, vj] - 1.0\n"
        "                high[vi, vj] = A[vi, vj] + 1.0"
    )
    data = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
    found = run(func, data)
    np.testing.assert_array_equal(found[0], data - 1)
    np.testing.assert_array_equal(found[1], data + 1)


def test_a_reducer_of_one_value_is_written_without_tuples() -> None:
    norm = te.comm_reducer(lambda a, b: te.sqrt(a * a + b * b), lambda t: 0, name="norm")
    positive = te.comm_reducer(te.maximum, lambda t: te.const(-1e30, t), name="largest")
    y = te.compute((5,), lambda i: positive(A[i, K], axis=K), name="Y")
    data = np.random.default_rng(0).standard_normal((5, 12)).astype(np.float32)
    (found,) = run(te.func(A, y, name="f"), data)
    np.testing.assert_array_equal(found, np.max(data, axis=1))
    with pytest.raises(IRError, match="identity, a"):  # sqrt(0 + a*a) is |a|
        norm(A[0, K], axis=K)


REFUSALS: dict[str, Callable[[], object]] = {
    "place": lambda: te.argmax(A[0, K], axis=K, dtype="float32"),
    "place too small": lambda: te.argmax(A[0, K], axis=te.reduce_axis(300), dtype="int8"),
    "names": lambda: te.compute((5,), lambda i: te.argmax(A[i, K], axis=K), name="best"),
    "one name too few": lambda: te.compute((5,), lambda i: (A[i, 0], A[i, 1]), name=("a",)),
    "reductions": lambda: te.compute(
        (5,),
        lambda i: (te.sum(A[i, K], axis=K), te.max(A[i, K], axis=K)),
        name=("total", "most"),
    ),
    "values": lambda: te.comm_reducer(lambda a, b: a[0] + b[0], lambda t, u: (0, 0), name="s")(
        (A[0, K], A[1, K]), axis=K
    ),
    "identity": lambda: te.comm_reducer(
        lambda a, b: a + b, lambda t: te.const(0, "int32"), name="s"
    )(A[0, K], axis=K),
}


def test_refusals(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, build in REFUSALS.items():
        with pytest.raises(IRError) as refusal:
            build()
        texts.append(f"# {name}\n{refusal.value}")
    golden("errors/te_reduce.txt", "\n\n".join(texts))


@pytest.mark.parametrize("value", [0, 1, 2])
def test_a_product_of_a_constant_is_a_product(value: int) -> None:
    k = te.reduce_axis(3, name="k")
    y = te.compute((2,), lambda i: te.prod(te.const(value, "int32"), axis=k), name="Y")
    (found,) = evaluate(te.func(y, name="f"), []).values()
    assert found.tolist() == [value**3] * 2
