"""tir/reference/error_bound.py: honest results pass, wrong ones do not, in any order of sums."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.dtype import dtype
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import (
    Comparison,
    Expected,
    Reference,
    reference,
    sample_of,
)
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te


def random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gelu_layer(m: int, n: int, steps: int) -> PrimFunc:
    a = te.placeholder((m, steps), "float32", name="A")
    b = te.placeholder((steps, n), "float32", name="B")
    k = te.reduce_axis(steps, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    half_erf = lambda x: x * 0.5 * (te.erf(x * 0.7071067811865476) + 1.0)  # noqa: E731
    y = te.compute((m, n), lambda i, j: half_erf(c[i, j]), name="Y")
    return te.func(a, b, y, name="gelu_layer")


def elementwise(value: str, dtype: str = "float32") -> PrimFunc:
    x = te.placeholder((5000,), dtype, name="X")
    function = {"tanh": te.tanh, "double": lambda v: v * 2, "exp": te.exp}[value]
    return te.func(x, te.compute((5000,), lambda i: function(x[i]), name="Y"), name=value)


def attention(heads: int, rows: int, width: int) -> PrimFunc:
    q, k, v = (te.placeholder((heads, rows, width), "float32", name=n) for n in "QKV")
    d, j, t, m = (te.reduce_axis(n) for n in (width, rows, rows, rows))
    square, line = (heads, rows, rows), (heads, rows)
    s = te.compute(square, lambda h, i, j: te.sum(q[h, i, d] * k[h, j, d], axis=d), name="S")
    top = te.compute(line, lambda h, i: te.max_any(s[h, i, j], axis=j), name="top")
    e = te.compute(square, lambda h, i, j: te.exp(s[h, i, j] - top[h, i]), name="E")
    total = te.compute(line, lambda h, i: te.sum(e[h, i, t], axis=t), name="total")
    p = te.compute(square, lambda h, i, j: e[h, i, j] / total[h, i], name="P")
    y = te.compute(q.shape, lambda h, i, w: te.sum(p[h, i, m] * v[h, m, w], axis=m), name="Y")
    return te.func(q, k, v, y, name="attention")


def test_another_order_of_summation_passes() -> None:
    func = gelu_layer(64, 96, 512)
    arrays = [random((64, 512)), random((512, 96), 1)]
    verdict = reference(func, arrays).compare(evaluate(func, arrays))
    assert verdict
    assert 0 < verdict.ratio < 0.5


def test_an_error_in_one_element_is_found_and_named() -> None:
    func = gelu_layer(64, 96, 512)
    arrays = [random((64, 512)), random((512, 96), 1)]
    expected = reference(func, arrays)
    outputs = evaluate(func, arrays)
    outputs["Y"][17, 5] += np.float32(0.01)
    verdict = expected.compare(outputs)
    assert not verdict
    assert (verdict.output, verdict.index) == ("Y", (17, 5))
    assert verdict.ratio > 1


def test_a_result_of_lower_precision_fails() -> None:
    func = gelu_layer(64, 96, 512)
    arrays = [random((64, 512)), random((512, 96), 1)]
    rounded = [a.astype(np.float16).astype(np.float32) for a in arrays]
    assert not reference(func, arrays).compare(evaluate(func, rounded))


def test_the_bound_is_the_factor_times_the_scale_of_an_element_and_four_ulp() -> None:
    value, scale = np.array([1.0, 1000.0, 0.0]), np.array([1e-6, 1e-3, 0.0])
    expected = Expected("Y", dtype("float32"), value, scale, 3.0, 1e-6, 3)
    ulp = np.spacing(value.astype(np.float32)).astype(float)
    np.testing.assert_allclose(expected.allowed(), 3 * scale + 4 * ulp, rtol=1e-12)
    np.testing.assert_allclose(expected.allowed(2.0), 2 * (3 * scale + 4 * ulp), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "ulp"),
    [
        ("float16", 1.0, 2**-10),
        ("float16", 65504.0, 32.0),
        ("bfloat16", 3.0, 2**-6),
        ("float8_e4m3fn", 1.0, 2**-3),
        ("float8_e4m3fn", 448.0, 32.0),  # the largest: what follows is NaN
        ("float8_e5m2", -57344.0, 8192.0),
        ("float8_e5m2", 0.0, 2**-16),
        ("float8_e4m3fnuz", 240.0, 16.0),
        ("float8_e5m2fnuz", 0.0, 2**-17),
        ("float4_e2m1fn", 6.0, 2.0),  # the largest: nothing follows
        ("float4_e2m1fn", 1.0, 0.5),
        ("float16", 1e6, 0.0),  # infinity there
    ],
)
def test_a_storage_type_allows_half_of_its_ulp_beside_that_of_what_is_rounded(
    name: str, value: float, ulp: float
) -> None:
    expected = Expected("Y", dtype(name), np.array([value]), None, 1.0, 0.0, 1)
    inner = float(np.spacing(np.float32(abs(value))))
    assert expected.allowed()[0] == 4 * inner + ulp / 2


def test_integers_allow_nothing_but_their_scale() -> None:
    assert Expected("Y", dtype("int4"), np.array([3.0]), None, 9.0, 0.0, 1).allowed()[0] == 0
    scale = np.array([0.5])
    assert Expected("Y", dtype("int8"), np.array([3.0]), scale, 2.0, 0.0, 1).allowed()[0] == 1


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_rounded_output_passes_and_one_five_places_off_fails(name: str) -> None:
    x = te.placeholder((64,), name, name="X")
    wide = te.compute((64,), lambda i: te.cast(x[i], "float32"), name="W")
    func = te.func(x, te.compute((64,), lambda i: te.cast(wide[i], name), name="Y"), name="same")
    given = np.linspace(1, 1.9, 64).astype(dtype(name).numpy)
    expected = reference(func, [given])
    assert expected.compare([given])
    off = (given.astype(np.float64) + 5 * float(np.spacing(given[0]))).astype(given.dtype)
    assert not expected.compare([off])


def test_growth_widens_the_verdict() -> None:
    func = elementwise("double")
    x = random((5000,))
    y = evaluate(func, [x])
    y["Y"] += np.spacing(np.abs(y["Y"])) * np.float32(6)
    assert not reference(func, [x]).compare(y)
    assert reference(func, [x], growth=2.0).compare(y)


def test_not_a_number_and_infinities_must_be_the_same() -> None:
    func = elementwise("exp")
    x = np.zeros(5000, dtype=np.float32)
    x[:4] = [np.nan, np.inf, 200.0, 1.0]  # e**200 is a float64, but no float32
    expected, right = reference(func, [x]), evaluate(func, [x])
    assert expected.compare(right)
    for at, wrong in [(0, 1.0), (1, 3e38), (2, 3e38), (3, np.nan), (3, np.inf)]:
        broken = {"Y": right["Y"].copy()}
        broken["Y"][at] = wrong
        verdict = expected.compare(broken)
        assert not verdict, (at, wrong)
        assert verdict.index == (at,)
        assert verdict.ratio > 1e6


def test_integers_are_compared_exactly() -> None:
    x = te.placeholder((8,), "int32", name="X")
    func = te.func(x, te.compute((8,), lambda i: x[i] * 3, name="Y"), name="triple")
    given = np.arange(8, dtype=np.int32)
    expected = reference(func, [given])
    assert expected.compare([given * 3])
    assert not expected.compare([given * 3 + (given == 5)])


def test_float64_allows_a_few_ulp_of_the_largest() -> None:
    func = elementwise("tanh", "float64")
    x = random((5000,)).astype(np.float64)
    y = np.tanh(x)
    assert reference(func, [x]).compare([y * (1 + 3e-16)])
    assert not reference(func, [x]).compare([y * (1 + 1e-14)])


def test_a_sample_that_costs_too_much_becomes_runs_of_neighbours() -> None:
    func = attention(2, 128, 16)
    arrays = [random((2, 128, 16), seed) for seed in range(3)]
    free = reference(func, arrays)
    bounded = reference(func, arrays, sample=sample_of(func, budget=100_000))
    assert bounded.outputs[0].samples < free.outputs[0].samples
    assert free.outputs[0].spread / 8 < bounded.outputs[0].spread <= free.outputs[0].spread * 2
    assert bounded.compare(evaluate(func, arrays))


def test_the_verdict_prints_error_over_bound_and_where() -> None:
    verdict = Comparison(False, 2.5, "Y", (3, 4), 1.5, 1.25, 0.1)
    assert str(verdict) == ("max error / bound 2.5 at Y[3, 4]: got 1.5, expected 1.25 within 0.1")


def test_empty_outputs_are_right() -> None:
    x = te.placeholder((0, 3), "float32", name="X")
    func = te.func(x, te.compute((0, 3), lambda i, j: x[i, j] + 1.0, name="Y"), name="none")
    empty = np.zeros((0, 3), dtype=np.float32)
    found = reference(func, [empty]).compare([empty])
    assert found
    assert (found.index, found.ratio, found.got, found.expected, found.allowed) == ((), 0, 0, 0, 0)


def test_outputs_that_do_not_fit_are_refused() -> None:
    func, x = elementwise("double"), random((5000,))
    expected: Reference = reference(func, [x])
    with pytest.raises(IRError) as error:
        expected.compare([])
    assert str(error.value) == (
        "IRError: compare: 'double' gives 'Y'; got 0 arrays. [compare-outputs]"
    )
    with pytest.raises(IRError) as error:
        expected.compare([x[:3]])
    assert str(error.value) == (
        "IRError: compare: 'Y' is float32[3]; expected float32[5000]. [compare-array]"
    )


def test_a_choice_by_what_is_rounded_has_a_bound_in_a_single_number() -> None:
    """Its error had one axis more than the number."""
    x = te.placeholder((3,), "float64", name="X")
    k = te.reduce_axis(3, name="k")
    s = te.compute((), lambda: te.prod(x[k], axis=k), name="S")
    y = te.compute((), lambda: te.select(s[()] > 0.0, s[()], 2.0), name="Y")
    func, given = te.func(x, y, name="chosen"), np.array([1.5, 2.5, 3.0])
    assert reference(func, {"X": given}).compare({"Y": np.asarray(11.25)})
    assert not reference(func, {"X": given}).compare({"Y": np.asarray(11.26)})


def halves(rows: int, columns: int, terms: int) -> PrimFunc:
    a, b = (
        te.placeholder(shape, "float16", name=name)
        for name, shape in (("A", (rows, terms)), ("B", (terms, columns)))
    )
    k = te.reduce_axis(terms, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return te.sum(te.cast(a[i, k], "float32") * te.cast(b[k, j], "float32"), axis=k)

    return te.func(a, b, te.compute((rows, columns), term, name="C"), name="halves")


def cut(a: np.ndarray, b: np.ndarray, points: int, skipped: int = -1) -> np.ndarray:
    """The product as tensor cores add it: so many terms at once, to a sum that is cut. skipped: a
    step that is left out.
    """
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for step, low in enumerate(range(0, a.shape[1], points)):
        if step == skipped:
            continue
        terms = a[:, low : low + points].astype(np.float64) @ b[low : low + points]
        exact = total + terms
        near = exact.astype(np.float32)
        total = np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    return total


@pytest.mark.parametrize("terms", [64, 1024, 16384])
@pytest.mark.parametrize("kind", ["of one sign", "of both", "of some that are large"])
def test_a_sum_that_is_cut_passes_where_that_is_allowed_and_a_lost_step_fails(
    kind: str, terms: int
) -> None:
    func, draw = halves(24, 16, terms), np.random.default_rng(0).standard_normal
    arrays = [draw((24, terms)), draw((terms, 16))]
    if kind == "of one sign":
        arrays = [np.abs(array) for array in arrays]
    if kind == "of some that are large":
        arrays = [np.exp(2 * np.abs(array)) * np.sign(array) for array in arrays]
    a, b = (array.astype(np.float16) for array in arrays)
    bound = reference(func, [a, b], cut=16)
    assert 0 < bound.compare([cut(a, b, 16)]).ratio < 0.5
    assert bound.compare([cut(a, b, 16, skipped=terms // 32)]).ratio > 2


def test_long_sums_that_are_cut_fail_where_that_is_not_allowed() -> None:
    draw = np.random.default_rng(0).standard_normal
    a, b = draw((24, 1 << 16)).astype(np.float16), draw((1 << 16, 16)).astype(np.float16)
    assert not reference(halves(24, 16, 1 << 16), [a, b]).compare([cut(a, b, 16)])


def test_what_is_no_product_of_halves_is_never_cut() -> None:
    func = gelu_layer(8, 8, 4096)
    arrays = [random((8, 4096)), random((4096, 8), 1)]
    (plain,), (allowed,) = (reference(func, arrays, cut=c).outputs for c in (0, 16))
    np.testing.assert_array_equal(plain.allowed(), allowed.allowed())
