"""A second process checks kernels of a program beside this one, which holds Python's lock while it
computes what their outputs should be.

It starts while kernels are still being lowered, since a new Python takes half a second to be ready.
What it does not come to is checked here: all, where no process can be started, or it ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from ...codegen.program_artifact import ProgramArtifact
from ...runtime.toolchain.library import SharedObject
from ...tir.func import PrimFunc
from .guarded import runs_python
from .program import KernelCheck, KernelChecker

# NumPy's own threads would take the CPU from the parent
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class CheckedObject:
    """The object that kernels are in."""

    artifact: ProgramArtifact
    shared: SharedObject


@dataclass(frozen=True, slots=True)
class CheckJob:
    """A kernel to be checked: its function, and the symbols of its entries. strict: it adds in the
    order of the definition.
    """

    func: PrimFunc
    symbol: str
    prepare: str | None
    strict: bool

    def run(self, checker: KernelChecker) -> KernelCheck:
        """What is found."""
        return checker.check(self.func, self.symbol, self.prepare, strict=self.strict)


def worker_command() -> Sequence[str]:
    """What starts the process."""
    return [sys.executable, "-P", "-m", f"{__package__}.check_worker"]


class CheckProcess:
    """The process, from when it starts on. It ends with this object at the latest."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if not runs_python():
            return
        with suppress(OSError):
            self._process = subprocess.Popen(
                worker_command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            self._stop = weakref.finalize(self, _end, self._process)

    def checks(
        self, checked: CheckedObject, checker: KernelChecker, jobs: Mapping[str, CheckJob]
    ) -> dict[str, KernelCheck]:
        """What is found of each kernel, by name: here, by `checker`, or there, whoever is free; the
        largest ones first.
        """
        waiting = deque(sorted(jobs, key=lambda name: _elements(jobs[name].func), reverse=True))
        found: dict[str, KernelCheck] = {}
        if self._process is None:
            return {name: job.run(checker) for name, job in jobs.items()}
        with ThreadPoolExecutor(1, "tilewright-check") as pool:
            others = pool.submit(self._serve, checked, waiting, jobs)
            try:
                while (name := _next(waiting)) is not None:
                    found[name] = jobs[name].run(checker)
            finally:
                waiting.clear()  # where a check ended by an error, too
            found |= others.result()
        self._stop()
        left = {name: job.run(checker) for name, job in jobs.items() if name not in found}
        return {name: (found | left)[name] for name in jobs}

    def _serve(
        self, checked: CheckedObject, waiting: deque[str], jobs: Mapping[str, CheckJob]
    ) -> dict[str, KernelCheck]:
        """What the process finds of the kernels that are waiting, until it ends."""
        process, found = self._process, dict[str, KernelCheck]()
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError, EOFError, *_UNSENT):
            process.stdin.write(pickle.dumps(checked))
            while (name := _next(waiting)) is not None:
                process.stdin.write(pickle.dumps(jobs[name]))
                process.stdin.flush()
                found[name] = pickle.load(process.stdout)
        return found


def _next(waiting: deque[str]) -> str | None:
    """The kernel to be checked next; None where there is none, or the other thread took it."""
    with suppress(IndexError):
        return waiting.popleft()
    return None


def _elements(func: PrimFunc) -> int:
    """Of all of its tensors."""
    parameters = (parameter.buffer for parameter in func.parameters)
    return sum(buffer.size for buffer in (*parameters, *func.allocations))


# what pickle raises for a function that holds what another process cannot have, and for an answer
# that is none
_UNSENT = (pickle.PickleError, TypeError, AttributeError, RecursionError)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, which has nothing left to do."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not sent is of no use
                stream.close()
    process.wait()
