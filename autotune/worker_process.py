"""The parent's end of a worker: it owns the clock."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import IO

from ..tir.json_reader import Json
from .frames import Frame, decode, encode
from .record import Outcome

_BLOCK = 1 << 20
_TOLD = 2000  # characters of what a worker said before it died
_LAST = 5.0  # seconds for a worker to end


@dataclass(frozen=True, slots=True)
class Lost:
    """What became of a job whose worker is gone: "crashed" or "timed-out", and what is known."""

    outcome: Outcome
    text: str


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that each stage of a job may take."""

    data: float = 60.0
    check: float = 20.0
    time: float = 20.0
    start: float = 60.0

    def of(self, stage: str) -> float:
        """Of a stage by its name."""
        return float(getattr(self, stage))


@dataclass
class Worker:
    """A worker process; a new one is started for the job after one that was lost.

    A context manager. Not for several threads at once.
    """

    deadlines: Deadlines = field(default_factory=Deadlines)
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
            process.wait(_LAST)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._open.close()

    def run(self, body: Mapping[str, Json], blobs: Sequence[bytes]) -> Frame | Lost:
        """Have one job done: the last frame of the answer, or what became of it."""
        process, stage = self._started(), "start"
        try:
            assert process.stdin is not None
            process.stdin.write(encode(body, blobs))
            process.stdin.flush()
            while True:
                frame = self._next(process, self.deadlines.of(stage))
                if "done" in frame.body:
                    return frame
                stage = str(frame.body.get("stage", stage))
        except TimeoutError:
            self.close()
            return Lost("timed-out", f"longer than {self.deadlines.of(stage):g} s at '{stage}'")
        except (EOFError, BrokenPipeError):
            return self._crashed(process, stage)

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

    def _crashed(self, process: subprocess.Popen[bytes], stage: str) -> Lost:
        code = process.wait(_LAST)
        how = f"ended with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        assert self._errors is not None
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-_TOLD:]
        self.close()
        return Lost("crashed", f"the worker {how} at '{stage}'{f': {said}' if said else ''}")
