"""tir/reference/roundings.py: what is computed in a type lies within the errors that are told, and
these say what an operation means to its result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT32, NAMES, DType, dtype
from tilewright.tir.expr import Cast, Expr, Let, Var, index
from tilewright.tir.reference.array_expr import ArrayEvaluator
from tilewright.tir.reference.roundings import (
    FLIP,
    UNIT,
    NotFollowed,
    Rounded,
    RoundedEvaluator,
    roundoff,
    rounds_nothing,
)
from tilewright.tir.te import te

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
X, Z = (Buffer(name, FLOAT32, (500,)) for name in "XZ")
I = Var("i", dtype("int64"))  # noqa: E741
RNG = np.random.default_rng(0)
DATA = {
    X: RNG.standard_normal(500).astype(np.float32),
    Z: np.exp(RNG.uniform(-9, 9, 500)).astype(np.float32),
}
x, z = Load(X, (I,)), Load(Z, (I,))


def followed(expr: Expr, errors: dict[Buffer, Array] | None = None) -> Rounded:
    wide = {buffer: array.astype(np.float64) for buffer, array in DATA.items()}
    return RoundedEvaluator({I: np.arange(500)}, wide, errors or {}).rounded(expr)


def computed(expr: Expr) -> Array:
    return ArrayEvaluator({I: np.arange(500)}, DATA).evaluate(expr)


CHAINS: dict[str, Callable[[], Expr]] = {
    "a difference of what is nearly the same": lambda: (x + 1000.0) - 1000.0,
    "a quotient": lambda: (x * 3.1) / (z + 0.7),
    "an exponential": lambda: te.exp(x * 4.3),
    "a tail": lambda: te.exp(te.exp(x * 1.1) * -3.0),
    "a power of two": lambda: te.exp2(x * 7.7),
    "a logarithm": lambda: te.log(z * 1.7),
    "a hyperbolic tangent": lambda: te.tanh(x * 2.3) * 3.0,
    "an error function": lambda: te.erf(x * 2.3),
    "a gelu": lambda: te.gelu(x * 3.3),
    "a root": lambda: te.sqrt(z * 1.9 + 0.1),
    "a power": lambda: te.pow(z * 1.3, 1.7),
    "the larger of two": lambda: te.maximum(x * 1.3, z * 0.01),
    "an absolute value": lambda: abs(x * 1.3 - 0.4),
    "a half": lambda: te.cast(te.cast(x * 1.3, "float16"), "float32") * 3.0,
    "an integer as a float": lambda: te.cast(te.cast(z * 1e5, "int32"), "float32"),
    "a choice": lambda: te.select(x * 1.1 < z * 0.9, x * 5.0, z * 7.0),
    "a step": lambda: te.floor(z * 1.1) + te.round(x * 9.1),
    "a variable": lambda: Let(y := Var("y", FLOAT32), x * 1.3, y * y - y),
}


@pytest.mark.parametrize("name", CHAINS)
def test_what_a_type_computes_lies_within_a_small_multiple_of_the_error(name: str) -> None:
    found = followed(CHAINS[name]())
    assert found.error is not None
    off = np.abs(computed(CHAINS[name]()).astype(np.float64) - found.value)
    assert (off <= 1.5 * UNIT * np.broadcast_to(found.error, off.shape)).all()
    assert off.max() > 0 or name == "a step"


def test_an_error_is_as_large_as_what_the_operation_makes_of_it() -> None:
    tiny = followed(te.exp(x * 4.0 - 60.0))
    assert tiny.error is not None
    share = UNIT * tiny.error / tiny.value
    assert share.max() < 2e-5  # of a result of e-40 to e-20, relative to itself
    cancelled = followed((x + 1000.0) - 1000.0)
    assert cancelled.error is not None
    assert (cancelled.error > 900).all()  # that of the sum, whatever is left


def test_exact_values_have_no_error() -> None:
    whole = te.cast(x, "int32")
    for expr in (x, abs(x), te.maximum(x, 0.0), te.cast(x, "float64"), whole * 3 + 1, x < z):
        assert followed(expr).error is None
        assert rounds_nothing(expr, {})
    assert followed(x * 2.0).error is not None


@pytest.mark.parametrize("name", CHAINS)
def test_what_rounds_is_seen_without_computing_it(name: str) -> None:
    assert not rounds_nothing(CHAINS[name](), {}), name
    assert rounds_nothing(x, {Z})
    assert not rounds_nothing(te.maximum(x, z), {Z})


def test_a_comparison_within_the_errors_of_its_operands_may_come_out_either_way() -> None:
    errors = {X: np.full(500, 4.0)}
    wide = {X: np.linspace(-1e-5, 1e-5, 500), Z: np.zeros(500)}
    evaluator = RoundedEvaluator({I: np.arange(500)}, wide, errors)
    found = evaluator.rounded(x < z)
    assert found.error is not None
    near = np.abs(wide[X]) <= 16 * UNIT * 4
    np.testing.assert_array_equal(found.error, np.where(near, FLIP, 0.0))
    chosen = evaluator.rounded(te.select(x < z, z + 5.0, z))
    assert chosen.error is not None
    assert (chosen.error[near] >= 5.0 / UNIT).all()
    assert (chosen.error[~near] <= 10).all()
    for jump in (te.floor(x), te.cast(x, "int32"), te.round(x + 0.5)):
        stepped = evaluator.rounded(jump).error
        assert stepped is not None
        assert (stepped[near] >= FLIP).all()


def test_what_is_finite_but_beyond_its_type_may_be_anything_and_infinity_is_exact() -> None:
    value = np.array([1e39, np.inf, -np.inf, 1.0])
    np.testing.assert_array_equal(np.isinf(roundoff(value, FLOAT32)), [True, False, False, False])
    assert roundoff(value, FLOAT32)[1] == 0
    assert np.isinf(roundoff(np.array([7e4]), dtype("float16"))).all()


@pytest.mark.parametrize("kind", [n for n in NAMES if dtype(n).is_float and n != "float64"])
def test_roundoff_is_half_of_the_last_place_at_least_and_all_of_it_at_most(kind: str) -> None:
    type_: DType = dtype(kind)
    values = np.exp(RNG.uniform(-3, 3, 1000))
    rounded = values.astype(type_.numpy)
    half = 0.5 * np.spacing(rounded).astype(np.float64)
    inside = half > 0  # but at the largest number of a type that has no infinity
    values, rounded, half = values[inside], rounded[inside], half[inside]
    told = UNIT * roundoff(values, type_)
    assert (np.abs(rounded.astype(np.float64) - values) <= told * 1.0001).all()
    assert (told <= 3 * half).all()


@pytest.mark.parametrize(
    "expr",
    [
        te.cast(te.cast(x * 9.1, "int32") // 2, "float32"),
        Load(X, (te.maximum(te.minimum(te.cast(te.cast(x * 9.1, INT32), "int64"), index(9)), 0),)),
    ],
    ids=["a quotient of integers", "an index"],
)
def test_what_has_no_rule_is_said(expr: Expr) -> None:
    with np.errstate(all="ignore"), pytest.raises(NotFollowed):
        followed(expr, {X: np.ones(500)})


def test_casts_that_a_wider_type_undoes_round_once() -> None:
    found = followed(Cast(Cast(x, dtype("bfloat16")), FLOAT32))
    np.testing.assert_allclose(
        found.error, roundoff(DATA[X].astype(np.float64), dtype("bfloat16")), rtol=1e-12
    )
