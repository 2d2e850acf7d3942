"""codegen/lower/math/fmod.py: what is left of a quotient is exact."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.intrinsics import by_name


def numbers(kind: str, least: float, most: float, seed: int) -> np.ndarray:
    """Of every magnitude between two powers of 2, of both signs."""
    draw = np.random.default_rng(seed)
    sizes = np.exp2(draw.uniform(least, most, 200_000)) * draw.choice([-1, 1], 200_000)
    return sizes.astype(kind)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("kind", "ends"), [("float32", (-148, 127)), ("float64", (-48, 48))])
def test_it_is_exact(kind, ends, fused, expand) -> None:
    fmod = expand("fmod", kind)
    for x, y in (
        (numbers(kind, *ends, 1), numbers(kind, *ends, 2)),
        (numbers(kind, 0, 20, 3), numbers(kind, -3, 3, 4)),
        (np.arange(-500, 500).astype(kind), np.repeat(np.array([3, -7, 0.5, 0.1], kind), 250)),
    ):
        np.testing.assert_array_equal(fmod(x, y, fused=fused), np.fmod(x, y))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_what_has_no_remainder_is_nan(kind, expand) -> None:
    values = np.array([np.inf, -np.inf, np.nan, 0.0, 2.5, -2.5], kind)
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        for function in (expand("fmod", kind), by_name("fmod").meaning):
            np.testing.assert_array_equal(function(x, y), np.fmod(x, y))


def test_a_large_quotient_of_float64_is_nan_in_definition_and_code(expand) -> None:
    x, y = np.array([1e300, 1e28]), np.array([1e-300, 7.0])
    with np.errstate(over="ignore"):
        for function in (expand("fmod", "float64"), by_name("fmod").meaning):
            np.testing.assert_array_equal(function(x, y), [np.nan, np.fmod(1e28, 7.0)])
