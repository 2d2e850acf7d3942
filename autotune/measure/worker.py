"""The process that runs candidates, `python -m tilewright.autotune.measure.worker`: it checks and
times what its parent built, and may crash, hang or run out of memory without harm to anybody else.

It reads jobs from standard input and answers on standard output, a frame each (frames.py); what a
kernel prints goes to standard error. It ends when the parent does, amid of a kernel or not.

A job: the function as text, the seed of its data, threads, bytes of memory that it may take, how
many rounds, and the candidates, all for the CPU or all for a GPU, each an artifact with a shared
object or a cubin among the blobs. The answer holds the samples of each, or, as soon as one
misbehaves, that one and what it did. Before it stand frames that say which stage begins, and of
which candidate, so that the parent can tell what took too long; at the stage "ready" the worker
waits for a word of its parent, which has the clock.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import BinaryIO

from ...driver.backends.table import backend_named
from ...driver.check.check import CheckError
from ...driver.check.trial import THREADS
from ...driver.tuning.runner import Call, Runner
from ...runtime.artifact_json import kind_from_json
from ...runtime.machine.timing import Sampler
from ...tir.errors import TilewrightError
from ...tir.parsing.json_reader import Json, Reader
from ..log.record import Outcome
from .bench import Bench, Benches
from .frames import Frame, encode, read_frame
from .jobs import LONGEST_FUNC, Result, bar_from_json
from .sampling import take_turns

Say = Callable[[Mapping[str, Json]], None]


class Fault(Exception):
    """A candidate misbehaved in a way that the worker survived, and what is known of it."""

    def __init__(self, candidate: int, outcome: Outcome, text: str) -> None:
        super().__init__(text)
        self.candidate = candidate
        self.outcome = outcome


def main() -> None:
    """Answer jobs until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    frames: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, frames), daemon=True).start()
    benches = Benches()

    def say(body: Mapping[str, Json]) -> None:
        answers.write(encode(body))

    try:
        while True:
            answer(frames.get(), benches, say, frames.get)
    except TilewrightError as error:  # of no candidate: there is nothing to run them on
        sys.exit(str(error))


def _listen(stream: BinaryIO, frames: queue.SimpleQueue[Frame]) -> None:
    """Hand on what the parent says; without a parent there is nothing left to do."""
    try:
        while (frame := read_frame(stream)) is not None:
            frames.put(frame)
    finally:
        os._exit(0)


def answer(frame: Frame, benches: Benches, say: Say, hear: Callable[[], Frame]) -> None:
    """Do one job."""
    job = Reader(dict(frame.body), "job")
    text, seed = job["func"].text(LONGEST_FUNC), job["seed"].integer()
    candidates = list(job["candidates"].items())
    runner = _runner(kind_from_json(candidates[0]["target"]["kind"]))
    say({"stage": "data"})
    runner.begin(job["memory"].integer(), job["threads"].integer())
    try:
        trials = _Trials(runner, benches.of(text, seed), job, say)
        pairs = zip(candidates, frame.blobs, strict=True)
        calls = [trials.ready(number, body, blob) for number, (body, blob) in enumerate(pairs)]
        say({"stage": "ready"})
        hear()
        say({"done": trials.timed(calls)})
    except Fault as fault:
        say({"candidate": fault.candidate, "outcome": fault.outcome, "done": str(fault)})


@cache
def _runner(kind: str) -> Runner:
    """The device that runs a kind of code, which a worker has once."""
    tuner = backend_named(kind).tuner
    assert tuner is not None  # its candidates came by one
    return tuner.runner()


@dataclass(frozen=True, slots=True)
class _Trials:
    """The candidates of a job on a device."""

    runner: Runner
    bench: Bench
    job: Reader
    say: Say

    def ready(self, number: int, body: Reader, blob: bytes) -> Call:
        """A call of a candidate that is right, or was found to be right before. Raises: Fault."""
        self.say({"stage": "check", "candidate": number})
        with self._blaming(number):
            kernel = self.runner.load(body, blob, self.bench)
            if not self.job["is_final"].truth():
                own = self.job["threads"].integer()
                self.bench.checker.check(kernel, (own, *(n for n in THREADS if n != own)))
            return self.runner.bind(kernel, self.bench)

    def timed(self, calls: list[Call]) -> dict[str, Json]:
        """For each candidate its samples, taken in turns. Raises: Fault."""
        before = self.runner.rate()
        samplers = []
        for number, call in enumerate(calls):
            self.say({"stage": "time", "candidate": number})
            with self._blaming(number):
                samplers.append(self._blamed(self.runner.sampler(call, self.bench), number))
        self.say({"stage": "time"})
        rounds, bar = self.job["rounds"].integer(), bar_from_json(self.job["bar"])
        taken = take_turns([sampler.take for sampler in samplers], rounds, bar)
        after, rotated = self.runner.rate(), self.runner.rotated(self.bench)
        found = [
            Result("ok", "", tuple(mine), sampler.repeats, rotated, after).to_json()
            for mine, sampler in zip(taken, samplers, strict=True)
        ]
        return {"results": list(found), "before": before, "after": after}

    def _blamed(self, sampler: Sampler, number: int) -> Sampler:
        """A sampler whose failures are those of a candidate."""

        def take() -> float:
            with self._blaming(number):
                return sampler.take()

        return replace(sampler, take=take)

    @contextmanager
    def _blaming(self, number: int) -> Iterator[None]:
        """What goes wrong meanwhile is a candidate's fault. Raises: Fault."""
        try:
            yield
        except CheckError as error:
            raise Fault(number, "wrong", error.message) from error
        except MemoryError as error:
            told = error.message if isinstance(error, TilewrightError) else str(error)
            raise Fault(number, "out-of-memory", told or "no memory left") from error
        except TilewrightError as error:
            outcome: Outcome = "crashed" if self.runner.is_lost(error) else "build-failed"
            raise Fault(number, outcome, error.message) from error


if __name__ == "__main__":
    main()
