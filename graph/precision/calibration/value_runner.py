"""Run a model for the values within it, here or on the workers of an executor."""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....runtime.arrays import ArgumentTypeError, ArgumentValueError
from ....runtime.engine.engine import Engine
from ....runtime.index_checks import IndexRangeError
from ....tir.errors import TilewrightError
from ...compile import compile
from ...ir.ir import Graph
from .calibration_data import Item
from .statistics import CalibrationError, ModelStatistics, WantedStatistics

_ITEMS = 8  # of a job
_WORKERS = 4  # of an executor that does not say how many it has

Numbered = tuple[int, Item]


@dataclass(frozen=True, slots=True)
class ValueRunner:
    """Computes the values of a model by an engine of it, in float32.

    Its kernels are proved, as all are, and not run beside references (`verify="off"`): these are
    not the kernels that the model will run, and most of a calibration would be their check.
    """

    engine: Engine[Any]
    wanted: WantedStatistics

    @staticmethod
    def of(prepared: Graph, wanted: WantedStatistics, tell: Callable[[str], object]) -> ValueRunner:
        """Compile the engine whose outputs are all values that are wanted.

        Raises: CalibrationError where there is none; what `compile` raises.
        """
        computed = tuple(name for name in wanted.names if name not in prepared.inputs)
        if not computed:
            raise CalibrationError(
                f"calibrate: '{prepared.name}' computes no value of float32; expected a model in "
                "float32.",
                code="calibrate-no-values",
            )
        graph = replace(prepared, outputs=computed)
        return ValueRunner(compile(graph, verify="off", progress=tell), wanted)

    def statistics(self, number: int, item: Item) -> ModelStatistics:
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

    def all_statistics(
        self, items: Iterable[Item], tell: Callable[[str], object]
    ) -> ModelStatistics:
        """Those of all items, at least one. Raises: CalibrationError."""
        found: ModelStatistics | None = None
        for number, item in enumerate(items):
            tell(f"item {number + 1}")
            one = self.statistics(number, item)
            found = one if found is None else found.merged(one, self.wanted.share)
        assert found is not None
        return found


def statistics_of_workers(
    runner: ValueRunner,
    items: Iterable[Item],
    executor: Executor,
    tell: Callable[[str], object],
) -> ModelStatistics:
    """Those of all items, at least one, from the workers of an executor, which stays open. There
    are at most two jobs for each worker at a time; results are merged in the order of the items.

    Raises: CalibrationError, also where a worker is lost.
    """
    data = pickle.dumps(runner)
    key = hashlib.sha256(data).hexdigest()
    open_jobs: deque[Future[ModelStatistics]] = deque()
    found: ModelStatistics | None = None
    try:
        for job in _jobs(items):
            tell(f"item {job[-1][0] + 1}")
            if len(open_jobs) >= 2 * int(getattr(executor, "_max_workers", _WORKERS)):
                found = _merged(found, open_jobs.popleft())
            open_jobs.append(_submitted(executor, key, data, job))
        while open_jobs:
            found = _merged(found, open_jobs.popleft())
    finally:
        for future in open_jobs:
            future.cancel()
    assert found is not None
    return found


def _jobs(items: Iterable[Item]) -> Iterator[tuple[Numbered, ...]]:
    numbered = enumerate(items)
    return iter(lambda: tuple(islice(numbered, _ITEMS)), ())


def _submitted(
    executor: Executor, key: str, data: bytes, job: tuple[Numbered, ...]
) -> Future[ModelStatistics]:
    try:
        return executor.submit(job_statistics, key, data, job)
    except Exception as error:  # any class: executors are third-party code
        raise _lost(error) from error


def _merged(found: ModelStatistics | None, job: Future[ModelStatistics]) -> ModelStatistics:
    try:
        one = job.result()
    except TilewrightError:
        raise
    except (Exception, CancelledError) as error:  # any class: executors are third-party code
        raise _lost(error) from error
    return one if found is None else found.merged(one)


def _lost(error: BaseException) -> CalibrationError:
    return CalibrationError(
        f"calibrate: the executor lost a job: {type(error).__name__}: {error}.",
        code="calibrate-executor",
    )


_runners: dict[str, ValueRunner] = {}  # of a worker: the last one, by the digest of its bytes


def job_statistics(key: str, data: bytes, job: Iterable[Numbered]) -> ModelStatistics:
    """What a worker of an executor computes: the statistics of some items.

    data: a pickled ValueRunner, whose digest is `key`. Raises: CalibrationError.
    """
    runner = _runners.get(key)
    if runner is None:
        runner = pickle.loads(data)
        _runners.clear()
        _runners[key] = runner
    found = [runner.statistics(number, item) for number, item in job]
    whole = found[0]
    for one in found[1:]:
        whole = whole.merged(one)
    return whole
