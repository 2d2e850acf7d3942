"""One function that is being tuned: what was tried, and what is tried next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from ..schedule.trace import Trace
from ..tir.errors import TilewrightError
from .log import LogWriter
from .measurement import Bench, build
from .record import Conditions, Trial, Workload
from .space import Candidate, TuningSpace
from .strategies import strategy
from .worker_process import Worker

FINALISTS = 4  # beside the default
FINAL_ROUNDS = 15

Keep = Callable[[Trial], None]


class Task:
    """The search for one function. count: how often a model runs it."""

    def __init__(self, space: TuningSpace, count: int, seed: int, keep: Keep) -> None:
        self.space = space
        self.count = count
        self.workload = Workload.of(space.func)
        self.history: list[Trial] = []
        self.is_exhausted = False
        self._search = strategy(space, seed=seed)
        self._done: dict[str, Trial] = {}
        self._keep_elsewhere = keep
        self._seed = seed

    def resume(self, trials: Iterable[Trial], here: Conditions) -> None:
        """Count trials of this function under the same conditions as done."""
        self.history = [
            trial
            for trial in trials
            if trial.workload == self.workload.key and trial.conditions == here
        ]
        alone = [trial for trial in self.history if not trial.method.session]
        self._done = {_key(trial.trace): trial for trial in alone}

    @property
    def tried(self) -> int:
        """How many candidates were tried, those of a log that was resumed among them."""
        return len(self._done)

    @property
    def expected_gain(self) -> float:
        """Seconds of a run of the model that the next trial is expected to save."""
        if not self._done:
            return float("inf")
        ran = [trial.seconds for trial in self._done.values() if trial.seconds is not None]
        return self.count * min(ran, default=0.0) * self._search.outlook().gain

    def step(self, worker: Worker) -> bool:
        """Try one more candidate; False where there is none."""
        proposed = self._search.propose()
        if not proposed:
            self.is_exhausted = True
            return False
        (candidate,) = proposed
        key = _key(candidate.schedule.trace)
        known = self._done.get(key)
        if known is None:
            known = self._done[key] = self._try(candidate, self._bench(worker))
        self._search.tell(candidate, known.seconds)
        return True

    def finish(self, worker: Worker) -> None:
        """Time the best candidates and the default in turns."""
        best = self._search.best(FINALISTS)
        if not any(candidate.is_default for candidate in best):
            best.append(self.space.candidate())
        if len(best) > 1:
            built = [build(candidate, self.space.target) for candidate in best]
            for trial in self._bench(worker).measure(built, FINAL_ROUNDS):
                self._keep(trial)

    def _bench(self, worker: Worker) -> Bench:
        space, key = self.space, self.workload.key
        return Bench(space.func, space.target, space.name, key, worker, self._seed)

    def _try(self, candidate: Candidate, bench: Bench) -> Trial:
        try:
            built = build(candidate, self.space.target)
        except TilewrightError as error:
            return self._keep(bench.failed(candidate, error))
        (trial,) = bench.measure([built])
        return self._keep(trial)

    def _keep(self, trial: Trial) -> Trial:
        self.history.append(trial)
        self._keep_elsewhere(trial)
        return trial


def open_log(writer: LogWriter, tasks: Iterable[Task], known: Iterable[Workload]) -> None:
    """Add the functions that a log does not know."""
    missing = {task.workload for task in tasks} - set(known)
    if missing:
        writer.append(*sorted(missing, key=lambda workload: workload.key))


def _key(trace: Trace) -> str:
    """Equal traces have equal ones."""
    return json.dumps(trace.to_json(), sort_keys=True)
