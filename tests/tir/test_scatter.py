"""tir/scatter.py: what a scatter means, how it is named, what it takes; as a statement, what the
interpreter, the evaluator and the verifier make of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.tir.buffer import Buffer, array
from tilewright.tir.dtype import dtype
from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.scatter import (
    COMBININGS,
    Array,
    ScatterFunction,
    scatter_named,
    scatter_problem,
    scattered,
)
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.verify.verify import Stage, VerificationError, verify

RNG = np.random.default_rng(7)
COMBINE: dict[str, Callable[[float, float], float]] = {
    "none": lambda a, b: b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
}


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def one_by_one(how: str, axis: int, x: Array, updates: Array, places: list[Array]) -> Array:
    """The meaning, spelled out: an update after the other, in float32."""
    result = x.copy()
    for u in np.ndindex(*updates.shape):
        along = [
            min(max(int(p[u[: p.ndim]]), 0), x.shape[axis + n] - 1) for n, p in enumerate(places)
        ]
        at = (*u[:axis], *along, *u[axis + 1 :])
        result[at] = np.float32(COMBINE[how](result[at], updates[u]))
    return result


# axis, shapes of x and of the updates, and that of the places
FORMS: dict[str, tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "elements": (1, (3, 4, 2), (2, 9, 2), (2, 9, 2)),
    "rows": (0, (5, 6), (9, 6), (9,)),
    "a part of each row": (0, (5, 6), (9, 4), (9,)),
    "along two axes": (0, (3, 4, 5), (9, 5), (9,)),
    "numbers": (0, (7,), (20,), (20,)),
    "along two axes behind one": (1, (2, 3, 4), (2, 9), (2, 9)),
}


def given(form: str) -> tuple[int, Array, Array, list[Array]]:
    axis, shape, updates, along = FORMS[form]
    count = len(shape) - len(updates) + 1
    places = [RNG.integers(-1, n + 1, along).astype(np.int32) for n in shape[axis : axis + count]]
    return axis, floats(*shape), floats(*updates), places


def func_of(form: str, how: str) -> tuple[PrimFunc, list[Array], Array]:
    axis, x, updates, places = given(form)
    arrays = [x, updates, *places]
    tensors = [
        te.placeholder(one.shape, one.dtype.name, name=f"T{n}") for n, one in enumerate(arrays)
    ]
    y = te.scatter(tensors[0], tensors[1], tuple(tensors[2:]), axis=axis, combining=how, name="Y")
    expected = one_by_one(how, axis, x, updates, places)
    return te.func(*tensors, y, name="scattered"), arrays, expected


@pytest.mark.parametrize("how", COMBININGS)
@pytest.mark.parametrize("form", FORMS)
def test_updates_are_written_one_after_the_other(form: str, how: str) -> None:
    axis, x, updates, places = given(form)
    before = x.copy()
    found = scattered(ScatterFunction(COMBININGS[how], axis), x, updates, places)
    np.testing.assert_array_equal(found, one_by_one(how, axis, x, updates, places))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("how", COMBININGS)
@pytest.mark.parametrize("form", FORMS)
def test_interpreted_and_evaluated_it_is_the_same(form: str, how: str) -> None:
    func, arrays, expected = func_of(form, how)
    for checked in (False, True):
        (found,) = interpret(func, *arrays, checked=checked)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(evaluate(func, arrays)["Y"], expected)
    wide = evaluate(func, arrays, "float64")["Y"]
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, expected, rtol=1e-4, atol=1e-5)


def test_of_no_updates_it_is_a_copy() -> None:
    x, none = floats(3, 2), np.zeros((0,), np.int32)
    found = scattered(ScatterFunction("add", 0), x, floats(0, 2), [none])
    np.testing.assert_array_equal(found, x)
    assert found is not x


def test_its_text_is_read_back() -> None:
    func, _, _ = func_of("along two axes", "max")
    assert 'extern("tw_scatter_max_at_0", ' in str(func)
    assert equal(parse(str(func)), func)
    assert func.externs == ()


def test_another_way_to_combine_is_another_workload() -> None:
    keys = {workload_key(func_of("rows", how)[0]) for how in COMBININGS}
    assert len(keys) == len(COMBININGS)


@pytest.mark.parametrize("how", COMBININGS)
def test_a_symbol_says_it_all(how: str) -> None:
    function = ScatterFunction(COMBININGS[how], 2)
    assert scatter_named(function.symbol) == function
    assert scatter_named("sort_rows") is None


@pytest.mark.parametrize("symbol", ["tw_scatter_sum_at_0", "tw_scatter_add_at_x", "tw_scatter_add"])
def test_a_symbol_of_none_is_refused(symbol: str) -> None:
    with pytest.raises(IRError) as error:
        scatter_named(symbol)
    assert str(error.value) == (
        f"IRError: parse: '{symbol}' is no way to scatter; expected one of none, add, mul, max, "
        "min, and an axis. [parse-scatter]\n"
        "  Hint: tw_scatter_add_at_0 adds along the first axis."
    )


def buffer(name: str, *shape: int, kind: str = "float32") -> Buffer:
    return array(name, dtype(kind), shape)


X, Y, U = buffer("X", 5, 4), buffer("Y", 5, 4), buffer("U", 9, 4)
AT = buffer("at", 9, kind="int32")
PROBLEMS = {
    "no places": (0, (X, U), (Y,), "2 inputs and 1 outputs; expected x, updates and places"),
    "another shape": (
        0,
        (X, U, AT),
        (buffer("Y", 4, 5),),
        "'Y' is Y: float32[4, 5], and 'X' X: float32[5, 4]; expected one type and shape",
    ),
    "another type": (
        0,
        (X, buffer("U", 9, 4, kind="float64"), AT),
        (Y,),
        "'Y' is Y: float32[5, 4], and 'X' X: float32[5, 4]; expected one type and shape",
    ),
    "fewer places": (
        0,
        (X, U, buffer("at", 8, kind="int32")),
        (Y,),
        "'at' is no place for each of 'U' along axis 0",
    ),
    "places that are no integers": (
        0,
        (X, U, buffer("at", 9)),
        (Y,),
        "'at' is no place for each of 'U' along axis 0",
    ),
    "an axis behind the places": (
        1,
        (X, U, AT),
        (Y,),
        "'at' is no place for each of 'U' along axis 1",
    ),
    "places along too many axes": (
        0,
        (X, U, AT, AT),
        (Y,),
        "'at' is no place for each of 'U' along axis 0",
    ),
    "longer rows": (
        0,
        (X, buffer("U", 9, 6), AT),
        (Y,),
        "'U' (6,) is larger than 'Y' (4,) beside axis 0",
    ),
    "into nothing": (
        0,
        (buffer("X", 0, 4), U, AT),
        (buffer("Y", 0, 4),),
        "'U' has elements, and 'Y' none",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_does_not_fit_is_said(name: str) -> None:
    axis, inputs, outputs, problem = PROBLEMS[name]
    assert scatter_problem(ScatterFunction("add", axis), inputs, outputs) == problem


def test_what_fits_has_no_problem() -> None:
    assert scatter_problem(ScatterFunction("add", 0), (X, U, AT), (Y,)) is None


def test_the_verifier_asks() -> None:
    func, _, _ = func_of("rows", "add")
    wrong = parse(str(func).replace("T2: int32[9]", "T2: int32[8]"))
    with pytest.raises(VerificationError) as error:
        verify(wrong, Stage.TENSOR)
    assert "verify: 'T2' is no place for each of 'T1' along axis 0. [verify-extern]" in str(
        error.value
    )
