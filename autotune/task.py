"""The search for one function: its trials, and the candidates to measure next."""

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
from .log.choice import choose, finalists
from .log.disturbance import drift_of
from .log.file import Contents, LogWriter
from .log.record import Conditions, Trial, Workload
from .log.setting import Setting
from .log.similar import similar_walks
from .measure.device_lock import cpu_lock
from .measure.jobs import Job, Reply
from .measure.lowering import LoweredCandidate, write
from .measure.measurement import Subject, same_code
from .places.confirmation import Confirmation, rounds_of
from .places.places import Place
from .search.expected_improvement import NOTHING_LEFT, REPETITION, ExpectedImprovement
from .search.sharing import expected_saving
from .search.strategies import DEFAULT, make_strategy
from .sizes import SizeValues
from .space.decisions import GuidedWalk, decisions_of
from .space.space import Candidate, TuningSpace

Keep = Callable[[Sequence[Trial]], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Candidates that one job measures."""

    task: Task
    written: tuple[LoweredCandidate, ...]
    job: Job

    def take(self, reply: Reply) -> None:
        """Record the results."""
        self.task.record(self, reply)


@dataclass(frozen=True, slots=True)
class ConfirmationRound:
    """The default and the best candidates of a function, measured again in turns.

    written: the default first. seconds: the time of each during the search. state: the results.
    """

    task: Task
    written: tuple[LoweredCandidate, ...]
    seconds: tuple[float, ...]
    state: Confirmation

    @property
    def job(self) -> Job:
        """The job of the next process."""
        staying = [self.written[n] for n in self.state.staying]
        return self.task.confirmation_job(staying, self.seconds)

    def take(self, reply: Reply) -> None:
        """Take in the results of a process; record all of them after the last one."""
        self.state.take(reply.results)
        if self.state.is_over:
            self.task.record_confirmation(self, reply.conditions)


class Task:
    """The search for one function. count: how often a model runs it."""

    def __init__(
        self,
        space: TuningSpace,
        count: int,
        seed: int,
        keep: Keep,
        report: Callable[[], None],
        strategy: str = DEFAULT,
        sizes: tuple[SizeValues, ...] = (),
    ) -> None:
        """keep: writes trials to the log, all of them or none; report: tells others what was kept,
        once it is part of the history; strategy: by name; sizes: at which candidates are timed,
        where calls decide any.
        """
        self.space = space
        self.count = count
        self.workload = Workload.of(space.func)
        self.history: list[Trial] = []
        self.is_exhausted = False
        self.search = make_strategy(space, strategy, seed=seed)
        key = self.workload.key
        self._subject = Subject(space.func, space.target, space.name, key, seed, sizes)
        self._done: dict[str, Trial] = {}
        self._by_source: dict[str, Trial] = {}
        self._in_flight: dict[str, str] = {}  # trace -> source, of what is being measured
        self._twins: list[
            LoweredCandidate
        ] = []  # candidates whose code is being measured for another one
        self._again: dict[str, Candidate] = {}  # by their traces: disturbed, to be measured again
        self._disturbed: dict[str, Candidate] = {}  # the same, until the machine is calm
        self._repeated = set[str]()
        self._improvement: ExpectedImprovement | None = None  # known, until something is tried
        self._keep = keep
        self._report = report
        self._strategy = strategy

    def resume(self, known: Contents, here: Conditions) -> None:
        """Count the trials of this function under the same conditions as done, and try the best
        schedules of similar functions first.
        """
        self.history = [
            trial
            for trial in known.trials
            if trial.workload == self.workload.key
            and trial.conditions == here
            and trial.timed_at == self._subject.sizes
        ]
        alone = [trial for trial in self.history if not trial.method.session]
        alone.sort(key=lambda trial: drift_of(trial) == 0)  # of a candidate the calm trial counts
        self._done = {_key(trial.trace): trial for trial in alone}
        self._by_source = {trial.source: trial for trial in alone if trial.source}
        self._improvement = None
        setting = Setting.of(here, sizes=self._subject.sizes)
        early = similar_walks(self.workload, self.space.name, setting, known)
        self.search = make_strategy(
            self.space, self._strategy, seed=self._subject.seed, early=early
        )
        for trial in alone:
            with suppress(ScheduleError):  # the rule has changed since
                walk = GuidedWalk((), decisions=decisions_of(trial.trace))
                candidate = self.space.candidate_at(walk)
                if candidate.schedule.trace == trial.trace:
                    self.search.tell(candidate, trial.seconds)
                    self._note_disturbance(candidate, trial)
        self.repeat_disturbed()

    def repeat_disturbed(self) -> None:
        """Measure again, before new candidates, what was measured on a busy machine: each once in
        a search. To be called when the machine is calm.
        """
        for key, candidate in self._disturbed.items():
            self._again[key] = candidate
            self._repeated.add(key)
            self._by_source.pop(self._done[key].source, None)
        self._disturbed.clear()

    @property
    def tried(self) -> int:
        """The number of candidates that were tried, in a resumed log too, or are being measured;
        without those that will be measured again.
        """
        counted = (self._done.keys() - self._again.keys()) | self._in_flight.keys()
        return len(counted) + len(self._twins)

    @property
    def searched(self) -> int:
        """The number of trials of the search, without those of confirmation rounds."""
        return sum(not trial.method.session for trial in self.history)

    @property
    def expected_saving(self) -> float:
        """Seconds of a run of the model that the next trial is expected to save."""
        if not self._done:
            return 0.0 if self._in_flight else inf
        return expected_saving(self.count, self._fastest, self.expected_improvement)

    @property
    def expected_improvement(self) -> ExpectedImprovement:
        """What further trials promise."""
        if self._again:
            return REPETITION
        if self.is_exhausted:
            return NOTHING_LEFT
        if self._improvement is None:
            with cpu_lock().building():
                self._improvement = self.search.expected_improvement()
        return self._improvement

    @property
    def _fastest(self) -> float | None:
        """Seconds of the fastest trial so far. Which trial is the best, log/choice.py decides."""
        ran = [trial.seconds for trial in self._done.values() if trial.seconds is not None]
        return min(ran, default=None)

    def next_batch(self, most: int, place: Place) -> Batch | None:
        """At most so many new candidates to measure; None where there is none."""
        at = place.conditions(self.space.target)
        began = perf_counter()
        again = [self._again.pop(key) for key in list(self._again)[:most]]
        with cpu_lock().building():  # a strategy fits models: not beside what is timed
            proposed = again or self.search.propose(most)
        self._improvement = None
        place.clock.add("search", perf_counter() - began)
        self.is_exhausted = not proposed and not self._in_flight
        batch: list[LoweredCandidate] = []
        for candidate in proposed:
            written = self._write_new(candidate, at, is_new=not again)
            if written is not None:
                for name, seconds in written.seconds:
                    place.clock.add(name, seconds)
                place.compile_ahead(written.artifact)
                batch.append(written)
        if not batch:
            return None
        return Batch(self, tuple(batch), self._subject.job(batch, bar=self._fastest or inf))

    def record(self, batch: Batch, reply: Reply) -> None:
        """Record the results of a batch, and report them to the search."""
        for one, result in zip(batch.written, reply.results, strict=True):
            del self._in_flight[_key(one.candidate.schedule.trace)]
            trial = self._subject.trial(one, result, reply.conditions)
            self._by_source[one.source] = trial
            self._tell(one.candidate, trial)
        for twin in [twin for twin in self._twins if twin.source in self._by_source]:
            self._twins.remove(twin)
            self._tell(twin.candidate, same_code(self._by_source[twin.source], twin))

    @property
    def is_settled(self) -> bool:
        """Whether nothing better is likely."""
        return self.expected_improvement.is_negligible

    @property
    def is_measuring(self) -> bool:
        """Whether a candidate is being measured."""
        return bool(self._in_flight)

    @property
    def finalists(self) -> tuple[Trial, ...]:
        """The trials that await a confirmation round."""
        return finalists([trial for trial in self.history if trial.rule == self.space.name])

    @property
    def is_undecided(self) -> bool:
        """Whether a busy machine disturbed its confirmation."""
        return choose(self.history).state == "undecided"

    @property
    def potential_saving(self) -> float:
        """Seconds of a run of the model that a confirmation round may save."""
        default, fastest = self._seconds(self.space.candidate()), self._fastest
        return 0.0 if default is None or fastest is None else self.count * (default - fastest)

    def confirmation(self) -> ConfirmationRound | None:
        """The default and the finalists, to be measured in turns; None where there are none."""
        traces = [_key(trial.trace) for trial in self.finalists]
        default = self.space.candidate() if traces else None
        default_seconds = None if default is None else self._seconds(default)
        if default is None or default_seconds is None:
            return None
        known = {_key(one.schedule.trace): one for one in self.search.fastest(len(self._done))}
        rivals = [known[trace] for trace in traces if trace in known]
        by_source: dict[str, LoweredCandidate] = {}
        for one in map(self._write, (default, *rivals)):
            if isinstance(one, LoweredCandidate):
                by_source.setdefault(one.source, one)
        written = tuple(by_source.values())
        if len(written) < 2 or not written[0].candidate.is_default:
            return None
        seconds = tuple(self._seconds(one.candidate) or default_seconds for one in written)
        return ConfirmationRound(self, written, seconds, Confirmation.of(len(written)))

    def _seconds(self, candidate: Candidate) -> float | None:
        """The time of a candidate during the search."""
        known = self._done.get(_key(candidate.schedule.trace))
        return None if known is None else known.seconds

    def confirmation_job(
        self, written: Sequence[LoweredCandidate], seconds: Sequence[float]
    ) -> Job:
        """The job of one process of a confirmation round."""
        return self._subject.job(written, rounds_of(seconds), bar=None, is_final=True)

    def record_confirmation(self, done: ConfirmationRound, at: Conditions) -> None:
        """Record the results of a confirmation round: all of them or none, since a part of a
        session would compare less than what took part in it.
        """
        session, state = secrets.token_hex(8), done.state
        each = zip(done.written, state.results, state.processes, strict=True)
        trials = [self._subject.trial(one, got, at, session, count) for one, got, count in each]
        self._record(*trials)

    def _write_new(
        self, candidate: Candidate, at: Conditions, *, is_new: bool
    ) -> LoweredCandidate | None:
        """Write a candidate that must be measured; skip known ones, reporting their result.

        is_new: whether it is not to be measured again.
        """
        key = _key(candidate.schedule.trace)
        known = self._done.get(key) if is_new else None
        if known is not None:
            self.search.tell(candidate, known.seconds)
            return None
        if key in self._in_flight:
            return None
        written = self._write(candidate)
        if isinstance(written, str):
            self._tell(candidate, self._subject.unbuilt(candidate, written, at))
            return None
        same = self._by_source.get(written.source)
        if same is not None:
            self._tell(candidate, same_code(same, written))
        elif written.source in self._in_flight.values():
            self._twins.append(written)
        else:
            self._in_flight[key] = written.source
            return written
        return None

    def _write(self, candidate: Candidate) -> LoweredCandidate | str:
        """Write the code of a candidate; the error text where that fails."""
        try:
            with cpu_lock().building():
                return write(candidate, self.space.target)
        except TilewrightError as error:
            return str(error)
        except Exception:  # a bug of ours fails one candidate, not a search of hours
            return traceback.format_exc()

    def _tell(self, candidate: Candidate, trial: Trial) -> None:
        """Record a trial of the search, and report it to the strategy."""
        self._record(trial)
        self._improvement = None
        self._done[_key(candidate.schedule.trace)] = trial
        self.search.tell(candidate, trial.seconds)
        self._note_disturbance(candidate, trial)

    def _note_disturbance(self, candidate: Candidate, trial: Trial) -> None:
        key, is_measured = _key(trial.trace), self._by_source.get(trial.source) is trial
        if drift_of(trial) > 0 and is_measured and key not in self._repeated:
            self._disturbed[key] = candidate

    def _record(self, *trials: Trial) -> None:
        """Keep trials in the log, then in the history, then report them: an interruption leaves
        nothing in the history that the log lacks.
        """
        self._keep(trials)
        self.history += trials
        self._report()


def open_log(writer: LogWriter, tasks: Iterable[Task], known: Iterable[Workload]) -> None:
    """Add the functions that a log does not hold yet."""
    missing = {task.workload for task in tasks} - set(known)
    if missing:
        writer.append(*sorted(missing, key=lambda workload: workload.key))


def _key(trace: Trace) -> str:
    """The trace as a dictionary key."""
    return json.dumps(trace.to_json(), sort_keys=True)
