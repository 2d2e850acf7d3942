"""tir/reference/scatter_errors.py: how far roundings may take a scatter."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import Reference, reference

AT = np.array([1, 1, 0], np.int32)
EPS = 2.0**-24


def scattered(how: str, kind: str = "float32", *, twice: bool = False) -> PrimFunc:
    x = te.placeholder((3,), kind, name="X")
    u = te.placeholder((3,), kind, name="U")
    at = te.placeholder((3,), "int32", name="at")
    given = te.compute((3,), lambda k: u[k] * u[k], name="V") if twice else u
    return te.func(x, u, at, te.scatter(x, given, at, axis=0, combining=how, name="Y"), name="f")


def found(how: str, x: object, updates: object, kind: str = "float32", **more: bool) -> Reference:
    arrays = np.asarray(x, kind), np.asarray(updates, kind), AT
    return reference(scattered(how, kind, **more), arrays)


def allowed(
    how: str, x: object, updates: object, kind: str = "float32", **more: bool
) -> list[float]:
    (output,) = found(how, x, updates, kind, **more).outputs
    return output.allowed().tolist()


@pytest.mark.parametrize("how", ["none", "max", "min"])
def test_what_is_written_as_it_is_is_exact(how: str) -> None:
    (output,) = found(how, [1, 2, 3], [4, 5, 6]).outputs
    assert output.scale is None


def test_a_sum_counts_a_roundoff_of_each_step() -> None:
    (output,) = found("add", [100, 100, 100], [1, -1, 8]).outputs
    assert output.scale is not None
    one, two, none = output.scale
    assert 100 * EPS <= one <= 120 * EPS  # of 108
    assert 200 * EPS <= two <= 220 * EPS  # of 102, twice
    assert none == 0 or none < EPS


def test_errors_of_the_updates_are_those_of_their_elements() -> None:
    plain, squared = (
        found("add", [0, 0, 0], [1, 1, 1], twice=twice).outputs[0].scale for twice in (False, True)
    )
    assert plain is not None
    assert squared is not None
    assert (squared[:2] > plain[:2]).all()
    (most,) = found("max", [0, 0, 0], [1, 1, 1], twice=True).outputs
    assert most.scale is not None
    assert most.scale[2] == 0 < most.scale[0]


def test_a_product_that_may_leave_its_type_on_the_way_may_be_anything() -> None:
    large = allowed("mul", [1, 1e30, 1], [1, 1e20, 1e-20])
    assert np.isfinite(large[0])
    assert np.isfinite(allowed("mul", [1, 1e30, 1], [1e-3, 1e-20, 1])[1])
    assert np.isinf(large[1])
    assert np.isinf(allowed("mul", [1, 1e-30, 1], [1e-20, 1e20, 1])[1])
    verdict = found("mul", [1, 1e30, 1], [1e20, 1e-20, 1]).compare(
        [np.array([1, np.inf, 1], np.float32)]
    )
    assert verdict


def test_a_product_of_what_is_rounded_is_as_far_off_as_the_sample() -> None:
    assert (
        found("mul", [1, 2, 3], [0.1, 0.2, 0.3], twice=True)
        .compare([np.array([3 * 0, 0, 0], np.float32)])
        .passed
        is False
    )
    values = np.float32([0.1, 0.2, 0.3]) ** 2
    x = np.float32([1, 2, 3])
    y = np.float32([x[0] * values[2], x[1] * values[0] * values[1], x[2]])
    assert found("mul", [1, 2, 3], [0.1, 0.2, 0.3], twice=True).compare([y])


def test_integers_are_exact() -> None:
    assert allowed("add", [1, 2, 3], [4, 5, 6], "int32") == [0, 0, 0]
