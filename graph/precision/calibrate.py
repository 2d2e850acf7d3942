"""tw.calibrate: run a model in floats on some data, and choose a range for each of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...runtime.arrays import ArgumentTypeError, ArgumentValueError
from ...runtime.engine.engine import Engine
from ...runtime.index_checks import IndexRangeError
from ..compile import compile
from ..given_model import imported_graph
from ..importers.traced_model import traced_model
from ..ir.ir import Graph
from ..options import OptionError, Shapes, check_shapes
from .calibration import Calibration
from .calibration_data import CalibrationData, Item, items_of
from .prepared import prepared_graph
from .products import products_digest
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
from .statistics import CalibrationError, ModelStatistics, ValueStatistics, WantedStatistics

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
    most: int | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Run a model in floats on some data, and choose a range for each of its values of float32,
    from what the values were: what `compile(..., calibration=)` takes.

    model, shapes, args, kwargs, constants: as `compile` has them. data: an iterable, read once, one
    item at a time; each is a dict of arrays by input, a tuple of them in the order of the inputs,
    or the array of a single input. Or a folder of .npy or .npz files, one for each item, in the
    order of their names; or a function that gives such an iterable. most: of items. progress:
    called at each stage, and with the number of each item.
    method: "minmax": the least and the largest number. "moving": those of the first item, then
    moved by the share `averaging` of the way to those of each later one. "percentile": what leaves
    out 100 - `percentile` per cent, half at either end. "entropy": the symmetric range that loses
    the least information in 128 levels (S. Migacz, 2017). "mse": of 36 shares of the range that was
    seen, from 0.3, the one with the least squared error in 256 levels. All but the last are those
    of onnxruntime's calibrators; it has the bits of these where the histograms are the same. bins:
    of the histograms of the last three, at least so many over the magnitudes of a value; "entropy"
    tries at most so many. Their width is a power of two, so memory is bounded and the order of
    items does not matter.
    Raises: OptionError; CalibrationError, a ModelError, for data that do not fit, for NaN, and for
    infinities of inputs and of what products read or make; what `compile` raises.
    """
    _check(method, bins, percentile, averaging, most)
    check_shapes(shapes)
    tell = progress or _silent
    tell("import")
    source = traced_model(model, args, kwargs, shapes)
    prepared = prepared_graph(imported_graph(source, shapes, constants))
    wanted = WantedStatistics.of(
        prepared,
        bins if method in WITH_HISTOGRAMS else None,
        averaging if method == "moving" else None,
    )
    runner = ValueRunner.of(prepared, wanted, tell)
    found: ModelStatistics | None = None
    for number, item in enumerate(items_of(data, runner.engine.inputs, most)):
        tell(f"item {number + 1}")
        one = runner.statistics(item, number)
        found = one if found is None else found.merged(one, wanted.share)
    assert found is not None
    tell("ranges")
    choose = _Choice(method, bins, percentile)
    return _calibration(prepared, choose, found)


@dataclass(frozen=True, slots=True)
class ValueRunner:
    """Computes the values of a model by an engine of it, in float32.

    Its kernels are proved, as all are; they are not run beside their references: those of the model
    itself are, when it is compiled.
    """

    engine: Engine[Any]
    wanted: WantedStatistics

    @staticmethod
    def of(prepared: Graph, wanted: WantedStatistics, tell: Progress) -> ValueRunner:
        """Compile the engine whose outputs are all values that are wanted."""
        computed = tuple(name for name in wanted.names if name not in prepared.inputs)
        if not computed:
            raise CalibrationError(
                f"calibrate: '{prepared.name}' computes no value of float32; expected a model in "
                "float32.",
                code="calibrate-no-values",
            )
        graph = replace(prepared, outputs=computed)
        return ValueRunner(compile(graph, verify="off", progress=tell), wanted)

    def statistics(self, item: Item, number: int) -> ModelStatistics:
        """Those of one item. Raises: CalibrationError, which names the item."""
        try:
            outputs: Mapping[str, NDArray[np.generic]] = self.engine.run(item)
        except (ArgumentTypeError, ArgumentValueError, IndexRangeError) as error:
            raise CalibrationError(
                f"calibrate: item {number} does not fit: {error.message}",
                code="calibrate-run",
                hints=(*error.hints, "shapes={...} says which sizes the model takes."),
            ) from error
        given = {name: np.asarray(value) for name, value in item.items()}
        try:
            return ModelStatistics.of(self.wanted, {**given, **outputs})
        except CalibrationError as error:
            error.notes = (*error.notes, f"this is in item {number} of the data.")
            raise


@dataclass(frozen=True, slots=True)
class _Choice:
    """How a range is chosen."""

    method: CalibrationMethod
    bins: int
    percentile: float

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


def _calibration(prepared: Graph, choose: _Choice, found: ModelStatistics) -> Calibration:
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
        tuple(name for name, one in found.values.items() if not one.is_finite),
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


def _is_number(value: object, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]


def _no_option(name: str, value: object, expected: str) -> OptionError:
    return OptionError(
        f"calibrate: option {name}={value!r} has no meaning; expected {expected}.",
        code="calibrate-option",
    )


def _silent(stage: str) -> None:
    """Discard a progress message."""
