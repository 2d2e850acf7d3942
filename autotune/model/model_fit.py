"""The fit of the cost model for a function: its predictions of unseen trials, and their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...runtime.artifact_json import target_from_json
from ...schedule.errors import ScheduleError
from ...schedule.schedule import Schedule
from ...tir.json_reader import Reader
from ...tir.parsing.parser import parse
from ..log.record import Trial, Workload
from .cost_model import MEMBERS, fit_cost_model
from .features import Features, features

FEWEST = 4 * MEMBERS  # trials


@dataclass(frozen=True, slots=True)
class ModelFit:
    """Seconds of trials, and the predictions of members of the model that did not see them."""

    measured: tuple[float, ...]
    expected: tuple[float, ...]

    @property
    def rank_correlation(self) -> float:
        """Spearman's: 1 where the model ranks the trials as their times do, about 0 by chance."""
        one, other = _ranks(self.measured), _ranks(self.expected)
        if not one.std() or not other.std():
            return 0.0
        return float(np.corrcoef(one, other)[0, 1])

    @property
    def error(self) -> float:
        """The median relative error."""
        ratio = np.log(np.array(self.measured) / np.array(self.expected))
        return float(np.expm1(np.median(np.abs(ratio))))


def model_fit(
    workload: Workload, trials: Sequence[Trial], seed: int = 0, most: int | None = None
) -> ModelFit | None:
    """The fit of the model to the trials of a function in one setting; None where too few ran.

    The schedules are replayed from their traces, at most so many, spread evenly over the search;
    traces that no longer replay are left out.
    Raises: IRError where text or target are of another version.
    """
    func = parse(workload.text)
    candidates: list[Features] = []
    seconds: list[float] = []
    timed = [t for t in trials if t.seconds is not None and not t.method.session]
    for trial in timed[:: max(1, len(timed) // most)][:most] if most else timed:
        target = target_from_json(Reader(dict(trial.conditions.target), "target"))
        try:
            schedule = Schedule.replay(func, trial.trace, target)
        except ScheduleError:  # the primitives have changed since
            continue
        candidates.append(features(schedule, target))
        seconds.append(trial.seconds or 0.0)
    if len(seconds) < FEWEST:
        return None
    unseen = fit_cost_model(candidates, seconds, seed=seed).unseen
    expected = np.array(seconds) / np.exp(unseen)
    return ModelFit(tuple(seconds), tuple(map(float, expected)))


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The rank of each value; equal values share the mean of their ranks."""
    array = np.array(values)
    below, equal = array[:, None] > array, array[:, None] == array
    return np.asarray(below.sum(axis=1) + (equal.sum(axis=1) - 1) / 2, np.float64)
