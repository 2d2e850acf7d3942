"""Searches that are ended at random moments: python -m tests.autotune.interrupted HOW COUNT FOLDER

HOW: "kill" (kill -9), "term" (SIGTERM, handled as the command line does) or "full" (the disk is
full). Each search runs in a child of this process, and measures nothing: times follow from the
code. It is ended, then a second search goes on with its log. Prints a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import tilewright as tw
from tilewright.autotune import session
from tilewright.autotune.errors import LogError
from tilewright.autotune.log.conditions import conditions
from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.record import Conditions, Trial, identity
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.driver.check.clock import Clock
from tilewright.runtime.machine.host import host_target
from tilewright.tir.target.target import Target

from .samples import scaled

TARGET = host_target()
PAUSE = 0.01  # seconds of a job
POINTS = 12  # of the space
MOST = 24_000  # bytes of a disk that is full some time


class Instant:
    """A place that says at once what its jobs take: the length of their code."""

    slots = 1

    def __init__(self, *_: object) -> None:
        """Start nothing."""
        self.clock = Clock()

    def conditions(self, target: Target) -> Conditions:
        return conditions(target)

    def compile_ahead(self, artifact: object) -> None:
        """Compile nothing."""

    def submit(self, job: Job) -> Future[Reply]:
        time.sleep(PAUSE)
        done: Future[Reply] = Future()
        lengths = [1e-6 * len(artifact.source) for artifact in job.candidates]
        results = (Result("ok", "", (n,) * job.rounds, 8, 64 << 20, 110.0) for n in lengths)
        done.set_result(Reply(conditions(job.target), tuple(results)))
        return done

    def close(self) -> None:
        """Nothing is open."""


def in_parts(sch: tw.Schedule) -> None:
    (loop,) = sch.loops("y")
    width = int(sch.sample_categorical([1, 2, 4, 8], 2, name="width"))
    copies = int(sch.sample_categorical([1, 2, 4], 0, name="copies"))
    _, outer, inner = sch.split(loop, (None, copies, width))
    sch.unroll(outer)
    sch.unroll(inner)


def search(log: Path, told: int) -> str:
    """Search the whole space; say each trial that is kept."""

    def tell(trial: Trial) -> None:
        os.write(told, f"{identity(trial)}\n".encode())

    found = tw.tune(scaled(), TARGET, rule=in_parts, trials=POINTS, log=log, callback=tell)
    return found.stopped_because


def child(log: Path, limit: int | None = None) -> tuple[int, int]:
    """A search in a process of its own: its id, and where it says what it kept."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    code = 3
    try:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        reason = search(log, writing)
        code = 1 if reason == "it was interrupted" else 0
    except KeyboardInterrupt:  # before it began
        code = 1
    except LogError as error:
        code = 2 if error.code == "log-write" else 3
    finally:
        os._exit(code)


def ended(process: int, reading: int) -> tuple[int, list[str]]:
    """How a search ended, and what it kept."""
    with os.fdopen(reading) as told:
        kept = told.read().split()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), kept


def tried(log: Path) -> list[str]:
    """The traces of a log's trials, those that were timed alone."""
    alone = [trial for trial in read_log(log).trials if not trial.method.session]
    return [json.dumps(trial.trace.to_json()) for trial in alone]


def by_signal(number: int, seconds: float, log: Path) -> tuple[int, list[str]]:
    process, reading = child(log)
    time.sleep(seconds)
    os.kill(process, number)
    return ended(process, reading)


def mounted(folder: Path, size: int) -> bool:
    """Mount a small disk, where that is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def on_a_full_disk(size: int, log: Path) -> tuple[int, list[str]]:
    """On a small disk, or, where none can be mounted, with a limit of a file's size."""
    disk = log.parent / "disk"
    disk.mkdir()
    is_disk = mounted(disk, size)
    try:
        done = ended(*child(disk / log.name, None if is_disk else size))
        if (disk / log.name).exists():
            log.write_bytes((disk / log.name).read_bytes())
    finally:
        if is_disk:
            subprocess.run(["umount", str(disk)], check=True)
    return done


def main(how: str, count: int, folder: Path) -> None:
    """End so many searches, and let each go on."""
    session.Here = Instant  # type: ignore[assignment,misc]
    source = random.Random(how)
    log = folder / "whole.jsonl"
    search(log, os.open(os.devnull, os.O_WRONLY))  # what a first search finds out is known to all
    whole = sorted(tried(log))
    log.unlink()
    began = time.monotonic()
    assert ended(*child(log))[0] == 0
    lasts = time.monotonic() - began
    ends: dict[str, Callable[[Path], tuple[int, list[str]]]] = {
        "kill": lambda log: by_signal(signal.SIGKILL, source.uniform(0, lasts), log),
        "term": lambda log: by_signal(signal.SIGTERM, source.uniform(0, lasts), log),
        "full": lambda log: on_a_full_disk(source.randrange(1, MOST), log),
    }
    for number in range(count):
        (folder / str(number)).mkdir()
        log = folder / str(number) / "tune.jsonl"
        code, kept = ends[how](log)
        found = read_log(log) if log.exists() else None
        trials = () if found is None else found.trials
        have = {identity(trial) for trial in trials}
        # those of a session are kept at once
        untold = {t.method.session or identity(t) for t in trials if identity(t) not in kept}
        told = {
            "code": code,
            "kept": len(kept),
            "lost": len(set(kept) - have),
            "more": len(untold),
            "damaged": 0 if found is None else len(found.problems),
        }
        again, _ = ended(*child(log))
        after = tried(log)
        print(
            json.dumps(told | {"again": again, "same": sorted(after) == whole, "all": len(after)})
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
