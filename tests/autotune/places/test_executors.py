"""Jobs that the workers of an executor do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilewright.autotune.log.file import read_log
from tilewright.autotune.measure.frames import encode
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.autotune.places import confirmation
from tilewright.autotune.places.cluster import cluster
from tilewright.autotune.places.executors import Elsewhere
from tilewright.autotune.tune import tune
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host_target

from ..samples import scaled, trial
from ..test_tune import in_parts

TARGET = replace(host_target(), threads=1)
CONDITIONS = trial().conditions


class Instant(Executor):
    """Answers at once, what it is told to."""

    def __init__(self, answer: Callable[[Job], bytes]) -> None:
        self._answer = answer
        self.jobs = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs += 1
        future: Future[Any] = Future()
        try:
            future.set_result(self._answer(Job.decode(args[0])))
        except OSError as error:
            future.set_exception(error)
        return future


def right(job: Job) -> bytes:
    results = [Result("ok", "", (1e-6,) * job.rounds, 8, 0, 100.0)] * len(job.candidates)
    return Reply(CONDITIONS, tuple(results)).encode()


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "PROCESSES", 1)


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1) as made:
        yield made


@pytest.mark.needs_cc
def test_processes_of_an_executor_compile_and_measure(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    log = tmp_path / "tune.jsonl"
    result = tune(scaled(), TARGET, rule=in_parts, executor=pool, log=log)
    assert result.stopped_because == "the space is exhausted"
    assert {one.decisions for one in result.history} == {(4,), (8,), (16,), (32,)}
    assert {one.outcome for one in read_log(log).trials} == {"ok"}
    assert result.best is not None


def test_what_is_recorded_are_the_conditions_of_the_machine_that_measured() -> None:
    result = tune(scaled(), TARGET, rule=in_parts, executor=Instant(right))
    assert {one.conditions.cpu for one in result.history} == {"A CPU"}
    assert result.best is not None
    assert result.best.is_default


def test_a_job_whose_worker_is_lost_is_sent_again() -> None:
    fates = iter([False, True, True, False] + [False] * 50)

    def sometimes(job: Job) -> bytes:
        if next(fates):
            raise OSError("the worker is gone")
        return right(job)

    result = tune(scaled(), TARGET, rule=in_parts, executor=Instant(sometimes))
    assert {one.decisions for one in result.history} == {(4,), (8,), (16,), (32,)}


def test_an_executor_that_loses_a_job_again_and_again_is_refused() -> None:
    def never(job: Job) -> bytes:
        raise OSError("the worker is gone")

    executor = Instant(never)
    with pytest.raises(TuneError) as refused:
        tune(scaled(), TARGET, rule=in_parts, executor=executor)
    assert executor.jobs == 3
    assert str(refused.value) == (
        "TuneError: tune: the executor lost a job: OSError: the worker is gone. [tune-executor]"
    )


def test_a_worker_that_cannot_measure_says_why() -> None:
    with pytest.raises(TuneError) as refused:
        tune(
            scaled(),
            TARGET,
            rule=in_parts,
            executor=Instant(lambda job: encode({"failed": "CompilerNotFound: none runs here."})),
        )
    assert str(refused.value) == (
        "TuneError: tune: a worker of the executor cannot measure. [tune-worker]\n"
        "  Note: CompilerNotFound: none runs here."
    )


def test_machines_of_several_kinds_are_refused() -> None:
    other = replace(CONDITIONS, cpu="Another CPU")
    kinds = iter([CONDITIONS, other])

    def each(job: Job) -> bytes:
        return replace(Reply.decode(right(job)), conditions=next(kinds)).encode()

    with pytest.raises(TuneError) as refused:
        tune(scaled(), TARGET, rule=in_parts, executor=Instant(each))
    assert str(refused.value) == (
        "TuneError: tune: the workers of the executor are machines of several kinds; expected one, "
        "so that times can be compared. [tune-machines]\n"
        "  Note: A CPU, cc 12, -O3, tilewright 0.1.0.\n"
        "  Note: Another CPU, cc 12, -O3, tilewright 0.1.0.\n"
        "  Hint: tune on one kind at a time, each with a log of its own."
    )


def test_an_executor_has_twice_as_many_jobs_as_workers() -> None:
    with ProcessPoolExecutor(3) as three:
        assert Elsewhere(three).slots == 6
    assert Elsewhere(Instant(right)).slots == 4
    assert Elsewhere(Instant(right), lambda: 0).slots == 1


def test_an_executor_that_has_another_name_is_refused() -> None:
    with pytest.raises(TuneError) as refused:
        tune(scaled(), TARGET, executor="slurm://here")
    assert str(refused.value) == (
        "TuneError: tune: there is no executor 'slurm://here'; expected dask://HOST:PORT. "
        "[tune-place]"
    )


def test_without_distributed_dask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(TuneError) as refused:
        cluster("dask://127.0.0.1:1")
    assert str(refused.value) == (
        "TuneError: tune: the package 'distributed', which speaks to Dask, is not there. "
        "[tune-cluster]\n"
        '  Hint: pip install "tilewright[cluster]"'
    )
