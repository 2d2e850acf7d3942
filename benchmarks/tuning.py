"""How fast a search is, where its time goes, and whether it tells a tie from a gain.

    python -m benchmarks.tuning [--trials 256] [--threads 2] [--ties 100] [--dask] [--write]

The search is one of a 512 x 512 x 512 product of float32, in a process with an empty cache; it is
kept from ending early. Each trial is proved, compiled, checked and timed. `--ties` has the default
compete with itself so many times, as two codes that differ in a comment: how often a winner is
told. `--dask` asks how many trials a second a search can feed: with an executor that answers at
once, and with a scheduler of Dask and two worker processes that get jobs of nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.record import Workload
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.places.cluster import DASK, cluster
from tilewright.autotune.places.confirmation import Confirmation, rounds_of
from tilewright.autotune.search import expected_improvement
from tilewright.autotune.space.space import TuningSpace
from tilewright.autotune.tune import tune
from tilewright.runtime.machine.host import host_target
from tilewright.runtime.toolchain.cache import FOLDER_VARIABLE
from tilewright.tir.target.target import Target

from . import report
from .subjects.functions import product

SIZE = 512
EMPTY_JOBS = 500


@dataclass(frozen=True)
class Speed:
    """A search: its trials, those of them that ran, its seconds in all, and those of its parts."""

    name: str
    trials: int
    right: int
    seconds: float
    parts: tuple[tuple[str, float], ...]


def searched(
    name: str, target: Target, trials: int, executor: Executor | str | None = None
) -> Speed:
    """Tune the product."""
    expected_improvement.MIN_CHANCE = 0.0  # it never gives up
    began = time.perf_counter()
    result = tune(product(SIZE, SIZE, SIZE), target, trials=trials, executor=executor)
    seconds = time.perf_counter() - began
    alone = [trial for trial in result.history if not trial.method.session]
    right = sum(trial.outcome == "ok" for trial in alone)
    return Speed(name, len(alone), right, seconds, result.seconds)


class Instant(Executor):
    """An executor that measures nothing: each candidate has taken a millisecond."""

    _max_workers = 64

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Answer at once."""
        job, future = Job.decode(args[0]), Future[Any]()
        results = [Result("ok", "", (1e-3,) * job.rounds)] * len(job.candidates)
        future.set_result(Reply(conditions(job.target), tuple(results)).encode())
        return future


def fed(target: Target) -> float:
    """Jobs of nothing that a scheduler of Dask has two workers do in a second."""
    with scheduler() as address:
        place = cluster(f"{DASK}{address}")
        nothing = Job("", 0, target, 0, 0, ())
        place.submit(nothing).result()
        began = time.perf_counter()
        for future in [place.submit(nothing) for _ in range(EMPTY_JOBS)]:
            future.result()
        seconds = time.perf_counter() - began
        place.close()
        return EMPTY_JOBS / seconds


@contextmanager
def scheduler() -> Iterator[str]:
    """A scheduler and two workers; its address."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "scheduler.json")
        plain = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        started = [_dask("scheduler", *plain, "--scheduler-file", str(told))]
        while not told.exists():
            time.sleep(0.1)
        plain = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
        started += [_dask("worker", "--scheduler-file", str(told), *plain) for _ in range(2)]
        try:
            yield told.read_text().split('"address": "tcp://')[1].split('"')[0]
        finally:
            for process in started:
                process.kill()
                process.wait()


def _dask(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "dask", *command], stderr=subprocess.DEVNULL)


def false_winners(target: Target, times: int) -> int:
    """How often the default is told to be faster than itself."""
    func = product(SIZE, SIZE, SIZE)
    subject = Subject(func, target, "default", Workload.of(func).key)
    one = write(TuningSpace(func, target).candidate(), target)
    twin = replace(one.artifact, source=f"{one.artifact.source}\n/* the same */\n")
    both = (one, replace(one, artifact=twin))
    found = 0
    with Machine() as machine:
        (first,) = machine.measure(subject.job([one])).results
        rounds = rounds_of([min(first.samples)] * 2)
        for _ in range(times):
            finals = Confirmation.of(2)
            while not finals.is_over:
                job = subject.job(
                    [both[n] for n in finals.staying], rounds, bar=None, is_final=True
                )
                finals.take(machine.measure(job).results)
            found += 1 in finals.staying
    return found


def table(speeds: list[Speed]) -> str:
    """The searches as Markdown, each with its parts below."""
    head = ("search", "trials", "right", "seconds", "trials a second")
    cells = [
        (s.name, s.trials, s.right, f"{s.seconds:.1f}", f"{s.trials / s.seconds:.2f}")
        for s in speeds
    ]
    names = dict.fromkeys(name for speed in speeds for name, _ in speed.parts)
    found = [dict(speed.parts) for speed in speeds]
    parts = [(name, *(f"{part.get(name, 0.0):.1f}" for part in found)) for name in names]
    seconds = report.table(("seconds of", *(speed.name for speed in speeds)), parts)
    return f"{report.table(head, cells)}\n\n{seconds}"


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ties", type=int, default=0)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    target = replace(host_target(), threads=options.threads)
    lines, speeds = [], []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER_VARIABLE] = str(Path(folder, "cache"))
        if options.trials:
            speeds.append(searched("measured here", target, options.trials))
        if options.dask:
            speeds.append(searched("answered at once", target, options.trials, Instant()))
            lines.append(f"Dask: {fed(target):.0f} jobs of nothing a second, two workers.")
        if options.ties:
            lines.append(f"A/A: {false_winners(target, options.ties)} winners in {options.ties}.")
    text = "\n\n".join([table(speeds), *lines])
    print(text)
    if options.write:
        report.write("tuning", text, [*map(asdict, speeds), *lines], ())


if __name__ == "__main__":
    main()
