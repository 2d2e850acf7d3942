"""The process that runs candidates, `python -m tilewright.autotune.worker`: it checks and times
what its parent built, and may crash, hang or run out of memory without harm to anybody else.

It reads jobs from standard input and answers on standard output, a frame each (frames.py); what a
kernel prints goes to standard error. It ends when the parent does, amid of a kernel or not.

A job: the function as text, the seed of its data, threads, bytes of memory that it may take, how
many rounds, and the candidates, each an artifact with a shared object among the blobs. Of each
candidate that is right there is a list of samples; the answer to a wrong one is its text. Between
them stand frames that say which stage begins, so that the parent can tell what took too long.
"""

from __future__ import annotations

import itertools
import os
import queue
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..driver.check import Checker, CheckError, random_array
from ..runtime.arrays import Array
from ..runtime.artifact_json import kernel_from_json
from ..runtime.host import last_level_bytes
from ..runtime.kernel import Kernel
from ..runtime.library import SharedObject
from ..runtime.limits import fma_peak
from ..runtime.timing import calibrate, in_turn, sample
from ..tir.errors import TilewrightError
from ..tir.func import PrimFunc
from ..tir.json_reader import Json, Reader
from ..tir.parser import parse
from .frames import Frame, encode, read_frame

MOST_COPIES = 32  # of the constants, that are taken in turn
_LONGEST_FUNC = 1 << 22
_PROBED = 2  # calls of the probe

Say = Callable[[Mapping[str, Json]], None]


@dataclass
class Bench:
    """A function with random constants and inputs, kept from one job to the next."""

    text: str
    func: PrimFunc
    constants: list[dict[str, Array]]
    inputs: list[Array]
    checker: Checker

    @staticmethod
    def of(text: str, seed: int) -> Bench:
        """Data for a function."""
        func, rng = parse(text), np.random.default_rng(seed)
        size = sum(b.type.bytes * b.size for b in func.constants)
        copies = min(MOST_COPIES, -(-2 * last_level_bytes() // size)) if size else 1
        constants = [
            {b.name: random_array(rng, b.type, b.shape) for b in func.constants}
            for _ in range(copies)
        ]
        inputs = [random_array(rng, b.type, b.shape) for b in func.inputs]
        return Bench(text, func, constants, inputs, Checker(func, constants[0], rng))

    @property
    def rotated(self) -> int:
        """Bytes of all constants."""
        return sum(array.nbytes for copy in self.constants for array in copy.values())


def main() -> None:
    """Answer jobs until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    jobs: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    bench: Bench | None = None
    while True:
        frame = jobs.get()
        bench = answer(frame, bench, lambda body: _write(answers, body))


def _listen(stream: BinaryIO, jobs: queue.SimpleQueue[Frame]) -> None:
    """Hand on what the parent says; without a parent there is nothing left to do."""
    try:
        while (frame := read_frame(stream)) is not None:
            jobs.put(frame)
    finally:
        os._exit(0)


def _write(answers: BinaryIO, body: Mapping[str, Json]) -> None:
    answers.write(encode(body))


def answer(frame: Frame, bench: Bench | None, say: Say) -> Bench | None:
    """Do one job; the data is kept for the next one of the same function."""
    job = Reader(dict(frame.body), "job")
    text, seed = job["func"].text(_LONGEST_FUNC), job["seed"].integer()
    say({"stage": "data"})
    _limit_memory(job["memory"].integer())
    try:
        if bench is None or bench.text != text:
            bench = Bench.of(text, seed)
        found = [
            _candidate(bench, candidate, blob, job["threads"].integer(), say)
            for candidate, blob in zip(job["candidates"].items(), frame.blobs, strict=True)
        ]
        say({"done": _timed(found, job, bench, say)})
    except MemoryError as error:
        fate: Json = {"outcome": "out-of-memory", "text": str(error) or "no memory left"}
        say({"done": [fate] * len(frame.blobs)})
        return None
    return bench


Call = Callable[[], object]


def _candidate(bench: Bench, body: Reader, blob: bytes, threads: int, say: Say) -> Call | Json:
    """A call of a candidate that is right, or what is wrong with it."""
    say({"stage": "check"})
    try:
        artifact = kernel_from_json(body)
        shared = SharedObject(blob, Path(body["path"].text()), "", 0.0)
        kernels = [Kernel.load(artifact, shared, fixed) for fixed in bench.constants]
        bench.checker.check(kernels[0], threads)
    except CheckError as error:
        return {"outcome": "wrong", "text": error.message}
    except TilewrightError as error:
        return {"outcome": "build-failed", "text": error.message}
    calls = [kernel.bind_copies(*bench.inputs, threads=threads) for kernel in kernels]
    turn = itertools.cycle(calls)
    return lambda: next(turn)()


def _timed(found: list[Call | Json], job: Reader, bench: Bench, say: Say) -> list[Json]:
    """For each candidate its samples, taken in turns, or what is wrong with it."""
    threads, rounds = job["threads"].integer(), job["rounds"].integer()
    say({"stage": "time"})
    calls = {str(n): call for n, call in enumerate(found) if callable(call)}
    repeats = {name: calibrate(call) for name, call in calls.items()}
    samples: dict[str, list[Json]] = {name: [] for name in calls}
    for turn in range(rounds if calls else 0):
        for name in in_turn(list(calls), turn):
            samples[name].append(sample(calls[name], repeats[name]))
    peak = fma_peak(threads)
    rate = peak.rate(sample(peak, _PROBED))
    return [
        {
            "outcome": "ok",
            "samples": samples[str(n)],
            "calls": repeats[str(n)],
            "rotated": bench.rotated,
            "calibration": rate,
        }
        if callable(call)
        else call
        for n, call in enumerate(found)
    ]


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bounded, hard))


if __name__ == "__main__":
    main()
