"""codegen/lower/math/sin.py: the error that it promises for sin and cos, their exceptions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.intrinsics import LARGEST_ANGLE, by_name


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_errors_stay_within_the_promise(name, kind, fused, expand, error_in_ulp, wider) -> None:
    function, limits = expand(name, kind), np.finfo(kind)
    near = (np.arange(-20_860, 20_861) * (np.pi / 2)).astype(kind)  # the zeros, and what is beside
    beside = [near]
    for _ in range(3):
        beside += [np.nextafter(beside[-1], np.inf, dtype=kind)]
    samples = (
        np.linspace(-np.pi, np.pi, 400_001).astype(kind),
        np.linspace(-LARGEST_ANGLE, LARGEST_ANGLE, 400_001).astype(kind),
        np.geomspace(limits.smallest_normal, 1, 100_001).astype(kind),
        np.concatenate(beside),
    )
    for x in samples:
        x = x[np.abs(x) <= LARGEST_ANGLE]
        exact = getattr(np, name)(wider(x))
        assert error_in_ulp(function(x, fused=fused), exact) <= 2.4


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_it_is_nan_beyond_the_largest_angle_in_definition_and_code(name, kind, expand) -> None:
    beyond = np.array([np.inf, -np.inf, np.nan, 32769, -1e30], dtype=kind)
    within = np.array([0.0, -0.0, LARGEST_ANGLE, -LARGEST_ANGLE], dtype=kind)
    for function in (expand(name, kind), by_name(name).meaning):
        assert np.isnan(function(beyond)).all()
        np.testing.assert_allclose(function(within), getattr(np, name)(within), rtol=3e-7)
