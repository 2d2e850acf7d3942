"""Bits and shifts of every integer type, with counts beyond the width, are those of NumPy."""

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
SIZE = 96


def combined(dtype: str) -> PrimFunc:
    """Every operation on bits of each pair of elements."""
    a, b = (te.placeholder((SIZE,), dtype, name=name) for name in "AB")
    outputs = [
        te.compute((SIZE,), lambda i: a[i] & b[i], name="both"),
        te.compute((SIZE,), lambda i: a[i] | b[i], name="one"),
        te.compute((SIZE,), lambda i: a[i] ^ ~b[i], name="same"),
        te.compute((SIZE,), lambda i: a[i] << b[i], name="left"),
        te.compute((SIZE,), lambda i: a[i] >> b[i], name="right"),
        te.compute((SIZE,), lambda i: a[i] << (b[i] & 7), name="left_inside"),
        te.compute((SIZE,), lambda i: a[i] >> (b[i] & 7), name="right_inside"),
        te.compute((SIZE,), lambda i: (a[i] >> 3) + (b[i] << 5), name="by_constants"),
    ]
    return te.func(a, b, *outputs, name="combined")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_bits_and_shifts_are_those_of_numpy(
    dtype: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    ends = np.iinfo(dtype)
    counts = [0, 1, 3, 7, 8, 31, 32, 63, 64, ends.max, *((-1, -8, ends.min) if ends.min else ())]
    values = [0, 1, 85, ends.max, ends.max // 3, *((-1, -86, ends.min) if ends.min else ())]
    pairs = np.meshgrid(np.array(values, dtype), np.array(counts, dtype))
    a, b = (np.resize(pair, 2 * SIZE) for pair in pairs)
    artifact = build_artifact(lower_to_nest(combined(dtype)), target)
    for half in (slice(0, SIZE), slice(SIZE, 2 * SIZE)):
        x, y = a[half].copy(), b[half].copy()
        results = run_artifact(artifact, {"A": x, "B": y})
        inside = y & np.array(7, dtype)
        three, five = np.array(3, dtype), np.array(5, dtype)
        expected = (x & y, x | y, x ^ ~y, x << y, x >> y, x << inside, x >> inside)
        for result, array in zip(results, (*expected, (x >> three) + (y << five)), strict=True):
            np.testing.assert_array_equal(result, array)
