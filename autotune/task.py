"""One function that is being tuned: what was tried, and what is tried next."""

from __future__ import annotations

import json
import secrets
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import perf_counter

from ..schedule.errors import ScheduleError
from ..schedule.trace.trace import Trace
from ..tir.errors import TilewrightError
from .log.file import Contents, LogWriter
from .log.record import Conditions, Trial, Workload
from .log.setting import Setting
from .log.similar import similar_walks
from .measure.device_lock import cpu_lock
from .measure.jobs import Job, Reply
from .measure.lowering import Written, write
from .measure.measurement import Subject, same_code
from .places.places import Place
from .places.playoff import FINALISTS, Finals, rounds_of
from .search.expected_improvement import NOTHING_LEFT, Outlook
from .search.sharing import expected_saving
from .search.strategies import DEFAULT, strategy
from .space.decisions import Answering, answers_of
from .space.space import Candidate, TuningSpace

NEAR = 1.1  # times the default's time: a candidate that took more alone is no finalist

Keep = Callable[[Trial], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Candidates that are measured by one job."""

    task: Task
    written: tuple[Written, ...]
    job: Job

    def take(self, reply: Reply) -> None:
        """Keep what came of them."""
        self.task.answered(self, reply)


@dataclass(frozen=True, slots=True)
class LastRounds:
    """The finals of a function: the default first. seconds: what each took before."""

    task: Task
    written: tuple[Written, ...]
    seconds: tuple[float, ...]
    finals: Finals

    @property
    def job(self) -> Job:
        """What the next process has to do."""
        return self.task.final_job([self.written[n] for n in self.finals.staying], self.seconds)

    def take(self, reply: Reply) -> None:
        """What it did."""
        self.finals.take(reply.results)
        if self.finals.is_over:
            self.task.compared(self, reply.conditions)


class Task:
    """The search for one function. count: how often a model runs it."""

    def __init__(
        self, space: TuningSpace, count: int, seed: int, keep: Keep, named: str = DEFAULT
    ) -> None:
        self.space = space
        self.count = count
        self.workload = Workload.of(space.func)
        self.history: list[Trial] = []
        self.is_exhausted = False
        self.search = strategy(space, named, seed=seed)
        self._subject = Subject(space.func, space.target, space.name, self.workload.key, seed)
        self._done: dict[str, Trial] = {}
        self._sources: dict[str, Trial] = {}  # what was measured of each code
        self._flying: dict[str, str] = {}  # the source of each trace that is being measured
        self._twins: list[Written] = []  # of code that is being measured
        self._keep_elsewhere = keep
        self._named = named

    def resume(self, known: Contents, here: Conditions) -> None:
        """Count trials of this function under the same conditions as done, and follow what was best
        for functions alike.
        """
        self.history = [
            trial
            for trial in known.trials
            if trial.workload == self.workload.key and trial.conditions == here
        ]
        alone = [trial for trial in self.history if not trial.method.session]
        self._done = {_key(trial.trace): trial for trial in alone}
        self._sources = {trial.source: trial for trial in alone if trial.source}
        early = similar_walks(self.workload, self.space.name, Setting.of(here), known)
        self.search = strategy(self.space, self._named, seed=self._subject.seed, early=early)
        for trial in alone:
            with suppress(ScheduleError):  # the rule asks in another way by now
                found = self.space.walked(Answering((), answers=answers_of(trial.trace)))
                if found.schedule.trace == trial.trace:
                    self.search.tell(found, trial.seconds)

    @property
    def tried(self) -> int:
        """How many candidates were tried, those of a log that was resumed among them, or are being
        tried.
        """
        return len(self._done) + len(self._flying) + len(self._twins)

    @property
    def expected_gain(self) -> float:
        """Seconds of a run of the model that the next trial is expected to save."""
        if not self._done:
            return 0.0 if self._flying else inf
        return expected_saving(self.count, self._best, self.outlook)

    @property
    def outlook(self) -> Outlook:
        """What more trials promise."""
        return NOTHING_LEFT if self.is_exhausted else self.search.outlook()

    @property
    def _best(self) -> float | None:
        """Seconds of the best trial so far."""
        ran = [trial.seconds for trial in self._done.values() if trial.seconds is not None]
        return min(ran, default=None)

    def next_batch(self, most: int, place: Place) -> Batch | None:
        """At most so many candidates that are to be measured; None where none is new, or what was
        new is known by now.
        """
        at = place.conditions(self.space.target)
        asked = perf_counter()
        proposed = self.search.propose(most)
        place.clock.add("search", perf_counter() - asked)
        self.is_exhausted = not proposed and not self._flying
        batch: list[Written] = []
        for candidate in proposed:
            written = self._new(candidate, at)
            if written is not None:
                for name, seconds in written.seconds:
                    place.clock.add(name, seconds)
                place.compile_ahead(written.artifact)
                batch.append(written)
        if not batch:
            return None
        return Batch(self, tuple(batch), self._subject.job(batch, bar=self._best or inf))

    def answered(self, batch: Batch, reply: Reply) -> None:
        """Keep what came of a batch."""
        for one, result in zip(batch.written, reply.results, strict=True):
            del self._flying[_key(one.candidate.schedule.trace)]
            trial = self._subject.trial(one, result, reply.conditions)
            self._sources[one.source] = trial
            self._tell(one.candidate, self._keep(trial))
        for twin in [twin for twin in self._twins if twin.source in self._sources]:
            self._twins.remove(twin)
            self._tell(twin.candidate, self._keep(same_code(self._sources[twin.source], twin)))

    @property
    def may_save(self) -> float:
        """Seconds of a run of the model that finals may save; 0 where there is no choice."""
        default = self._seconds(self.space.candidate())
        if default is None or self._best is None or self.tried < 2:
            return 0.0
        return self.count * (NEAR * default - self._best)

    def finals(self) -> LastRounds | None:
        """The default and the best candidates that alone were faster, or nearly as fast, to be
        timed in turns; None without a choice.
        """
        default = self.space.candidate()
        usual = self._seconds(default)
        if usual is None:
            return None
        best = self.search.best(FINALISTS + 1)
        near = [one for one in best if (self._seconds(one) or inf) <= NEAR * usual]
        rivals = [candidate for candidate in near if not candidate.is_default][:FINALISTS]
        written: dict[str, Written] = {}
        for one in map(self._written, (default, *rivals)):
            if isinstance(one, Written):
                written.setdefault(one.source, one)
        those = tuple(written.values())
        if len(those) < 2 or not those[0].candidate.is_default:
            return None
        took = tuple(self._seconds(one.candidate) or usual for one in those)
        return LastRounds(self, those, took, Finals.of(len(those)))

    def _seconds(self, candidate: Candidate) -> float | None:
        """What a candidate took alone."""
        known = self._done.get(_key(candidate.schedule.trace))
        return None if known is None else known.seconds

    def final_job(self, written: Sequence[Written], seconds: Sequence[float]) -> Job:
        """One process of the finals."""
        return self._subject.job(written, rounds_of(seconds), bar=None, is_final=True)

    def compared(self, last: LastRounds, at: Conditions) -> None:
        """Keep what came of the finals."""
        session, finals = secrets.token_hex(8), last.finals
        for one, result, count in zip(last.written, finals.results, finals.processes, strict=True):
            self._keep(self._subject.trial(one, result, at, session, count))

    def _new(self, candidate: Candidate, at: Conditions) -> Written | None:
        """A candidate that must be measured; what is known of another one is told."""
        key = _key(candidate.schedule.trace)
        known = self._done.get(key)
        if known is not None:
            self._tell(candidate, known)
            return None
        if key in self._flying:
            return None
        written = self._written(candidate)
        if isinstance(written, str):
            self._tell(candidate, self._keep(self._subject.unbuilt(candidate, written, at)))
            return None
        same = self._sources.get(written.source)
        if same is not None:
            self._tell(candidate, self._keep(same_code(same, written)))
        elif written.source in self._flying.values():
            self._twins.append(written)
        else:
            self._flying[key] = written.source
            return written
        return None

    def _written(self, candidate: Candidate) -> Written | str:
        """The candidate as code, or why it cannot be written."""
        try:
            with cpu_lock().building():
                return write(candidate, self.space.target)
        except TilewrightError as error:
            return str(error)
        except Exception:  # a defect of ours costs a record, not a search of hours
            return traceback.format_exc()

    def _tell(self, candidate: Candidate, trial: Trial) -> None:
        self._done[_key(candidate.schedule.trace)] = trial
        self.search.tell(candidate, trial.seconds)

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
