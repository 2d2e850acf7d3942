"""codegen/lower/math/pow.py: the error that it promises, its exceptions, its short forms."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.expr import Call, Div, Select
from tilewright.tir.visit import walk

COUNT = 60_000
BIAS = {"float32": 127, "float64": 1023}
FAR = {"float32": 24.0, "float64": 200.0}
SPECIAL = (0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, -2.5, 0.25, 0.75, 1.5)
SPECIAL += (np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 4, 1.0000001, 16777217)


def numpy_pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.power(x, y)


def pairs(kind: str, reach: float, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Bases from 2**-near to 2**near, exponents for results from 2**-reach to 2**reach."""
    rng = np.random.default_rng(0)
    base, result = rng.uniform(-near, near, COUNT), rng.uniform(-reach, reach, COUNT)
    return np.exp2(base).astype(kind), (result / base).astype(kind)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("near", [1e-3, 1.0, 120.0])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_errors_stay_within_the_promise(kind, near, fused, expand, error_in_ulp, wider) -> None:
    power, limits = expand("pow", kind), np.finfo(kind)
    for reach, bound in ((16, 2.5), (64, 10.0), (BIAS[kind], FAR[kind])):
        x, y = pairs(kind, reach, near)
        right = numpy_pow(wider(x), wider(y))
        kept = (right > 4 * limits.smallest_normal) & (right < limits.max)
        result = power(x[kept], y[kept], fused=fused)
        assert error_in_ulp(result, right[kept]) <= bound


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [0.75, 0.5, 0.25, 1.5, 2.0, 3.0, -1.0, -0.5, 0.7, -0.75])
def test_constant_exponents_are_at_least_as_good(
    exponent, kind, fused, expand, error_in_ulp, wider
) -> None:
    power = expand("pow", kind, exponent)
    x = np.concatenate([np.linspace(1, 1000, COUNT), np.geomspace(1e-5, 1e5, COUNT)]).astype(kind)
    right = numpy_pow(wider(x), wider(np.full_like(x, exponent)))
    assert error_in_ulp(power(x, fused=fused), right) <= 2.3


@pytest.mark.parametrize("exponent", [0.75, 0.5, 0.25, 1.5, 2.0, 3.0, -1.0, 1.0, 0.0])
def test_short_forms_need_no_logarithm(exponent, expand) -> None:
    nodes = list(walk(expand("pow", "float32", exponent).expr))
    assert len([n for n in nodes if isinstance(n, Call | Div | Select)]) <= 4


def assert_ieee(found: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Every sign, zero, infinity and NaN is that of IEEE 754; results below normal count as 0."""
    right = numpy_pow(x, y)
    right = np.where(np.isneginf(x) & (y == 0.5), np.inf, right)  # NumPy takes a square root here
    found, right = (
        np.where(np.abs(a) < np.finfo(x.dtype).smallest_normal, np.copysign(0, a), a)
        for a in (found, right)
    )
    np.testing.assert_allclose(found, right, rtol=3e-6)
    same_sign = (np.signbit(found) == np.signbit(right)) | np.isnan(right)
    assert same_sign.all(), list(zip(x[~same_sign], y[~same_sign], strict=True))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_exceptional_values_are_those_of_ieee(kind, expand) -> None:
    special = np.array([*SPECIAL, np.finfo(kind).max, -np.finfo(kind).max], dtype=kind)
    x, y = (a.reshape(-1) for a in np.meshgrid(special, special))
    assert_ieee(expand("pow", kind)(x, y), x, y)
    for exponent in special:
        found = expand("pow", kind, float(exponent))(special)
        assert_ieee(found, special, np.full_like(special, exponent))
