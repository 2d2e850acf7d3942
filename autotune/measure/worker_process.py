"""The parent's side of a worker process, which enforces the deadlines."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import IO

from ...driver.check.clock import Clock
from ...tir.json_reader import Json, Reader
from ..log.record import Outcome, outcome_of
from .frames import Frame, decode, encode

_BLOCK = 1 << 20
_TOLD = 2000  # characters of the error output of a worker that died
_LAST = 60.0  # seconds for a worker to end: a driver first stops its work on a GPU
# glibc must not return freed memory: the next candidate would have to fault it in again
_KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


@dataclass(frozen=True, slots=True)
class WorkerFault:
    """The failure of a job.

    stage: of the worker at the time; candidate: the number of the one that it was working on; None:
    all of them. may_be_another: whether an earlier candidate, that wrote out of bounds, may be the
    cause.
    """

    outcome: Outcome
    text: str
    stage: str
    candidate: int | None
    may_be_another: bool = False


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limit of each stage of a job in seconds, per candidate, compiling included."""

    start: float = 60.0
    compile: float = 60.0
    data: float = 120.0
    check: float = 20.0
    ready: float = 20.0
    time: float = 20.0

    def of(self, stage: str) -> float:
        """The limit of a stage by its name."""
        return float(getattr(self, stage))


@dataclass
class Worker:
    """A worker process; after it was lost, the next job starts a new one.

    clock: the seconds of each stage over all jobs.

    A context manager. Not thread-safe, except for `kill`.
    """

    deadlines: Deadlines = field(default_factory=Deadlines)
    clock: Clock = field(default_factory=Clock)
    _process: subprocess.Popen[bytes] | None = None
    _heard: bytes = b""
    _errors: IO[bytes] | None = None  # what it says
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # a driver may delay its end
                process.wait(_LAST)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._open.close()

    def kill(self) -> None:
        """Kill the process, also during a job of another thread, whose `run` returns a Fault."""
        process = self._process
        if process is not None:
            process.kill()

    def run(
        self,
        body: Mapping[str, Json],
        blobs: Sequence[bytes],
        timing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Frame | WorkerFault:
        """Run one job: the last frame of the reply, or the failure.

        timing: a context that is held while the candidates are timed.
        """
        process, stage, candidate = self._started(), "start", None
        turns = len(blobs) * max(1, sum(1 for _ in Reader(dict(body), "job")["sizes"].items()))
        try:
            with ExitStack() as held:
                self._send(process, encode(body, blobs))
                while True:
                    parts = turns if stage == "time" and candidate is None else 1
                    began = perf_counter()
                    frame = self._next(process, parts * self.deadlines.of(stage))
                    self.clock.add(stage, perf_counter() - began)
                    if "outcome" in frame.body:
                        return _fault(frame)
                    if "done" in frame.body:
                        return frame
                    at = Reader(dict(frame.body), "answer")
                    stage, candidate = at["stage"].text(), _number(at)
                    if stage == "ready":
                        held.enter_context(timing())
                        self._send(process, encode({}))
        except TimeoutError:
            self.close()
            limit = f"longer than {self.deadlines.of(stage):g} s at '{stage}'"
            return WorkerFault("timed-out", limit, stage, candidate)
        except (EOFError, BrokenPipeError):
            return self._crashed(process, stage, candidate)

    def _send(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.flush()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._heard = b""
            self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **_KEEP_MEMORY},
                process_group=0,  # Ctrl-C is for the parent
            )
        return self._process

    def _next(self, process: subprocess.Popen[bytes], seconds: float) -> Frame:
        """The next frame. Raises: EOFError where the worker died; TimeoutError."""
        assert process.stdout is not None
        deadline = perf_counter() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (found := decode(self._heard)) is None:
                left = deadline - perf_counter()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                data = os.read(process.stdout.fileno(), _BLOCK)
                if not data:
                    raise EOFError
                self._heard += data
        frame, self._heard = found
        return frame

    def _crashed(
        self, process: subprocess.Popen[bytes], stage: str, candidate: int | None
    ) -> WorkerFault:
        code = process.wait(_LAST)
        how = f"ended with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        assert self._errors is not None
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-_TOLD:]
        self.close()
        told = f"the worker {how} at '{stage}'{f': {said}' if said else ''}"
        return WorkerFault("crashed", told, stage, candidate, may_be_another=True)


def _fault(frame: Frame) -> WorkerFault:
    """The failure that a living worker reports for a candidate."""
    body = Reader(dict(frame.body), "answer")
    number = body["candidate"].integer()
    return WorkerFault(outcome_of(body["outcome"]), body["done"].text(), "check", number)


def _number(frame: Reader) -> int | None:
    """The number of the candidate in a frame."""
    known = dict(frame.fields())
    return known["candidate"].integer() if "candidate" in known else None
