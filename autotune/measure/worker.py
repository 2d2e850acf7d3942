"""The process that runs candidates, `python -m tilewright.autotune.measure.worker`: it checks and
times what its parent built, and isolates crashes, hangs and memory exhaustion.

It reads jobs from standard input and replies on standard output, in frames (frames.py); the output
of a kernel goes to standard error. It ends when the parent does, even in the middle of a kernel.

A job holds the function as text, the seed of its data, the number of threads, the memory limit in
bytes, the number of rounds, the sizes at which to run where calls decide them, the candidates, all
for the CPU or all for a GPU, each an artifact whose shared object or cubin is among the blobs, and
which of them is the default. The reply holds
the samples of each candidate, or the first fault and its candidate. Frames before the reply name
each stage as it begins, and its candidate, so that the parent can attribute a timeout; at the stage
"ready" the worker waits for the parent to start the timing.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import BinaryIO, NoReturn

from ...driver.backends.backend import Backend
from ...driver.backends.table import backend_of
from ...driver.check.check import CheckError
from ...driver.check.trial import THREADS
from ...driver.tuning.runner import Call, Runner
from ...runtime.artifact_json import target_from_json
from ...runtime.machine.timing import Sampler
from ...tir.errors import TilewrightError
from ...tir.instructions.warp_products import cut_terms
from ...tir.json_reader import Json, Reader
from ..log.record import Outcome
from .bench import Bench, Benches
from .frames import Frame, encode, read_frame
from .jobs import LONGEST_FUNC, Result, bar_from_json, size_values
from .sampling import SizedSampler, take_turns

Say = Callable[[Mapping[str, Json]], None]


class CandidateFault(Exception):
    """A failure of a candidate that the worker survived."""

    def __init__(self, candidate: int, outcome: Outcome, text: str) -> None:
        super().__init__(text)
        self.candidate = candidate
        self.outcome = outcome


def main() -> None:
    """Run jobs until the parent closes the pipe."""
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
    except TilewrightError as error:  # not of a candidate: there is no device to run on
        _die(str(error))
    except Exception:
        _die(traceback.format_exc())


def _die(said: str) -> NoReturn:
    """End at once: what Python does at its end would fail, since a thread reads standard input, and
    bury what is said here.
    """
    sys.stderr.write(f"{said}\n")
    sys.stderr.flush()
    os._exit(1)


def _listen(stream: BinaryIO, frames: queue.SimpleQueue[Frame]) -> None:
    """Queue the frames of the parent; exit when it closes the pipe."""
    try:
        while (frame := read_frame(stream)) is not None:
            frames.put(frame)
    finally:
        os._exit(0)


def answer(frame: Frame, benches: Benches, say: Say, hear: Callable[[], Frame]) -> None:
    """Run one job."""
    job = Reader(dict(frame.body), "job")
    text, seed = job["func"].text(LONGEST_FUNC), job["seed"].integer()
    candidates = list(job["candidates"].items())
    target = target_from_json(candidates[0]["target"])
    runner = _runner(backend_of(target))
    say({"stage": "data"})
    runner.begin(job["memory"].integer(), job["threads"].integer())
    try:
        made = benches.of(text, seed, cut_terms(target), size_values(job["sizes"]))
        trials = _Trials(runner, made, job, say)
        pairs = zip(candidates, frame.blobs, strict=True)
        calls = [trials.ready(number, body, blob) for number, (body, blob) in enumerate(pairs)]
        say({"stage": "ready"})
        hear()
        say({"done": trials.timed(calls)})
    except CandidateFault as fault:
        say({"candidate": fault.candidate, "outcome": fault.outcome, "done": str(fault)})


@cache
def _runner(backend: Backend) -> Runner:
    """The device that runs a back end's code, which a worker has once."""
    tuner = backend.tuner
    assert tuner is not None  # its candidates came by one
    return tuner.runner()


@dataclass(frozen=True, slots=True)
class _Trials:
    """The candidates of a job on a device, and the data of each of its sizes."""

    runner: Runner
    benches: tuple[Bench, ...]
    job: Reader
    say: Say

    def ready(self, number: int, body: Reader, blob: bytes) -> list[Call]:
        """Load and check a candidate; its call at each size. Raises: Fault."""
        self.say({"stage": "check", "candidate": number})
        with self._blaming(number):
            each = self.runner.load(body, blob, self.benches)
            pairs, own = list(zip(each, self.benches, strict=True)), self.job["threads"].integer()
            for kernel, bench in () if self.job["is_final"].truth() else pairs:
                self.say({"stage": "check", "candidate": number})
                bench.checker.check(kernel, (own, *(n for n in THREADS if n != own)))
            return [self.runner.bind(kernel, bench) for kernel, bench in pairs]

    def timed(self, calls: list[list[Call]]) -> dict[str, Json]:
        """Time the candidates in turns; the results as JSON. Raises: Fault."""
        before = self.runner.rate()
        samplers = []
        for number, each in enumerate(calls):
            self.say({"stage": "time", "candidate": number})
            with self._blaming(number):
                sized = [
                    self._sampler(*pair, number) for pair in zip(each, self.benches, strict=True)
                ]
                samplers.append(SizedSampler(sized))
        self.say({"stage": "time"})
        rounds, bar = self.job["rounds"].integer(), bar_from_json(self.job["bar"])
        default = self.job["default"].or_none(Reader.integer)
        taken = take_turns([sampler.take for sampler in samplers], rounds, bar, default)
        after, rotated = self.runner.rate(), self.runner.rotated(self.benches[0])
        sizes = size_values(self.job["sizes"])
        found = [
            Result("ok", "", tuple(mine), one.repeats, rotated, after, one.times(sizes)).to_json()
            for mine, one in zip(taken, samplers, strict=True)
        ]
        return {"results": list(found), "before": before, "after": after}

    def _sampler(self, call: Call, bench: Bench, number: int) -> Sampler:
        """A sampler of a call whose errors become faults of a candidate."""
        sampler = self.runner.sampler(call, bench)

        def take() -> float:
            with self._blaming(number):
                return sampler.take()

        return replace(sampler, take=take)

    @contextmanager
    def _blaming(self, number: int) -> Iterator[None]:
        """Turn errors into faults of a candidate. Raises: Fault."""
        try:
            yield
        except CheckError as error:
            raise CandidateFault(number, "wrong", error.message) from error
        except MemoryError as error:
            told = error.message if isinstance(error, TilewrightError) else str(error)
            raise CandidateFault(number, "out-of-memory", told or "no memory left") from error
        except TilewrightError as error:
            outcome: Outcome = "crashed" if self.runner.is_lost(error) else "build-failed"
            raise CandidateFault(number, outcome, error.message) from error


if __name__ == "__main__":
    main()
