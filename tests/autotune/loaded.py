"""A machine of known times that other work loads: python -m tests.autotune.loaded JOB LOG

It measures nothing: the times follow from the decisions. Under load all calls take much longer, the
faster ones most, and the probe says that the machine is busy. Run as a program, a search is killed
(kill -9) in place of its job of that number.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from unittest.mock import patch

import tilewright as tw
from tilewright.autotune import session
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.disturbance import note_of
from tilewright.autotune.log.record import Conditions
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.options import TuneOptions
from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.autotune.result import TuneResult
from tilewright.autotune.session import Session
from tilewright.autotune.space.space import Candidate, TuningSpace
from tilewright.driver.check.clock import Clock
from tilewright.runtime.machine.host import host_target
from tilewright.tir.target.target import Target

from .samples import scaled

TARGET = host_target()
WIDTHS, COPIES = (1, 2, 4, 8), (1, 2, 4)
POINTS = len(WIDTHS) * len(COPIES)
BEST = (8, 2)


def in_parts(sch: tw.Schedule) -> None:
    (loop,) = sch.loops("y")
    width = int(sch.sample_categorical(WIDTHS, 2, name="width"))
    copies = int(sch.sample_categorical(COPIES, 0, name="copies"))
    _, outer, inner = sch.split(loop, (None, copies, width))
    sch.unroll(outer)
    sch.unroll(inner)


def seconds_of(width: int, copies: int) -> float:
    """The best is twice as fast as the default, (4, 1), and the next one is near."""
    if (width, copies) == BEST:
        return 0.5e-6
    return 1e-6 * (1.0 + 0.1 * (abs(WIDTHS.index(width) - 2) - 0.4 * COPIES.index(copies)))


def loaded(seconds: float) -> float:
    """The time of a call beside other work: the fastest one is far behind the default."""
    return 8e-6 - 3.0 * seconds


@cache
def times() -> dict[str, float]:
    """The time of each code of the space, by `code_of`."""
    known: dict[str, float] = {}
    for one in TuningSpace(scaled(), TARGET, in_parts).points():
        assert isinstance(one, Candidate)
        width, copies = (step.decision for step in one.schedule.trace.steps if step.decision)
        assert isinstance(width, int)
        assert isinstance(copies, int)
        code = code_of(write(one, TARGET).artifact.source)
        known[code] = min(seconds_of(width, copies), known.get(code, 1.0))
    return known


def code_of(source: str) -> str:
    """A source without the comment that says how it was scheduled."""
    return source.partition("*/")[2]


class LoadedMachine:
    """A place that tells at once what its jobs take. jobs: how many there were, by every search.

    is_loaded: whether it is, by the number of the job; interrupt: called before each job with its
    number, which may raise.
    """

    slots = 1

    def __init__(
        self, is_loaded: Callable[[int], bool], interrupt: Callable[[int], None] = lambda job: None
    ) -> None:
        self.clock = Clock()
        self.jobs = 0
        self.is_loaded = is_loaded
        self.interrupt = interrupt

    def conditions(self, target: Target) -> Conditions:
        return conditions(target)

    def compile_ahead(self, artifact: object) -> None:
        """Compile nothing."""

    def submit(self, job: Job) -> Future[Reply]:
        self.jobs += 1
        self.interrupt(self.jobs)
        each = [times()[code_of(one.source)] for one in job.candidates]
        text = ""
        if self.is_loaded(self.jobs):
            each, text = list(map(loaded, each)), note_of(0.5)
        results = [Result("ok", text, (n,) * job.rounds, 8, 64 << 20, 110.0) for n in each]
        done: Future[Reply] = Future()
        done.set_result(Reply(conditions(job.target), tuple(results)))
        return done

    def close(self) -> None:
        """Nothing is open."""


def search(machine: LoadedMachine, log: Path, table: ProgressTable) -> TuneResult:
    """Search the whole space on a machine, as the command line does. table: the live one."""
    options = TuneOptions(rule=in_parts, trials=POINTS, log=log, callback=table.add)
    with patch.object(session, "Here", lambda _: machine):
        return Session(scaled(), TARGET, options).search(table.resume)


def main(job: int, log: Path) -> None:
    """Search, and die in place of a job."""

    def kill(number: int) -> None:
        if number == job:
            os.kill(os.getpid(), signal.SIGKILL)

    search(LoadedMachine(lambda number: number <= job, kill), log, ProgressTable())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
