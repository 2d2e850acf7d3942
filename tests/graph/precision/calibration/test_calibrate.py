"""tw.calibrate: ranges of what a model computes, beside its reference and onnxruntime."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization.calibrate import CalibrationDataReader, MinMaxCalibrater

import tilewright as tw
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.options import OptionError
from tilewright.graph.precision.calibration import value_runner
from tilewright.graph.precision.calibration.histogram import ValueHistogram
from tilewright.graph.precision.calibration.ranges import (
    METHODS,
    entropy_range,
    least_error_range,
    percentile_range,
)
from tilewright.graph.precision.calibration.statistics import CalibrationError
from tilewright.graph.precision.prepared import calibrated_values, prepared_graph
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

from ..models import items, masked, network, whole

pytestmark = pytest.mark.needs_cc
NAMES = ("x", "conv", "relu", "flat", "product", "y")


class Items(CalibrationDataReader):  # type: ignore[misc]  # it has no types
    """Items as onnxruntime reads them."""

    def __init__(self, data: Iterable[dict[str, Array]]) -> None:
        self._data = iter(data)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._data, None)


def values_of(model: onnx.ModelProto, data: Iterable[Mapping[str, Array]]) -> dict[str, Array]:
    """Each value on all items, by the reference."""
    prepared = prepared_graph(import_onnx(model))
    graph = replace(prepared, outputs=tuple(n for n in calibrated_values(prepared) if n != "x"))
    found: dict[str, list[Array]] = {}
    for item in data:
        for name, array in {**item, **evaluate(graph, item)}.items():
            found.setdefault(name, []).append(array.astype(np.float32))
    return {name: np.stack(arrays) for name, arrays in found.items()}


# -- what it finds --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected() -> dict[str, Array]:
    return values_of(network(), items(3))


def test_minmax_has_the_ends_of_each_value(expected: dict[str, Array]) -> None:
    found = tw.calibrate(network(), items(3))
    assert tuple(found.ranges) == NAMES
    for name in NAMES:
        assert found.ranges[name] == (expected[name].min(), expected[name].max())
    assert (found.method, found.items, found.model) == ("minmax", 3, "small")
    assert (dict(found.histograms), found.infinite) == ({}, ())
    assert found.extremes == found.ranges


def test_channels_have_peaks_and_means(expected: dict[str, Array]) -> None:
    found = tw.calibrate(network(), items(3))
    assert set(found.channel_peaks) == {"x", "flat"}
    assert set(found.channel_means) == {"x", "flat"}
    x, flat = expected["x"], expected["flat"]
    assert np.array_equal(found.channel_peaks["x"], np.abs(x).max(axis=(0, 1, 3, 4)))
    assert np.array_equal(found.channel_peaks["flat"], flat.max(axis=(0, 1)))
    for array, name, axes in ((x, "x", (0, 1, 3, 4)), (flat, "flat", (0, 1))):
        exact = array.mean(axis=axes, dtype=np.float64)
        np.testing.assert_allclose(found.channel_means[name], exact, rtol=1e-6)


def test_a_calibration_fits_the_model_that_it_is_of() -> None:
    found = tw.calibrate(network(batch="n"), items(2, batch=3), shapes={"n": (1, 3, 8)})
    found.fitted(prepared_graph(import_onnx(network())))


@pytest.mark.parametrize("method", ["percentile", "entropy", "mse"])
def test_methods_with_histograms_choose_from_all_elements(
    method: str, expected: dict[str, Array]
) -> None:
    found = tw.calibrate(network(), items(3), method=method, bins=200, percentile=95.0)  # type: ignore[arg-type]
    for name in NAMES:
        histogram = ValueHistogram.of(expected[name], 256)
        assert np.array_equal(found.histograms[name].counts, histogram.counts)
        ends = expected[name].min(), expected[name].max()
        chosen = {
            "percentile": percentile_range(*histogram.trimmed(), ends, 95.0),
            "entropy": entropy_range(*histogram.trimmed(200), ends),
            "mse": least_error_range(*histogram.trimmed(), ends),
        }
        assert found.ranges[name] == chosen[method]
        assert found.extremes[name] == ends
    assert (found.ranges != found.extremes) is (method != "mse")


@pytest.mark.parametrize("method", ["minmax", "moving"])
def test_ranges_are_onnxruntimes_to_the_bit(method: str, tmp_path: Path) -> None:
    """A batch for each item: only then does onnxruntime's average move."""
    path = tmp_path / "model.onnx"
    onnx.save(network(), path)
    other = MinMaxCalibrater(
        path,
        augmented_model_path=str(tmp_path / "augmented.onnx"),
        moving_average=method == "moving",
        averaging_constant=0.3,
    )
    other.augment_graph()
    other.create_inference_session()
    for item in items(4):
        other.collect_data(Items([item]))
    theirs = other.compute_data()
    ours = tw.calibrate(path, items(4), method=method, averaging=0.3)  # type: ignore[arg-type]
    ends = {name: tuple(float(end[0]) for end in theirs[name].range_value) for name in NAMES}
    assert ours.ranges == ends
    assert (ours.ranges == ours.extremes) is (method == "minmax")


def test_a_mask_that_is_infinite_has_no_range() -> None:
    item = {"x": whole(0, 2, 3), "hide": np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.float32)}
    found = tw.calibrate(masked(), [item], method="entropy")
    assert found.infinite == ("mask", "sum")
    assert tuple(found.ranges) == ("x", "hide", "scores", "y")
    assert 0 <= found.ranges["y"][0] <= found.ranges["y"][1] <= 1


# -- data -----------------------------------------------------------------------------------------


def test_all_forms_of_data_give_the_same(tmp_path: Path) -> None:
    for number, item in enumerate(items(3)):
        np.savez(tmp_path / f"{number}.npz", **item)
    arrays = [item["x"] for item in items(3)]
    forms: list[Any] = [list(items(3)), arrays, [(a,) for a in arrays], tmp_path, lambda: items(3)]
    assert len({str(tw.calibrate(network(), form)) for form in forms}) == 1


def test_so_many_items_are_read_as_are_asked_for() -> None:
    told = list[str]()
    found = tw.calibrate(network(), items(9), most=2, progress=told.append)
    assert found.items == 2
    assert (told[0], told[-3:]) == ("import", ["item 1", "item 2", "ranges"])


def refused(data: Any, **options: Any) -> str:
    with pytest.raises((CalibrationError, OptionError)) as caught:
        tw.calibrate(options.pop("model", network()), data, **options)
    return str(caught.value)


def test_an_item_that_does_not_fit_is_refused() -> None:
    good = next(items(1))
    assert refused([good, {"x": whole(0, 2, 2, 4, 4)}]) == (
        "CalibrationError: calibrate: item 1 does not fit: small: 'x' has shape (2, 2, 4, 4), "
        "expected (1, 2, 4, 4). [calibrate-run]\n"
        "  Hint: shapes={...} says which sizes the model takes."
    )
    assert "item 0 does not fit: small: input 'x' is missing; expected x: float32[1, 2, 4, 4]." in (
        refused([{}])
    )
    assert "there is no input 'z'; the inputs are: 'x'." in refused([{**good, "z": good["x"]}])
    assert "item 0 does not fit" in refused([{"x": good["x"].astype(np.float64)}])


def test_data_that_are_no_numbers_are_refused() -> None:
    data = list(items(3))
    data[2]["x"][0, 1, 2, 3] = np.inf
    assert refused(data) == (
        "CalibrationError: calibrate: 'x' is inf at [0, 1, 2, 3]; expected finite numbers. "
        "[calibrate-finite]\n"
        "  Note: this is in item 2 of the data.\n"
        "  Hint: leave out the item, or look at what the model makes of it."
    )


def test_values_that_are_no_numbers_are_refused() -> None:
    data = list(items(2))
    data[1]["x"][:] = 3e38
    said = refused(data)
    assert "CalibrationError: calibrate: 'conv' is " in said
    assert "this is in item 1 of the data." in said


def test_no_data_are_refused() -> None:
    assert "[calibrate-no-items]" in refused([])
    assert "[calibrate-data]" in refused({"x": np.ones(1)})


def test_a_model_without_floats_is_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "whole",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert refused([np.ones(3, np.int32)], model=model) == (
        "CalibrationError: calibrate: 'whole' computes no value of float32; expected a model in "
        "float32. [calibrate-no-values]"
    )


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("method", "magic", " or ".join(f"'{one}'" for one in METHODS)),
        ("bins", 127, "128 to 65536"),
        ("bins", 512.0, "128 to 65536"),
        ("percentile", 101, "50 to 100"),
        ("percentile", float("nan"), "50 to 100"),
        ("averaging", -0.1, "0 to 1"),
        ("averaging", True, "0 to 1"),
        ("most", 0, "a number of items, or None for all"),
    ],
)
def test_an_option_that_has_no_meaning_is_refused(
    option: str, value: object, expected: str
) -> None:
    assert refused(items(1), **{option: value}) == (
        f"OptionError: calibrate: option {option}={value!r} has no meaning; expected {expected}. "
        "[calibrate-option]"
    )


# -- on many machines -----------------------------------------------------------------------------


class Instant(Executor):
    """Does each job as it is submitted; counts how many there are."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails, self.jobs = fails, 0

    def submit(self, job: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        self.jobs += 1
        future = Future[Any]()
        try:
            if self.fails is not None:
                raise self.fails
            future.set_result(job(*arguments))
        except Exception as error:  # any class: as an executor passes it on
            future.set_exception(error)
        return future


@pytest.mark.parametrize("method", ["minmax", "entropy"])
def test_workers_of_an_executor_find_the_same(method: str) -> None:
    data, pool = list(items(20)), Instant()
    here = tw.calibrate(network(), data, method=method)  # type: ignore[arg-type]
    there = tw.calibrate(network(), data, method=method, executor=pool)  # type: ignore[arg-type]
    assert (pool.jobs, str(there)) == (3, str(here))
    for name in here.channel_means:
        np.testing.assert_allclose(there.channel_means[name], here.channel_means[name], rtol=1e-6)


def test_a_worker_keeps_the_last_engine_alone() -> None:
    for seed in (1, 2):
        tw.calibrate(network(seed=seed), items(20), executor=Instant())
        assert len(value_runner._runners) == 1


def test_threads_find_the_same() -> None:
    with ThreadPoolExecutor(2) as pool:
        there = tw.calibrate(network(), items(40), executor=pool)
    assert str(there) == str(tw.calibrate(network(), items(40)))


@pytest.mark.slow
def test_processes_find_the_same() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = tw.calibrate(network(), items(40), executor=pool)
    assert str(there) == str(tw.calibrate(network(), items(40)))


def test_no_more_items_are_read_than_workers_have_work() -> None:
    read = list[int]()

    def data() -> Iterator[dict[str, Array]]:
        for number, item in enumerate(items(200)):
            read.append(number)
            yield item

    class Slow(ThreadPoolExecutor):
        def submit(self, job: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            assert len(read) <= 8 * (len(done) + 3)
            future = super().submit(job, *arguments, **options)
            future.add_done_callback(done.append)
            time.sleep(0.001)
            return future

    done = list[Future[Any]]()
    with Slow(1) as pool:
        assert tw.calibrate(network(), data(), executor=pool).items == 200


def test_an_error_of_a_worker_names_the_item() -> None:
    data = list(items(12))
    data[9]["x"][0, 0, 0, 0] = np.nan
    assert "this is in item 9 of the data." in refused(data, executor=Instant())


def test_a_lost_worker_is_told_of() -> None:
    assert refused(items(3), executor=Instant(OSError("the worker is gone"))) == (
        "CalibrationError: calibrate: the executor lost a job: OSError: the worker is gone. "
        "[calibrate-executor]"
    )


def test_a_moving_average_has_an_order() -> None:
    assert refused(items(3), method="moving", executor=Instant()) == (
        "OptionError: calibrate: options method='moving' and executor contradict each other: a "
        "moving average depends on the order of the items. [calibrate-moving-executor]\n"
        "  Hint: leave out one of them."
    )
