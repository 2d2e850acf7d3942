"""Quotients and remainders of integers round towards minus infinity, and never end the process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

pytestmark = pytest.mark.needs_cc

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def divided(dtype: str) -> PrimFunc:
    """Both of each pair of elements."""
    a, b = (te.placeholder((60,), dtype, name=name) for name in "AB")
    quotient = te.compute((60,), lambda i: a[i] // b[i], name="Q")
    rest = te.compute((60,), lambda i: a[i] % b[i], name="R")
    return te.func(a, b, quotient, rest, name="divided")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_division_is_that_of_numpy_by_0_and_at_the_ends_too(
    dtype: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    ends = np.iinfo(dtype)
    divisors = [0, 1, 2, 3, 7, ends.max, *((-1, -2, -7, ends.min) if ends.min else ())]
    values = [0, 1, 6, 7, 100, ends.max, *((-1, -6, -7, ends.min) if ends.min else ())]
    a, b = np.meshgrid(np.array(values, dtype), np.array(divisors, dtype))
    a, b = np.resize(a, 120), np.resize(b, 120)
    for half in (slice(0, 60), slice(60, 120)):
        given = {"A": a[half].copy(), "B": b[half].copy()}
        artifact = build_artifact(lower_to_nest(divided(dtype)), target)
        quotient, rest = run_artifact(artifact, given)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(quotient, np.floor_divide(given["A"], given["B"]))
            np.testing.assert_array_equal(rest, np.mod(given["A"], given["B"]))
