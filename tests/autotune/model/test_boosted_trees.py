from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.autotune.model.boosted_trees import Matrix, Vector, fit_trees


def steps(points: Matrix) -> Vector:
    """Two columns that act together, one that adds; all others say nothing."""
    together = (points[:, 0] > 5) * np.log2(1 + points[:, 1])
    return np.asarray(together + np.sin(points[:, 2] / 3), dtype=np.float64)


def drawn(count: int, seed: int = 0, columns: int = 12) -> Matrix:
    return np.random.default_rng(seed).integers(0, 12, (count, columns)).astype(np.float64)


def test_a_known_function_is_found_among_columns_that_say_nothing() -> None:
    points, others = drawn(400), drawn(1000, seed=1)
    wanted = steps(others)
    error = fit_trees(points, steps(points)).predict(others) - wanted
    assert error.std() < 0.08 * wanted.std()


def test_noise_is_not_taken_for_a_function() -> None:
    points, others = drawn(400), drawn(1000, seed=1)
    noise = 0.3 * np.random.default_rng(2).standard_normal(400)
    error = fit_trees(points, steps(points) + noise).predict(others) - steps(others)
    assert error.std() < 0.3


def test_equal_data_give_equal_trees() -> None:
    points = drawn(100)
    one, other = (fit_trees(points, steps(points)) for _ in range(2))
    assert np.array_equal(one.cuts, other.cuts)
    assert np.array_equal(one.leaves, other.leaves)


def test_the_order_of_a_column_is_all_that_counts() -> None:
    points = drawn(200)
    values = steps(points)
    found = fit_trees(points, values).predict(points)
    assert fit_trees(np.exp2(points), values).predict(np.exp2(points)) == pytest.approx(found)


def test_where_nothing_tells_points_apart_the_mean_is_expected() -> None:
    points, values = np.ones((4, 2)), np.array([1.0, 2.0, 3.0, 6.0])
    assert fit_trees(points, values).predict(np.zeros((2, 2))) == pytest.approx([3.0, 3.0])
    assert fit_trees(np.zeros((3, 0)), values[:3]).predict(np.zeros((1, 0))) == pytest.approx([2.0])


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_no_value_beyond_those_seen_is_expected(values: list[float]) -> None:
    points = np.array(values)[:, None]
    found = fit_trees(points, np.array(values), trees=20).predict(
        np.linspace(-2e3, 2e3, 50)[:, None]
    )
    assert found.min() >= min(values) - 1e-6
    assert found.max() <= max(values) + 1e-6
