"""codegen/lower/math/expm1.py: the error that it promises, its exceptions."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("kind", "promised"), [("float32", 4.2), ("float64", 2.2)])
def test_errors_stay_within_the_promise(kind, promised, fused, expand, error_in_ulp, wider) -> None:
    expm1, limits = expand("expm1", kind), np.finfo(kind)
    small = np.geomspace(limits.smallest_subnormal, 1, 200_001).astype(kind)
    samples = (
        np.linspace(-1, 1, 400_001).astype(kind),
        np.linspace(-70, np.log(limits.max), 400_001).astype(kind)[:-1],
        small,
        -small,
    )
    for x in samples:
        assert error_in_ulp(expm1(x, fused=fused), np.expm1(wider(x))) <= promised


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_exceptional_values_are_those_of_ieee(kind, fused, expand) -> None:
    expm1 = expand("expm1", kind)
    x = np.array([0.0, -0.0, np.inf, -np.inf, 1e4, -1e4], dtype=kind)
    assert expm1(x, fused=fused).tolist() == [0.0, 0.0, np.inf, -1.0, np.inf, -1.0]
    assert np.isnan(expm1(np.array([np.nan], dtype=kind), fused=fused)).all()
