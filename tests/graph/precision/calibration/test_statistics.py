"""Statistics of values: what they hold, and that parts of the data add up to all of it."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import numpy as np
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.precision.calibration.statistics import (
    CalibrationError,
    ModelStatistics,
    ValueStatistics,
    WantedStatistics,
)
from tilewright.graph.precision.prepared import prepared_graph
from tilewright.graph.types import Array

from ..models import masked, network, whole

WANTED = WantedStatistics(("v",), frozenset({"v"}), {"v": 1}, bins=16)
LOOSE = WantedStatistics(("v",), frozenset(), {}, bins=16)


def of(*arrays: Array, wanted: WantedStatistics = WANTED) -> ValueStatistics:
    """The statistics of a value that has these in items, one after the other."""
    each = [ModelStatistics.of(wanted, {"v": array}) for array in arrays]
    return reduce(lambda one, other: one.merged(other, wanted.share), each).values["v"]


def test_a_value_has_ends_peaks_and_means() -> None:
    one = of(np.array([[[1, -5], [2, 3]]], np.float32))
    assert one.seen == (-5, 3)
    assert one.peaks is not None
    assert one.means is not None
    assert one.histogram is not None
    assert (list(one.peaks), list(one.means)) == ([5, 3], [-2, 2.5])
    assert (one.peaks.dtype, one.means.dtype) == (np.float32, np.float32)
    assert one.histogram.elements == 4


def test_channels_may_be_on_any_axis() -> None:
    for axis in range(3):
        wanted = WantedStatistics(("v",), frozenset(), {"v": axis})
        array = whole(1, 2, 3, 4)
        one = of(array, wanted=wanted)
        moved = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
        assert np.array_equal(one.peaks, np.abs(moved).max(1))  # type: ignore[arg-type]
        np.testing.assert_allclose(one.means, moved.mean(1), rtol=1e-6)  # type: ignore[arg-type]


def test_merged_statistics_are_those_of_all_items_in_any_order() -> None:
    arrays = [whole(n, 2, 3, 4, most=3 * n + 1) for n in range(4)]
    expected = of(np.concatenate(arrays))
    for order in permutations(arrays):
        one = of(*order)
        assert one.seen == expected.seen
        assert np.array_equal(one.peaks, expected.peaks)  # type: ignore[arg-type]
        assert np.array_equal(one.means, expected.means)  # type: ignore[arg-type]
        assert one.histogram is not None
        assert expected.histogram is not None
        assert one.histogram.exponent == expected.histogram.exponent
        assert np.array_equal(one.histogram.counts, expected.histogram.counts)


def test_merged_parts_of_parts_are_the_same() -> None:
    parts = [ModelStatistics.of(WANTED, {"v": whole(n, 1, 3, most=n + 1)}) for n in range(4)]
    a, b, c, d = parts
    left, right = a.merged(b).merged(c).merged(d), a.merged(b).merged(c.merged(d))
    assert left.items == right.items == 4
    assert left.values["v"].seen == right.values["v"].seen
    assert np.array_equal(left.values["v"].sums, right.values["v"].sums)  # type: ignore[arg-type]


def test_a_moving_average_begins_at_the_first_item() -> None:
    wanted = WantedStatistics(("v",), frozenset(), {}, share=0.5)
    arrays = [np.array([-a, a], np.float32) for a in (4, 8, 2)]
    assert of(*arrays, wanted=wanted).average == (-4, 4)
    assert of(arrays[0], wanted=wanted).average == (-4, 4)
    assert of(*arrays, wanted=wanted).seen == (-8, 8)


def test_an_item_without_elements_adds_nothing() -> None:
    empty, full = np.zeros((0, 2), np.float32), np.ones((3, 2), np.float32)
    assert of(empty).seen is None
    assert of(empty).is_finite
    for arrays in ((empty, full), (full, empty)):
        assert of(*arrays).seen == (1, 1)
        assert list(of(*arrays).means) == [1, 1]  # type: ignore[arg-type]


def test_what_is_infinite_once_has_no_statistics() -> None:
    finite, hidden = np.ones(3, np.float32), np.array([0, -np.inf], np.float32)
    for arrays in ((finite, hidden), (hidden, finite)):
        one = of(*arrays, wanted=LOOSE)
        assert not one.is_finite
        assert one.seen == (-np.inf, 1)
        assert one.histogram is None


@pytest.mark.parametrize(("number", "wanted"), [("nan", LOOSE), ("nan", WANTED), ("-inf", WANTED)])
def test_what_is_no_number_is_refused(number: str, wanted: WantedStatistics) -> None:
    array = np.ones((2, 3), np.float32)
    array[1, 2] = float(number)
    with pytest.raises(CalibrationError) as caught:
        of(array, wanted=wanted)
    assert str(caught.value) == (
        f"CalibrationError: calibrate: 'v' is {number} at [1, 2]; expected finite numbers. "
        "[calibrate-finite]\n"
        "  Hint: leave out the item, or look at what the model makes of it."
    )


def test_a_model_asks_for_all_its_values_and_for_channels_of_products() -> None:
    wanted = WantedStatistics.of(prepared_graph(import_onnx(network())), bins=8, share=None)
    assert wanted.names == ("x", "conv", "relu", "flat", "product", "y")
    assert wanted.finite == {"x", "conv", "flat", "product"}
    assert wanted.axes == {"x": 1, "flat": 1}


def test_masks_may_be_infinite() -> None:
    wanted = WantedStatistics.of(prepared_graph(import_onnx(masked())), bins=None, share=None)
    assert wanted.finite == {"x", "hide", "scores"}
