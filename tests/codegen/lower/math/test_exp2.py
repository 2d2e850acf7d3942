"""codegen/lower/math/exp2.py: the error that it promises, its range, its exceptions."""

from __future__ import annotations

import numpy as np
import pytest

BIAS = {"float32": 127, "float64": 1023}
PROMISE = {
    ("float32", True): 0.9,
    ("float32", False): 1.2,
    ("float64", True): 0.9,
    ("float64", False): 1.1,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "fused"), PROMISE)
def test_errors_stay_within_the_promise(kind, fused, expand, error_in_ulp, wider) -> None:
    exp2, bias, bound = expand("exp2", kind), BIAS[kind], PROMISE[kind, fused]
    highest = np.nextafter(np.array(bias + 1, kind), np.array(0, kind))
    main = np.linspace(1 - bias, bias, 400_001).astype(kind)
    near = np.linspace(-1, 1, 100_001).astype(kind)
    top = np.minimum(np.linspace(bias, bias + 1, 50_001).astype(kind), highest)
    below = np.linspace(-bias - 20, 1 - bias, 50_001).astype(kind)
    for x in (main, near, top, below):
        assert error_in_ulp(exp2(x, fused=fused), np.exp2(wider(x))) <= bound


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_integral_powers_are_exact(kind, fused, expand) -> None:
    exp2, bias, mantissa = expand("exp2", kind), BIAS[kind], np.finfo(kind).nmant
    x = np.arange(1 - bias - mantissa, bias + 1).astype(kind)
    np.testing.assert_array_equal(exp2(x, fused=fused), np.ldexp(np.ones((), kind), x.astype(int)))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_it_overflows_and_vanishes_where_it_must(kind, expand) -> None:
    exp2, bias, mantissa = expand("exp2", kind), BIAS[kind], np.finfo(kind).nmant
    above = np.array([bias + 1, bias + 2, 2 * bias + 1, 1e30, np.inf], dtype=kind)
    assert np.isposinf(exp2(above)).all()
    below = np.array([-bias - mantissa - 1, -2 * bias - 1, -1e30, -np.inf], dtype=kind)
    assert exp2(below).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nan_and_zero_keep_their_value(kind, expand) -> None:
    exp2 = expand("exp2", kind)
    assert np.isnan(exp2(np.array([np.nan, -np.nan], dtype=kind))).all()
    assert exp2(np.array([0.0, -0.0], dtype=kind)).tolist() == [1.0, 1.0]
