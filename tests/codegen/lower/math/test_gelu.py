"""codegen/lower/math/gelu.py: the errors that it promises in both tails, its ends."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.math.gelu import _GELU
from tilewright.tir.intrinsics import GELU

PROMISES = [  # of a negative x, of a positive one
    ("float32", True, 7.2, 4.2),
    ("float32", False, 8.0, 4.2),
    ("float64", True, 12.0, 4.0),
    ("float64", False, 14.0, 4.0),
]
LOWEST = {"float32": -12.9, "float64": -37.5}
HIGHEST = {"float32": 5.6, "float64": 8.3}  # beyond, the value is x


def exact(x: np.ndarray) -> np.ndarray:
    """The function in float64, where it is good to a few ulp."""
    return np.asarray(GELU.meaning(x.astype(np.float64)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "fused", "negative", "positive"), PROMISES)
def test_errors_stay_within_the_promise(
    kind, fused, negative, positive, expand, error_in_ulp
) -> None:
    gelu, small = expand("gelu", kind), np.geomspace(1e-30, 1, 50_001).astype(kind)
    below = np.linspace(LOWEST[kind], 0, 400_001).astype(kind)[:-1]
    above = np.linspace(0, HIGHEST[kind] + 2, 200_001).astype(kind)[1:]
    for x, bound in ((below, negative), (-small, negative), (above, positive), (small, positive)):
        assert error_in_ulp(gelu(x, fused=fused), exact(x)) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_stay_within_the_promise_for_every_float32(sign, expand, error_in_ulp) -> None:
    gelu, end = expand("gelu", "float32"), np.float32(12.9 if sign < 0 else 6.0)
    bits = np.arange(np.float32(0.25).view(np.int32), end.view(np.int32), dtype=np.int32)
    for part in np.array_split(bits, 16):
        x = part.view(np.float32) * np.float32(sign)
        right = exact(x)
        for _, fused, negative, positive in PROMISES[:2]:
            bound = negative if sign < 0 else positive
            assert error_in_ulp(gelu(x, fused=fused), right) <= bound


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_below_what_is_normal_it_is_off_by_little(kind, fused, expand) -> None:
    gelu, clamp = expand("gelu", kind), _GELU[np.dtype(kind).itemsize * 8].clamp
    x = np.linspace(-clamp - 1, LOWEST[kind], 50_001).astype(kind)
    y, right, least = gelu(x, fused=fused), exact(x), np.finfo(kind).smallest_subnormal
    ulp = np.spacing(np.abs(right).astype(kind)).astype(np.float64)
    assert np.all(np.abs(y - right) <= 14 * ulp + np.abs(x) * least)
    assert np.all(np.signbit(y))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_it_is_x_or_zero_beyond_its_ends(kind, fused, expand) -> None:
    gelu = expand("gelu", kind)
    large = np.array([HIGHEST[kind], 2 * HIGHEST[kind], 50, 1e30, np.inf], dtype=kind)
    assert gelu(large, fused=fused).tolist() == large.tolist()
    low = gelu(np.array([-_GELU[np.dtype(kind).itemsize * 8].clamp, -50, -1e30], kind), fused=fused)
    assert low.tolist() == [0.0, 0.0, 0.0]
    assert np.signbit(low).all()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_zero_keeps_its_sign_and_nan_stays(kind, fused, expand) -> None:
    result = expand("gelu", kind)(np.array([0.0, -0.0, np.nan, -np.inf], kind), fused=fused)
    assert result[:2].tolist() == [0.0, 0.0]
    assert np.signbit(result[:2]).tolist() == [False, True]
    assert np.isnan(result[2:]).all()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_half_of_a_small_number_is_nearly_exact(kind, fused, expand) -> None:
    x = np.geomspace(np.finfo(kind).smallest_normal * 4, np.finfo(kind).eps / 16, 101).astype(kind)
    gelu = expand("gelu", kind)
    for signed in (x, -x):
        np.testing.assert_allclose(gelu(signed, fused=fused), signed / 2, rtol=np.finfo(kind).eps)
