"""tir/analysis/offsets.py: flat indices of a Load at many points, part by part."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.analysis.offsets import Indices, offsets
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32, INT32, INT64
from tilewright.tir.expr import Cast, Expr, Var, index
from tilewright.tir.reference.array_expr import ArrayEvaluator

X, Y, K = Var("x"), Var("y"), Var("k")
A = Buffer("A", FLOAT32, (7, 9, 5))
VALUES = {X: np.arange(6), Y: np.array([4, 0, 3, 1, 2, 2]), K: np.arange(3)[:, None]}


def found(*indices: Expr) -> Indices | None:
    return offsets(Load(A, indices), ArrayEvaluator(VALUES, {}).evaluate)


@pytest.mark.parametrize(
    "indices",
    [
        (X, Y, K),
        (X // 2 + K - 1 + 1, Y * 2, index(4)),
        (X, 2 * Y - K + 2 - Y, K + 2),
        (6 - X, X + K, Y),
        (X // 2 + K, X % 4 + Y, Y % 3 + K),
        (index(0), index(8), index(0)),
    ],
)
def test_offsets_are_those_of_the_indices_one_by_one(indices: tuple[Expr, ...]) -> None:
    each = [ArrayEvaluator(VALUES, {}).evaluate(i) for i in indices]
    wanted = np.ravel_multi_index(np.broadcast_arrays(*each), A.shape)
    got = found(*indices)
    assert got is not None
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("last", [K + 3, K - 1, Y + K, Cast(Cast(K, INT32), INT64) * 4])
def test_an_index_that_leaves_its_dimension_anywhere_is_not_taken(last: Expr) -> None:
    assert found(X, Y, last) is None


def test_an_index_that_stays_inside_only_where_parts_meet_is_taken() -> None:
    assert found(X, X - X + 4 + (X - Y) // 9, K) is not None  # both vary along one axis


def test_indices_of_another_type_are_left_to_others() -> None:
    assert found(Cast(X, INT32), Y, K) is None


def test_no_points_are_left_to_others() -> None:
    none = {X: np.arange(0), Y: np.arange(0), K: np.arange(3)[:, None]}
    assert offsets(Load(A, (X, Y, K)), ArrayEvaluator(none, {}).evaluate) is None
