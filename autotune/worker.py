"""The process that runs candidates, `python -m tilewright.autotune.worker`: it checks and times
what its parent built, and may crash, hang or run out of memory without harm to anybody else.

It reads jobs from standard input and answers on standard output, a frame each (frames.py); what a
kernel prints goes to standard error. It ends when the parent does, amid of a kernel or not.

A job: the function as text, the seed of its data, threads, bytes of memory that it may take, how
many rounds, and the candidates, each an artifact with a shared object among the blobs. The answer
holds the samples of each, or, as soon as one misbehaves, that one and what it did. Before it stand
frames that say which stage begins, and of which candidate, so that the parent can tell what took
too long; at the stage "ready" the worker waits for a word of its parent, which has the clock.
"""

from __future__ import annotations

import os
import queue
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..driver.check import Checker, CheckError, random_array
from ..runtime.arrays import Array
from ..runtime.artifact_json import kernel_from_json
from ..runtime.host import last_level_bytes
from ..runtime.kernel import Kernel
from ..runtime.library import SharedObject
from ..runtime.limits import Probe, fma_peak
from ..runtime.timing import calibrate, sample
from ..tir.errors import TilewrightError
from ..tir.func import PrimFunc
from ..tir.json_reader import Json, Reader
from ..tir.parser import parse
from .frames import Frame, encode, read_frame
from .jobs import LONGEST_FUNC, Result, bar_from_json
from .record import Outcome
from .sampling import take_turns

MOST_COPIES = 512  # of the constants, that are taken in turn
_PROBED = 3  # calls of the probe, the fastest of which counts

Say = Callable[[Mapping[str, Json]], None]
Call = Callable[[], object]


@dataclass
class Bench:
    """A function with random constants and inputs, and what its results should be."""

    func: PrimFunc
    constants: dict[str, Array]
    inputs: list[Array]
    checker: Checker

    @staticmethod
    def of(text: str, seed: int) -> Bench:
        """Data for a function."""
        func, rng = parse(text), np.random.default_rng(seed)
        constants = {b.name: random_array(rng, b.type, b.shape) for b in func.constants}
        inputs = [random_array(rng, b.type, b.shape) for b in func.inputs]
        return Bench(func, constants, inputs, Checker(func, constants, rng))

    @property
    def copies(self) -> int:
        """How many copies of the constants are taken in turn."""
        size = self._size
        return min(MOST_COPIES, -(-2 * last_level_bytes() // size)) if size else 1

    @property
    def rotated(self) -> int:
        """Bytes of all copies."""
        return self.copies * self._size

    @property
    def bytes(self) -> int:
        """Of its data, with what the checker has of it."""
        return 3 * (self._size + sum(array.nbytes for array in self.inputs))

    @property
    def _size(self) -> int:
        return sum(array.nbytes for array in self.constants.values())


class Benches:
    """The benches that were used last, as many as fit: a search goes to and fro between functions,
    and what their results should be takes longer than a trial.
    """

    def __init__(self, most: int = 1 << 30) -> None:
        """most: bytes; the last one is kept, however large."""
        self._most = most
        self._kept: dict[tuple[str, int], Bench] = {}

    def of(self, text: str, seed: int) -> Bench:
        """The bench of a function, made where it is not there."""
        key = (text, seed)
        found = self._kept.pop(key, None)
        self._make_room(0 if found is None else found.bytes)
        self._kept[key] = found or Bench.of(text, seed)
        return self._kept[key]

    def _make_room(self, size: int) -> None:
        while self._kept and size + sum(one.bytes for one in self._kept.values()) > self._most:
            del self._kept[next(iter(self._kept))]


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

    while True:
        answer(frames.get(), benches, say, frames.get)


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
    say({"stage": "data"})
    _limit_memory(job["memory"].integer())
    probe = fma_peak(job["threads"].integer())
    try:
        bench = benches.of(text, seed)
        pairs = zip(job["candidates"].items(), frame.blobs, strict=True)
        calls = [_candidate(bench, n, body, blob, job, say) for n, (body, blob) in enumerate(pairs)]
        say({"stage": "ready"})
        hear()
        say({"done": _timed(calls, job, bench, probe, say)})
    except Fault as fault:
        say({"candidate": fault.candidate, "outcome": fault.outcome, "done": str(fault)})


def _candidate(bench: Bench, number: int, body: Reader, blob: bytes, job: Reader, say: Say) -> Call:
    """A call of a candidate that is right, or was found to be right before. Raises: Fault."""
    say({"stage": "check", "candidate": number})
    threads = job["threads"].integer()
    try:
        artifact = kernel_from_json(body)
        shared = SharedObject(blob, Path(body["path"].text()), "", 0.0)
        kernel = Kernel.load(artifact, shared, bench.constants)
        if not job["is_final"].truth():
            bench.checker.check(kernel, threads)
        return kernel.bind_copies(*bench.inputs, threads=threads, rotated=bench.copies)
    except CheckError as error:
        raise Fault(number, "wrong", error.message) from error
    except TilewrightError as error:
        raise Fault(number, "build-failed", error.message) from error
    except MemoryError as error:
        raise Fault(number, "out-of-memory", str(error) or "no memory left") from error


def _timed(calls: list[Call], job: Reader, bench: Bench, probe: Probe, say: Say) -> dict[str, Json]:
    """For each candidate its samples, taken in turns."""
    before = _rate(probe)
    repeats = []
    for number, call in enumerate(calls):
        say({"stage": "time", "candidate": number})
        repeats.append(calibrate(call))
    say({"stage": "time"})
    takes = [partial(sample, call, often) for call, often in zip(calls, repeats, strict=True)]
    taken = take_turns(takes, job["rounds"].integer(), bar_from_json(job["bar"]))
    after = _rate(probe)
    pairs = zip(taken, repeats, strict=True)
    found = [Result("ok", "", tuple(mine), n, bench.rotated, after).to_json() for mine, n in pairs]
    return {"results": list(found), "before": before, "after": after}


def _rate(probe: Probe) -> float:
    """GFLOP/s of the fastest of some calls: others may take a CPU from one of them."""
    return probe.rate(min(sample(probe, 1) for _ in range(_PROBED)))


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bounded, hard))


if __name__ == "__main__":
    main()
