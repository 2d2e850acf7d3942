"""Conversions of floats to integers are clamped, as far as the bounds of the value do not say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.arithmetic.saturate_casts import SaturateCasts
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import Store
from tilewright.tir.target.target import Target
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.visit import stores

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def lowered(value: str, integer: str = "int32", source: str = "float32") -> str:
    """The text of a stored conversion after the pass."""
    text = f"""
def f(A: {source}[4], C: output({integer}[4])):
    for i in range(4):
        C[i] = cast({value}, "{integer}")
"""
    (store,) = stores(SaturateCasts()(parse(text)).body)
    assert isinstance(store, Store)
    return print_stmt(store).removeprefix("C[i] = ")


def test_an_end_that_the_float_type_holds_is_clamped_to() -> None:
    assert lowered("A[i]", "int8") == (
        'let(x, A[i], cast(select(x == x, min_any(max_any(x, -128.0), 127.0), 0.0), "int8"))'
    )


@pytest.mark.parametrize("value", ["A[i]", "max(A[i], 0.0)"])
def test_a_lower_end_of_0_takes_the_place_of_nan(value: str) -> None:
    assert lowered(value, "uint8") == (
        f'let(x, {value}, cast(min_any(max_any(x, 0.0), 255.0), "uint8"))'
    )


def test_an_integer_between_floats_is_not_made_narrow() -> None:
    text = 'cast(cast(A[i], "uint8"), "float32")'
    assert lowered(text, "uint8") == (
        'cast(cast(let(x, A[i], cast(min_any(max_any(x, 0.0), 255.0), "int32")), "float32"), '
        '"uint8")'
    )
    text = 'cast(cast(A[i], "int16"), "float32")'
    assert "min_any(max_any(x, 0.0), 255.0)" in lowered(text, "uint8")
    text = 'cast(cast(A[i], "int32"), "float32")'
    assert lowered(text, "int8").count('"int32"') == 1
    text = 'cast(cast(A[i], "uint8"), "int16")'
    assert lowered(text, "int16") == (
        'cast(cast(let(x, A[i], cast(min_any(max_any(x, 0.0), 255.0), "int32")), "int16"), "int16")'
    )
    text = 'cast(cast(A[i], "int16"), "uint8")'
    assert ', "int16"))' in lowered(text, "uint8")
    text = 'cast(cast(A[i], "int8"), "int64")'
    assert lowered(text, "int64").endswith(', "int8")), "int64"), "int64")')


def test_an_end_that_the_float_type_does_not_hold_is_chosen() -> None:
    assert lowered("A[i]") == (
        "let(x, A[i], select(x == x, select(x < 2.1474836e+09, "
        'cast(max_any(x, -2.1474836e+09), "int32"), int32(2147483647)), int32(0)))'
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("min(max(A[i], -128.0), 127.0)", 'cast(select(x == x, x, 0.0), "int8")'),
        ("max(A[i], 0.0)", 'cast(select(x == x, min_any(x, 127.0), 0.0), "int8")'),
    ],
)
def test_what_bounds_say_is_not_written(value: str, expected: str) -> None:
    assert lowered(value, "int8") == f"let(x, {value}, {expected})"


def test_what_is_rounded_is_clamped_before() -> None:
    assert lowered("round(min(A[i], 100.0))", "int8") == (
        'let(x, min(A[i], 100.0), cast(round(select(x == x, max_any(x, -128.0), 0.0)), "int8"))'
    )
    assert lowered("round(A[i])", "uint8") == (
        'let(x, A[i], cast(round(min_any(max_any(x, 0.0), 255.0)), "uint8"))'
    )
    assert lowered("round(A[i])", "int32").startswith("let(x, round(A[i]), select(")


def test_what_a_name_stands_for_is_clamped_where_it_is_rounded() -> None:
    assert lowered("let(y, A[i], round(y * 2.0))", "uint8") == (
        'let(y, A[i], let(x, y * 2.0, cast(round(min_any(max_any(x, 0.0), 255.0)), "uint8")))'
    )
    assert lowered("floor(A[i])", "uint8").startswith("let(x, floor(A[i]), cast(min_any(")


def test_arithmetic_has_no_bounds() -> None:
    assert lowered("A[i] * 0.0").startswith("let(x, A[i] * 0.0, select(x == x")


def test_a_value_within_the_type_that_is_a_number_stays() -> None:
    text = 'select(i < 2, floor(max(cast(cast(i, "int8"), "float32"), -3.5)), 100.25)'
    assert lowered(text, "int8") == f'cast({text}, "int8")'
    func = parse("""
def f(A: float32[4], C: output(float32[4])):
    for i in range(4):
        C[i] = cast(cast(i, "int32"), "float32") + A[i]
""")
    assert SaturateCasts()(func) is func


def test_a_minimum_that_may_drop_nan_is_bounded_by_both() -> None:
    """min_any(x, 200) of x <= 100 or NaN may be 200."""
    text = "min_any(min(A[i], 100.0), 200.0)"
    assert "min_any(max_any(x, -128.0), 127.0)" in lowered(text, "int8")
    assert "min_any(max_any" not in lowered("min_any(A[i], 100.0)", "int8")


def boundary_values(source: str) -> np.ndarray:
    """Every power of two with its neighbours, halves, random bits, infinities, NaN."""
    kind = np.dtype(source)
    powers = np.ldexp(np.ones(72, kind), np.arange(-3, 69))
    near = [np.nextafter(powers, kind.type(end)) for end in (-np.inf, np.inf)]
    halves = [powers - kind.type(0.5), powers + kind.type(0.5), powers - kind.type(1)]
    plain = np.concatenate([powers, *near, *halves, [0.0, np.inf, np.nan]]).astype(kind)
    bits = np.random.default_rng(0).integers(0, 256, 101 * kind.itemsize, dtype=np.uint8)
    return np.concatenate([plain, -plain, bits.view(kind)])


def converted(source: str, size: int) -> PrimFunc:
    a = te.placeholder((size,), source, name="A")
    kinds = (*TYPES, "bool")
    outputs = [te.compute((size,), lambda i, k=k: te.cast(a[i], k), name=k) for k in kinds]
    return te.func(a, *outputs, name="converted")


def saturated(values: np.ndarray, kind: str) -> np.ndarray:
    """The conversion in exact Python numbers."""
    if kind == "bool":
        return np.array([v != 0 for v in values])
    ends = np.iinfo(kind)
    exact = [
        0 if np.isnan(v) else (ends.max if v > 0 else ends.min) if np.isinf(v) else int(v)
        for v in values
    ]
    return np.array([min(max(v, ends.min), ends.max) for v in exact], kind)


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_interpreter_and_evaluator_saturate(source: str) -> None:
    values = boundary_values(source)
    func = converted(source, values.size)
    evaluated = evaluate(func, (values,))
    for kind, got in zip((*TYPES, "bool"), interpret(func, values), strict=True):
        np.testing.assert_array_equal(got, saturated(values, kind), err_msg=kind)
        np.testing.assert_array_equal(evaluated[kind], got, err_msg=kind)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_compiled_code_saturates(
    source: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    values = boundary_values(source)
    artifact = build_artifact(lower_to_nest(converted(source, values.size)), target)
    results = run_artifact(artifact, {"A": values})
    for kind, got in zip((*TYPES, "bool"), results, strict=True):
        np.testing.assert_array_equal(got, saturated(values, kind), err_msg=kind)


@pytest.mark.needs_cc
def test_vectors_saturate(check: Callable[..., object]) -> None:
    for source, integer in (("float32", "int32"), ("float64", "int64"), ("float64", "int32")):
        values = boundary_values(source)
        check(
            f"""
def f(A: {source}[{values.size}], C: output({integer}[{values.size}])):
    for i in vectorized({values.size}):
        C[i] = cast(A[i], "{integer}")
""",
            {"A": values},
        )
