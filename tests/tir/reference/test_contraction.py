"""tir/reference/contraction.py against einsum."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.reference.contraction import contract

EXTENTS = {"k": 5, "l": 3, "b": 2, "i": 4, "j": 6}


def factor(axes: str, order: str, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-4, 5, [EXTENTS[x] if x in axes else 1 for x in order]).astype(np.float64)


@pytest.mark.parametrize(
    "axes",
    [
        ("ik", "kj"),
        ("bik", "bkj"),
        ("bikl", "lkj"),
        ("ikl", "j"),
        ("ik", "kj", "lj"),
        ("i", "j"),
        ("kl", "kl"),
        ("bijk", "k"),
    ],
)
def test_it_sums_products_like_einsum(axes: tuple[str, ...]) -> None:
    rng, order = np.random.default_rng(0), "klbij"
    factors = [factor(part, order, rng) for part in axes]
    whole = [np.broadcast_to(f, list(EXTENTS.values())) for f in factors]
    expected = np.einsum(",".join([order] * len(factors)) + "->bij", *whole)
    result = contract(factors, list(EXTENTS.values()), summed=2)
    np.testing.assert_array_equal(np.broadcast_to(result, expected.shape), expected)
