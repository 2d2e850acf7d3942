from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tilewright.runtime.model.interface import TensorSpec
from tilewright.runtime.model.verification import (
    VerifyError,
    compare_outputs,
    random_inputs,
    roundings_of,
)
from tilewright.tir.dtype import dtype

Y = np.array([1.0, -8.0, 3.0], np.float32)


def share(got: np.ndarray, expected: np.ndarray, **tolerances: float) -> float:
    return compare_outputs("m", {"y": got}, {"y": expected}, **tolerances).outputs[0].share


def test_the_error_is_compared_with_the_largest_magnitude() -> None:
    assert share(Y, Y.astype(np.float64)) == 0
    assert share(Y, Y + np.array([8e-5, 0, 0])) == pytest.approx(1, rel=1e-2)
    assert not compare_outputs("m", {"y": Y}, {"y": Y.astype(np.float64) + 1e-4})


def test_an_accepted_error_counts_where_it_is_more_than_usual() -> None:
    off = Y.astype(np.float64) + np.array([8e-4, 0, 0])
    assert share(Y, off, tolerance=1e-4) == pytest.approx(1, rel=1e-2)
    assert share(Y, off, tolerance=1e-6) == share(Y, off) == pytest.approx(10, rel=1e-2)
    assert share(Y, off, tolerance=1e-4, slack=100.0) == pytest.approx(0.1, rel=1e-2)
    assert share(np.array([1]), np.array([2]), tolerance=0.9) == np.inf


def test_given_tolerances_count_element_by_element() -> None:
    off = Y.astype(np.float64) * 1.01
    assert share(Y, off, rtol=0.02) <= 1
    assert share(Y, off, rtol=0.005) > 1
    assert share(Y, off, atol=0.1) <= 1


def test_what_is_not_finite_must_be_the_same() -> None:
    strange = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert share(strange, strange.astype(np.float64)) == 0
    for wrong in ([0, np.inf, -np.inf], [np.nan, -np.inf, -np.inf], [np.nan, np.inf, 1]):
        assert share(np.array(wrong, np.float32), strange.astype(np.float64)) == np.inf


def test_whole_numbers_must_be_equal() -> None:
    whole = np.array([1, 2], np.int64)
    assert share(whole, whole) == 0
    assert share(whole, whole + 1) == np.inf
    assert share(np.array([True]), np.array([False])) == np.inf


@pytest.mark.parametrize(
    ("name", "off"),
    [("float16", 2**-9), ("bfloat16", 2**-6), ("float8_e4m3fn", 2**-2), ("float8_e5m2", 2**-1)],
)
def test_types_that_are_only_stored_may_be_two_places_off(name: str, off: float) -> None:
    got = np.array([1.0], dtype(name).numpy)
    assert share(got, np.array([1.0 + off])) <= 1
    assert share(got, np.array([1.0 - 1.5 * off])) > 1
    four = np.array([3], dtype("int4").numpy)
    assert share(four, four) == 0
    assert share(four, np.array([2], four.dtype)) == np.inf


def test_thirty_two_times_the_error_of_the_model_s_own_types_is_allowed() -> None:
    expected = np.array([1.0, 100.0])
    for error, share in ((15.6, 0.975), (16.4, 1.025)):
        got = {"y": np.array([1.0, 100.0 + error], np.float32)}
        report = compare_outputs("m", got, {"y": expected}, roundings={"y": 0.5})
        assert report.outputs[0].share == pytest.approx(share, rel=1e-4)
        assert report.outputs[0].rounding == 0.5
        assert bool(report) == (share < 1)
    assert str(report.outputs[0]) == (
        "y: error 16.4 at [1], 1 of the allowed; the model's own types explain 0.5"
    )


def test_what_is_not_finite_explains_nothing() -> None:
    class Lost:
        def __call__(self, inputs: object) -> dict[str, np.ndarray]:
            return {"y": np.array([1.0, 2.0, np.nan])}

        def in_own_types(self, inputs: object) -> dict[str, np.ndarray]:
            return {"y": np.array([1.5, np.inf, np.nan], np.float32)}

    lost = Lost()
    assert roundings_of(lost, {}, lost({}), lost.in_own_types({})) == {"y": 0.5}


def test_what_rounding_the_inputs_does_is_allowed_where_sums_cancel() -> None:
    class Sum:
        def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {"y": np.add.reduce(inputs["x"], dtype=np.float64)}

        def in_own_types(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {"y": np.float32(self(inputs)["y"])}  # summed better than any kernel does

    model = Sum()
    given = {"x": np.array([1e4, 1.0, -1e4], np.float32)}
    found = roundings_of(model, given, model(given), model.in_own_types(given))["y"]
    assert 0 < found <= 2 * np.spacing(np.float32(1e4)) + np.spacing(np.float32(1.0))
    report = compare_outputs(
        "m", {"y": np.float32(1.0 + 2e-3)}, model(given), roundings={"y": found}
    )
    assert report


def test_nothing_is_equal_to_nothing() -> None:
    assert share(np.zeros((0, 3), np.float32), np.zeros((0, 3))) == 0


def test_a_report_tells_the_worst_element() -> None:
    report = compare_outputs("m", {"y": Y}, {"y": Y + np.array([0.0, 1.0, 0.0])})
    assert str(report) == "m: different\n  y: error 1 at [1], 1.4e+04 of the allowed"
    assert "<td>y</td>" in report._repr_html_()
    with pytest.raises(VerifyError) as caught:
        report.raise_for_difference()
    assert str(caught.value) == (
        "VerifyError: verify: 'm' differs from its reference: y: error 1 at [1], 1.4e+04 of the "
        "allowed. [verify-differs]"
    )
    compare_outputs("m", {"y": Y}, {"y": Y}).raise_for_difference()


def test_random_inputs_fit_their_specs_and_repeat() -> None:
    specs = [
        TensorSpec("f", np.dtype(np.float32), (3, 4)),
        TensorSpec("i", np.dtype(np.int64), (5,)),
        TensorSpec("b", np.dtype(np.bool_), (6,)),
        TensorSpec("h", dtype("bfloat16").numpy, (7,)),
        TensorSpec("q", dtype("uint4").numpy, (8,)),
    ]
    first, second = random_inputs(specs), random_inputs(specs)
    for spec in specs:
        assert (first[spec.name].dtype, first[spec.name].shape) == (spec.dtype, spec.shape)
        assert np.array_equal(first[spec.name], second[spec.name])
    assert not np.array_equal(random_inputs(specs, 1)["f"], first["f"])
    assert (first["h"].astype(float) % 1 != 0).any()
