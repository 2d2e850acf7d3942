"""graph/kernels/cook_toom.py: the matrices compute correlations, exactly, whatever the points."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tilewright.graph.kernels.cook_toom import cook_toom

HALF = Fraction(1, 2)


@pytest.mark.parametrize("negated", [(), (0,), (1, 2)])
@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize("points", [(0, 1), (0, 1, -1), (3, HALF, -2, 0), (0, 1, -1, HALF, -3)])
def test_the_matrices_compute_a_correlation(
    points: Sequence[Fraction | int], taps: int, negated: Sequence[int]
) -> None:
    results = len(points) + 2 - taps
    rng = np.random.default_rng(0)
    data = [Fraction(int(n)) for n in rng.integers(-9, 10, results + taps - 1)]
    taken = [Fraction(int(n)) for n in rng.integers(-9, 10, taps)]
    expected = [sum(data[i + k] * taken[k] for k in range(taps)) for i in range(results)]
    weights, rows, result = (
        np.array(matrix, dtype=object) for matrix in cook_toom(points, taps, negated)
    )
    assert list(result @ ((weights @ taken) * (rows @ data))) == expected


def test_two_results_of_three_taps_have_the_matrices_that_lavin_and_gray_print() -> None:
    weights, data, result = cook_toom((0, 1, -1), 3, negated=(0, 3))
    assert weights == ((1, 0, 0), (HALF, HALF, HALF), (HALF, -HALF, HALF), (0, 0, 1))
    assert data == ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
    assert result == ((1, 1, 1, 0), (0, 1, -1, -1))
