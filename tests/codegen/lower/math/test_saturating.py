"""codegen/lower/math/saturating.py: the errors that tanh and erf promise, their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.codegen.lower.math import saturating

PROMISES = [
    ("tanh", "float32", True, 5.1),
    ("tanh", "float32", False, 5.9),
    ("tanh", "float64", True, 9.0),
    ("tanh", "float64", False, 9.0),
    ("erf", "float32", True, 5.6),
    ("erf", "float32", False, 6.3),
    ("erf", "float64", True, 10.0),
    ("erf", "float64", False, 10.0),
]
CLAMP = {
    ("tanh", "float32"): saturating._TANH[32].clamp,
    ("tanh", "float64"): saturating._TANH[64].clamp,
    ("erf", "float32"): saturating._ERF[32].clamp,
    ("erf", "float64"): saturating._ERF[64].clamp,
}
COUNT = {"tanh": 400_001, "erf": 200_001}


def exact(name: str, x: np.ndarray, wider) -> np.ndarray:
    """The function in a wider type; Python's erf is good to an ulp of float64, which is enough."""
    if name == "tanh":
        return np.tanh(wider(x))
    return np.array([math.erf(v) for v in x.tolist()])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "kind", "fused", "bound"), PROMISES)
def test_errors_stay_within_the_promise(
    name, kind, fused, bound, expand, error_in_ulp, wider
) -> None:
    function, end = expand(name, kind), CLAMP[name, kind] * 1.05
    samples = (
        np.linspace(-end, end, COUNT[name]).astype(kind),
        np.geomspace(1e-30, 1, COUNT[name] // 4).astype(kind),
    )
    for x in samples:
        assert error_in_ulp(function(x, fused=fused), exact(name, x, wider)) <= bound


@pytest.mark.slow
@pytest.mark.parametrize(("name", "low"), [("tanh", 3.0), ("erf", 1.2)])
def test_errors_stay_within_the_promise_for_every_float32_near_1(
    name, low, expand, error_in_ulp, wider
) -> None:
    function, end = expand(name, "float32"), np.float32(CLAMP[name, "float32"] * 1.01)
    bits = np.arange(np.float32(low).view(np.int32), end.view(np.int32), dtype=np.int32)
    x = bits.view(np.float32)
    right = exact(name, x, wider)
    for fused in (True, False):
        bound = next(b for n, k, f, b in PROMISES if (n, k, f) == (name, "float32", fused))
        result = function(x, fused=fused)
        assert error_in_ulp(result, right) <= bound
        assert result.max() == 1.0


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_it_is_one_exactly_beyond_the_clamp(name, kind, fused, expand) -> None:
    function, end = expand(name, kind), CLAMP[name, kind]
    x = np.array([end, np.nextafter(end, np.inf), 30, 1e30, np.inf], dtype=kind)
    assert function(x, fused=fused).tolist() == [1.0] * 5
    assert function(-x, fused=fused).tolist() == [-1.0] * 5


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_zero_keeps_its_sign_and_nan_stays(name, kind, expand) -> None:
    result = expand(name, kind)(np.array([0.0, -0.0, np.nan], dtype=kind))
    assert result[:2].tolist() == [0.0, 0.0]
    assert np.signbit(result[:2]).tolist() == [False, True]
    assert np.isnan(result[2])


def test_it_is_an_odd_function(expand) -> None:
    x = np.linspace(0, 10, 10_001).astype(np.float32)
    for name in ("tanh", "erf"):
        function = expand(name, "float32")
        np.testing.assert_array_equal(function(-x), -function(x))
