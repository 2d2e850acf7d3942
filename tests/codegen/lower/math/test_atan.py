"""codegen/lower/math/atan.py: the error that it promises, its exceptions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.intrinsics import by_name


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_errors_stay_within_the_promise(kind, fused, expand, error_in_ulp, wider) -> None:
    function, limits = expand("atan", kind), np.finfo(kind)
    most = 2.8 if kind == "float32" else 2.0
    for x in (
        np.linspace(-6, 6, 400_001).astype(kind),
        np.linspace(-1000, 1000, 100_001).astype(kind),
        np.geomspace(limits.smallest_normal, limits.max / 10, 400_001).astype(kind),
    ):
        assert error_in_ulp(function(x, fused=fused), np.arctan(wider(x))) <= most


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_ends_are_right_angles_and_nan_stays(kind, expand) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], kind)
    for function in (expand("atan", kind), by_name("atan").meaning):
        np.testing.assert_allclose(function(x), np.arctan(x), rtol=1e-7)
