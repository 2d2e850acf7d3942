"""The helpers that expressions call, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tilewright.codegen.c.frame import HELPERS, prelude
from tilewright.runtime.compile import compile_shared
from tilewright.runtime.library import Library, ffi
from tilewright.tir.target import Target

pytestmark = pytest.mark.needs_cc


def test_a_source_has_the_helpers_that_it_calls_and_no_others() -> None:
    text = prelude(Target(), "y = tw_fmaf(a, b, c) + tw_unknown(d);")
    found = [name for name in HELPERS if f" {name}(" in text]
    assert found == ["tw_to_f64", "tw_of_f64", "tw_add_to_odd", "tw_fmaf"]
    assert "immintrin" not in text
    assert "immintrin" in prelude(Target.parse("c:avx2"), "")


def _run(kind: str, expression: str, inputs: list[np.ndarray], result: np.ndarray) -> np.ndarray:
    body = f"for (int64_t i = 0; i < {len(result)}; i++) y[i] = {expression};"
    declared = " ".join(
        f"const {kind} *{name} = args[{n}];" for n, name in enumerate("abc"[: len(inputs)])
    )
    head = "void f(void *const *args, const struct tw_team *team, int thread, int threads)"
    unused = "(void)team, (void)thread, (void)threads;"
    result_pointer = f"{kind} *y = args[{len(inputs)}];"
    source = (
        f"{prelude(Target(), body)}\n{head} {{ {unused} {declared} {result_pointer} {body} }}\n"
    )
    library = Library(compile_shared(source, Target()), name="helpers")
    pointers = [ffi.from_buffer("char[]", array) for array in (*inputs, result)]
    library.entry("f")(ffi.new("void *[]", pointers), ffi.NULL, 0, 1)
    return result


@pytest.mark.parametrize(
    ("dtype", "kind", "name"), [(np.float32, "float", "tw_fmaf"), (np.float64, "double", "tw_fma")]
)
def test_fma_without_an_instruction_rounds_once(
    dtype: type[np.floating], kind: str, name: str
) -> None:
    rng = np.random.default_rng(0)
    count = 2000
    a, b = (rng.standard_normal(count).astype(dtype) for _ in range(2))
    c = -(a.astype(np.float64) * b.astype(np.float64)).astype(
        dtype
    )  # cancellation shows a second rounding
    c[::2] *= dtype(2) ** rng.integers(-40, 40, count // 2).astype(dtype)
    c[::5] = rng.standard_normal(count // 5)
    result = _run(kind, f"{name}(a[i], b[i], c[i])", [a, b, c], np.empty(count, dtype))
    for x, y, z, value in zip(a, b, c, result, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        error = abs(Fraction(float(value)) - exact)
        for neighbour in (np.nextafter(value, dtype(np.inf)), np.nextafter(value, dtype(-np.inf))):
            assert error <= abs(Fraction(float(neighbour)) - exact)


def test_fma_of_infinities_and_nan_is_what_ieee_says() -> None:
    a = np.array([np.inf, 1.0, np.nan, np.inf, 1e30], np.float32)
    b = np.array([2.0, 3.0, 1.0, 0.0, 1e30], np.float32)
    c = np.array([1.0, -np.inf, 1.0, 1.0, 0.0], np.float32)
    result = _run("float", "tw_fmaf(a[i], b[i], c[i])", [a, b, c], np.empty(5, np.float32))
    np.testing.assert_array_equal(result, np.array([np.inf, -np.inf, np.nan, np.nan, np.inf]))


def test_floor_division_rounds_down_for_every_sign() -> None:
    pairs = [(a, b) for a in (-7, -6, -1, 0, 1, 6, 7) for b in (-3, -1, 1, 3)]
    a, b = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    quotient = _run("int64_t", "tw_floordiv(a[i], b[i])", [a, b], np.empty(len(a), np.int64))
    rest = _run("int64_t", "tw_floormod(a[i], b[i])", [a, b], np.empty(len(a), np.int64))
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(rest, a % b)
