"""codegen/lower/math/log.py: the error that it promises, its exceptions."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_errors_stay_within_the_promise(kind, fused, expand, error_in_ulp, wider) -> None:
    log, limits = expand("log", kind), np.finfo(kind)
    exponents = np.linspace(np.log(limits.smallest_normal), np.log(limits.max) - 1e-4, 200_001)
    samples = (
        np.exp(exponents).astype(kind),
        np.linspace(0.5, 2, 200_001).astype(kind),
        np.linspace(0.99, 1.01, 100_001).astype(kind),
        np.arange(1, 100_001).astype(kind) * limits.smallest_subnormal,
    )
    for x in samples:
        assert error_in_ulp(log(x, fused=fused), np.log(wider(x))) <= 0.9


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_exceptional_values_are_those_of_ieee(kind, expand) -> None:
    log = expand("log", kind)
    x = np.array([0.0, -0.0, np.inf, 1.0], dtype=kind)
    assert log(x).tolist() == [-np.inf, -np.inf, np.inf, 0.0]
    assert np.isnan(log(np.array([-1.0, -1e-30, -np.inf, np.nan], dtype=kind))).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_errors_of_log1p_stay_within_the_promise(kind, fused, expand, error_in_ulp, wider) -> None:
    log1p, limits = expand("log1p", kind), np.finfo(kind)
    small = np.geomspace(limits.smallest_subnormal, 1, 200_001).astype(kind)
    samples = (
        np.linspace(-0.9, 3, 400_001).astype(kind),
        np.geomspace(1, limits.max / 2, 200_001).astype(kind)[:-1],
        (-1 + small[small >= limits.eps]).astype(kind)[:-1],
        small,
        -small[:-1],
    )
    for x in samples:
        x = x[x > -1]
        assert error_in_ulp(log1p(x, fused=fused), np.log1p(wider(x))) <= 1.5


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_exceptional_values_of_log1p_are_those_of_ieee(kind, expand) -> None:
    log1p = expand("log1p", kind)
    x = np.array([0.0, -0.0, -1.0, np.inf], dtype=kind)
    assert log1p(x).tolist() == [0.0, 0.0, -np.inf, np.inf]
    assert np.isnan(log1p(np.array([-1.5, -np.inf, np.nan], dtype=kind))).all()
