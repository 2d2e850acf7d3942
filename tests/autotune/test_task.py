"""What a search knows of a function before its first trial."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest

from tilewright.autotune.log.file import contents
from tilewright.autotune.log.record import Trial
from tilewright.autotune.measure.device_lock import cpu_lock
from tilewright.autotune.measure.lowering import LoweredCandidate, write
from tilewright.autotune.search.expected_improvement import NOTHING_LEFT, ExpectedImprovement
from tilewright.autotune.space.space import Candidate, TuningSpace
from tilewright.autotune.task import Task
from tilewright.autotune.tune import tune
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from .interrupted import Instant as Here
from .places.test_executors import Instant, right
from .samples import scaled, trial, workload

TARGET = Target.parse("c:avx512")
SIZES = (4, 8, 16, 32)


def in_parts(sch: Schedule) -> None:
    (loop,) = sch.loops("y")
    sch.split(loop, (None, int(sch.sample_categorical(SIZES))))


def made(choice: int, n: int = 64, seconds: float = 1e-6) -> Trial:
    """A trial of one of the sizes."""
    candidate = TuningSpace(scaled(n), TARGET, in_parts).candidate((choice,))
    return replace(
        trial(n=n, seconds=seconds),
        trace=candidate.schedule.trace,
        is_default=candidate.is_default,
        rule="in_parts",
        source=str(choice),
    )


def resumed(*trials: Trial) -> Task:
    task = Task(TuningSpace(scaled(64), TARGET, in_parts), 1, 0, print, print)
    task.resume(contents([workload(64), workload(128), *trials]), made(0).conditions)
    return task


def sizes_next(task: Task) -> list[object]:
    return [one.schedule.trace.steps[0].decision for one in task.search.propose(4)]


def test_what_was_tried_before_is_known_and_not_proposed() -> None:
    task = resumed(made(0), made(2, seconds=5e-7))
    assert task.tried == 2
    assert [one.point for one in task.search.fastest(2)] == [(2,), (0,)]
    assert sorted(map(str, sizes_next(task))) == ["32", "8"]


def test_what_was_tried_under_other_conditions_is_proposed_again() -> None:
    first = made(0)
    task = resumed(replace(first, conditions=replace(first.conditions, tool="0.0.9")))
    assert task.tried == 0
    assert sizes_next(task)[0] == 4


def test_what_was_best_for_a_function_alike_is_tried_behind_the_default() -> None:
    task = resumed(made(0, n=128, seconds=2e-6), made(3, n=128, seconds=1e-6))
    assert sizes_next(task)[:2] == [4, 32]


def test_a_function_that_was_not_tried_goes_first_and_one_without_hope_last() -> None:
    task = resumed()
    assert task.expected_saving == float("inf")
    task = resumed(*map(made, range(4)))
    assert task.search.propose() == []
    assert task.expected_improvement.is_negligible
    assert task.expected_saving == 0.0


def test_nothing_is_thought_up_while_something_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy fits models on the CPUs that a kernel on several threads is timed on."""
    task, told = resumed(), list[str]()

    def propose(count: int) -> list[Candidate]:
        told.append("proposed")
        return []

    def expect() -> ExpectedImprovement:
        told.append("expected")
        return NOTHING_LEFT

    monkeypatch.setattr(task.search, "propose", propose)
    monkeypatch.setattr(task.search, "expected_improvement", expect)
    for think in (lambda: task.next_batch(4, Here()), lambda: task.expected_improvement):
        thread = Thread(target=think)
        with cpu_lock().timing():
            thread.start()
            thread.join(0.2)
            told.append("timed")
        thread.join(10)
        assert not thread.is_alive()
        task.is_exhausted = False
    assert told == ["timed", "proposed", "timed", "expected"]


def test_a_defect_of_ours_costs_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a search of hours, which would end at the same candidate again."""

    def fails(candidate: Candidate, target: Target) -> LoweredCandidate:
        if candidate.is_default:
            raise RuntimeError("nobody thought of that")
        return write(candidate, target)

    monkeypatch.setattr("tilewright.autotune.task.write", fails)
    result = tune(scaled(), TARGET, rule=in_parts, executor=Instant(right))
    assert result.stopped_because == "the space is exhausted"
    first, *others = result.history
    assert first.outcome == "build-failed"
    assert first.text.endswith("RuntimeError: nobody thought of that\n")
    assert [trial.outcome for trial in others] == ["ok"] * 3
    assert result.best in others
