"""tw.calibrate: run a model in floats on some data, and choose a range for each of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from ...given_model import imported_graph
from ...importers.traced_model import traced_model
from ...ir.ir import Graph
from ...options import OptionError, Shapes, check_shapes
from ..channels.channel_factors import Factors, rescaled
from ..channels.equalisation import equalised_factors, smoothing_factors
from ..channels.products import model_products, products_digest
from ..layers import WEIGHTS, WeightScales
from ..prepared import prepared_graph
from .calibration import Calibration
from .calibration_data import CalibrationData, items_of
from .ranges import (
    ENTROPY_LEVELS,
    METHODS,
    WITH_HISTOGRAMS,
    Bounds,
    CalibrationMethod,
    entropy_range,
    least_error_range,
    percentile_range,
)
from .statistics import ModelStatistics, ValueStatistics, WantedStatistics
from .value_runner import ValueRunner, statistics_of_workers

Progress = Callable[[str], object]

_NOTHING: Bounds = (np.float32(0), np.float32(0))  # the range of a value without elements
_MOST_BINS = 1 << 16


def calibrate(
    model: object,
    data: CalibrationData,
    *,
    method: CalibrationMethod = "minmax",
    shapes: Shapes | None = None,
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    constants: Mapping[str, object] | None = None,
    bins: int = 2048,
    percentile: float = 99.999,
    averaging: float = 0.01,
    equalise: bool = False,
    smooth: float | None = None,
    weights: WeightScales = "channel",
    most: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Run a model in floats on some data, and choose a range for each of its values of float32,
    from what the values were: what `compile(..., calibration=)` takes.

    model, shapes, args, kwargs, constants: as `compile` has them. data: an iterable, read once, one
    item at a time; each is a dict of arrays by input, a tuple of them in the order of the inputs,
    or the array of a single input. Or a folder of .npy or .npz files, one for each item, in the
    order of their names; or a function that gives such an iterable. most: of items. executor: one
    of concurrent.futures, or of Dask, whose workers run the model, on machines like this one; not
    for "moving", which has an order. progress: called at each stage, and with the number of items.
    method: "minmax": the least and the largest number. "moving": those of the first item, then
    moved by the share `averaging` of the way to those of each later one. "percentile": what leaves
    out 100 - `percentile` per cent, half at either end. "entropy": the symmetric range that loses
    the least information in 128 levels (S. Migacz, 2017). "mse": of 36 shares of the range that was
    seen, from 0.3, the one with the least squared error in 256 levels. All but the last are those
    of onnxruntime's calibrators. bins: of a histogram, at least so many over the magnitudes of a
    value, for "entropy" at most. Their width is a power of two: memory is bounded, and the order of
    the items does not matter. equalise: first divide the channels between products by factors under
    which their weights are as large on either side (M. Nagel et al., 2019). smooth: first move
    peaks of channels from data to the weights of matrix products, 0.5 for half of them
    (SmoothQuant, G. Xiao et al., 2023); the data are read twice. `compile` divides likewise.
    weights: a scale of levels for each output "channel"; for all of a "tensor", which loses more.
    Raises: OptionError; CalibrationError, a ModelError, for data that do not fit, for NaN, and for
    infinities of inputs and of what products read or make; what `compile` raises.
    """
    _check(method, bins, percentile, averaging, most)
    _check_factors(equalise, smooth, weights, data)
    _check_order(method, executor)
    check_shapes(shapes)
    tell = progress or _silent
    tell("import")
    source = traced_model(model, args, kwargs, shapes)
    prepared = prepared_graph(imported_graph(source, shapes, constants))
    collect = _Collector(data, most, executor, tell)
    factors = _factors(prepared, collect, equalise, smooth)
    found = collect(
        rescaled(prepared, factors),
        1 << (bins - 1).bit_length() if method in WITH_HISTOGRAMS else None,
        averaging if method == "moving" else None,
    )
    tell("ranges")
    return _calibration(prepared, _Choice(method, bins, percentile, weights), found, factors)


def _factors(prepared: Graph, collect: _Collector, equalise: bool, smooth: float | None) -> Factors:
    """By what the channels of values are divided."""
    factors: Factors = equalised_factors(prepared) if equalise else {}
    if smooth is None:
        return factors
    scaled = rescaled(prepared, factors)
    seen = collect(scaled, None, None).values
    peaks = {name: one.peaks for name, one in seen.items() if one.peaks is not None}
    return _both(factors, smoothing_factors(scaled, peaks, smooth))


def _both(factors: Factors, later: Factors) -> Factors:
    """Factors of values that are divided twice."""
    shared = {name: one * later[name] for name, one in factors.items() if name in later}
    return {**factors, **later, **shared}


@dataclass(frozen=True, slots=True)
class _Collector:
    """Runs a model on the data."""

    data: CalibrationData
    most: int | None
    executor: Executor | None
    tell: Progress

    def __call__(self, graph: Graph, bins: int | None, share: float | None) -> ModelStatistics:
        """What its values are."""
        runner = ValueRunner.of(graph, WantedStatistics.of(graph, bins, share), self.tell)
        items = items_of(self.data, runner.engine.inputs, self.most)
        if self.executor is None:
            return runner.all_statistics(items, self.tell)
        return statistics_of_workers(runner, items, self.executor, self.tell)


@dataclass(frozen=True, slots=True)
class _Choice:
    """How a range is chosen, and what of weights gets a scale."""

    method: CalibrationMethod
    bins: int
    percentile: float
    weights: WeightScales

    def __call__(self, value: ValueStatistics, seen: Bounds) -> Bounds:
        """The range of a value. Requires: it has elements, all finite."""
        if self.method == "minmax":
            return seen
        if self.method == "moving":
            assert value.average is not None
            return value.average
        assert value.histogram is not None
        if self.method == "percentile":
            return percentile_range(*value.histogram.trimmed(), seen, self.percentile)
        if self.method == "mse":
            return least_error_range(*value.histogram.trimmed(), seen)
        return entropy_range(*value.histogram.trimmed(self.bins), seen)


def _calibration(
    prepared: Graph, choose: _Choice, found: ModelStatistics, factors: Factors
) -> Calibration:
    """The ranges that a method chooses, and what else was seen."""
    finite = {name: one for name, one in found.values.items() if one.is_finite}
    seen = {name: one.seen or _NOTHING for name, one in finite.items()}
    ranges = {
        name: choose(one, seen[name]) if one.seen else _NOTHING for name, one in finite.items()
    }
    return Calibration(
        prepared.name,
        products_digest(prepared),
        choose.method,
        found.items,
        {name: _numbers(one) for name, one in ranges.items()},
        {name: _numbers(one) for name, one in seen.items()},
        {name: one.peaks for name, one in finite.items() if one.peaks is not None},
        {name: one.means for name, one in finite.items() if one.means is not None},
        {name: one.histogram for name, one in finite.items() if one.histogram is not None},
        factors,
        tuple(name for name, one in found.values.items() if not one.is_finite),
        choose.weights,
        model_products(prepared),
    )


def _numbers(bounds: Bounds) -> tuple[float, float]:
    return float(bounds[0]), float(bounds[1])


def _check(
    method: object, bins: object, percentile: object, averaging: object, most: object
) -> None:
    """Refuse options that have no meaning. Raises: OptionError."""
    if method not in METHODS:
        raise _no_option("method", method, " or ".join(f"'{one}'" for one in METHODS))
    if type(bins) is not int or not ENTROPY_LEVELS <= bins <= _MOST_BINS:
        raise _no_option("bins", bins, f"{ENTROPY_LEVELS} to {_MOST_BINS}")
    if not _is_number(percentile, 50.0, 100.0):
        raise _no_option("percentile", percentile, "50 to 100")
    if not _is_number(averaging, 0.0, 1.0):
        raise _no_option("averaging", averaging, "0 to 1")
    if most is not None and (type(most) is not int or most < 1):
        raise _no_option("most", most, "a number of items, or None for all")


def _check_factors(equalise: object, smooth: object, weights: object, data: object) -> None:
    """Refuse what has no meaning, and data that can be read once where they are read twice.

    Raises: OptionError.
    """
    if weights not in WEIGHTS:
        raise _no_option("weights", weights, " or ".join(f"'{one}'" for one in WEIGHTS))
    if not isinstance(equalise, bool):
        raise _no_option("equalise", equalise, "True or False")
    if smooth is None:
        return
    if not _is_number(smooth, 0.0, 1.0):
        raise _no_option("smooth", smooth, "None, or a number from 0 to 1")
    if isinstance(data, Iterator):
        raise OptionError(
            f"calibrate: option smooth={smooth!r} reads the data twice, and they are a "
            f"{type(data).__name__}, which is read once.",
            code="calibrate-smooth-data",
            hints=("a list, a folder, or a function that makes an iterator can be read again.",),
        )


def _check_order(method: object, executor: object) -> None:
    """Refuse workers for what depends on the order of the items. Raises: OptionError."""
    if executor is not None and method == "moving":
        raise OptionError(
            "calibrate: options method='moving' and executor contradict each other: a moving "
            "average depends on the order of the items.",
            code="calibrate-moving-executor",
            hints=("leave out one of them.",),
        )


def _is_number(value: object, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]


def _no_option(name: str, value: object, expected: str) -> OptionError:
    return OptionError(
        f"calibrate: option {name}={value!r} has no meaning; expected {expected}.",
        code="calibrate-option",
    )


def _silent(stage: str) -> None:
    """Discard a progress message."""
