"""Kernels between guard pages: what reads or writes just beside an array, and may not, is ended by
the system, whatever becomes of the value that it reads.

A fence in memory finds writes, and reads whose value reaches a result (fenced.py); it finds no load
whose value is thrown away, and where a kernel writes far beyond it the process is damaged. A guard
page finds both, but a kernel that touches one takes its process along. So kernels run there in a
process of their own (guarded_process.py), before they run here: one process for all kernels of an
object, started anew after it has ended. It is a new program, no fork of this process, which may
hold locks and threads of others.

Not guarded, and the check says so: kernels whose arrays exceed MOST bytes, and where no process can
be started.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...codegen.artifact import Entry, ToldSize
from ...runtime.arrays import Array
from ...runtime.cpu.pool import pool_object
from ...runtime.files.temporary import temporary_folder
from ...runtime.toolchain.library import SharedObject
from ...tir.buffer import Buffer
from .trial import SCRATCH, Fault

MOST = 1 << 28  # bytes of all arrays of a kernel
THREADS = 3
_PATIENCE = 120.0  # seconds: a kernel that takes longer is not guarded
_TOUCHED = (signal.SIGSEGV, signal.SIGBUS)  # what a guard page answers
_SCRIPT = Path(__file__).with_name("guarded_process.py")


@dataclass(frozen=True, slots=True)
class Given:
    """An array of a job: its bytes, its shape, and its values where it has any before."""

    bytes: int
    shape: tuple[int, ...]
    array: Array | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A process ended. side: where the guards stood then; signal: that ended it, 0 for none."""

    side: str = ""
    signal: int = 0


class GuardedProcess:
    """Runs the entries of one object between guard pages."""

    def __init__(self, shared: SharedObject) -> None:
        self._shared = shared
        self._is_able = True  # to run anything
        self._process: subprocess.Popen[bytes] | None = None
        self._paths: tuple[str, str] | None = None
        self._stop: Callable[[], object] | None = None

    def check(
        self,
        entries: Sequence[Entry],
        arrays: Mapping[str, Given],
        meanwhile: Callable[[], object] = bool,
    ) -> bool:
        """Run entries on arrays by name; whether that could be done. meanwhile: is called once they
        run. Raises: Fault.
        """
        if sum(given.bytes for given in arrays.values()) > MOST:
            return False
        ended = self._run(entries, arrays, None, meanwhile)
        if ended is None or not ended.signal:
            return ended is None
        if ended.signal not in _TOUCHED:
            name = signal.Signals(ended.signal).name
            raise Fault(f"it ends its process by {name}", code="check-page")
        for only in (*arrays, ""):
            again = self._run(entries, arrays, only)
            if again is not None and again.signal in _TOUCHED:
                name = f"'{only}'" if only else SCRATCH
                said = f"it reads or writes {again.side} {name}, where it may not"
                raise Fault(said, code="check-page")
        raise Fault("it reads or writes where no array is", code="check-page")

    def _run(
        self,
        entries: Sequence[Entry],
        arrays: Mapping[str, Given],
        only: str | None,
        meanwhile: Callable[[], object] = bool,
    ) -> Ended | None:
        """How the process ended that ran entries; None where it did not. only: the one array that
        has guards, "" for scratch memory, None for all.
        """
        process = self._started()
        if process is None or process.stdin is None:
            return Ended()
        try:
            process.stdin.write(self._job(entries, arrays, only))
            for given in arrays.values():
                if given.array is not None:
                    process.stdin.write(given.array.tobytes())
            process.stdin.flush()
        except OSError:  # it ended before
            self.close()
            return Ended()
        meanwhile()
        said = self._heard(process)
        if said[-1:] == ["done"]:
            if said[-2].isdigit():
                raise Fault(
                    f"threads {said[-3]} and {said[-2]} write the same bytes of scratch memory "
                    "that is one thread's own",
                    code="check-own",
                )
            return None
        self.close()
        if not said or said[-1] == "own":  # there a thread lacks what others compute for it
            self._is_able = bool(said)
            return Ended()
        return Ended(said[-1], max(0, -process.returncode))

    def _job(
        self, entries: Sequence[Entry], arrays: Mapping[str, Given], only: str | None
    ) -> bytes:
        pool, path = self._objects()
        job = {
            "pool": pool,
            "object": path,
            "threads": THREADS,
            "only": only,
            "arrays": [
                {"name": name, "bytes": given.bytes, "given": given.array is not None}
                for name, given in arrays.items()
            ],
            "entries": [_entry(entry, arrays) for entry in entries],
        }
        return json.dumps(job).encode() + b"\n"

    def _objects(self) -> tuple[str, str]:
        """The files of the pool and of the object, written where the cache has none."""
        if self._paths is None:
            folder = temporary_folder()
            weakref.finalize(self, folder.cleanup)
            found = []
            for name, shared in (("pool.so", pool_object()), ("object.so", self._shared)):
                file = Path(folder.name, name)
                file.write_bytes(shared.binary)
                found.append(str(file))
            self._paths = found[0], found[1]
        return self._paths

    def _started(self) -> subprocess.Popen[bytes] | None:
        if self._process is None and runs_python() and self._is_able:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_SCRIPT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError:
                return None
            self._stop = weakref.finalize(self, _end, self._process)
        return self._process

    def _heard(self, process: subprocess.Popen[bytes]) -> list[str]:
        """What the process said of one job, to its last word or its end."""
        assert process.stdout is not None
        text, pipe = "", process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not text.endswith("done\n"):
                if not selector.select(_PATIENCE):
                    process.kill()
                    return []
                part = os.read(pipe, 1 << 10)
                if not part:
                    break
                text += part.decode()
        return text.split()

    def close(self) -> None:
        """End the process; the next job starts another one."""
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


def runs_python() -> bool:
    """Whether what runs this process is Python, and not a program that holds it."""
    return Path(sys.executable or "").name.startswith(("python", "pypy"))


def given_arrays(
    entries: Sequence[Entry], given: Mapping[str, Array], outputs: Iterable[Buffer] = ()
) -> dict[str, Given]:
    """The arrays that entries take, by name: those that are given, and others of their shapes,
    which are those of `outputs` where a call decides sizes.
    """
    found = {name: Given(array.nbytes, array.shape, array) for name, array in given.items()}
    for buffer in outputs:
        found[buffer.name] = Given(buffer.size * buffer.type.bytes, buffer.shape, None)
    for parameter in (parameter for entry in entries for parameter in entry.parameters):
        if parameter.name not in found:
            found[parameter.name] = Given(parameter.bytes, parameter.largest_shape, None)
    return found


def _entry(entry: Entry, arrays: Mapping[str, Given]) -> dict[str, object]:
    names = [parameter.name for parameter in entry.parameters]
    return {
        "symbol": entry.symbol,
        "arrays": names,
        "sizes": [_size(size, names, arrays) for size in entry.sizes],
        "scratch": entry.workspace_bytes + THREADS * entry.thread_workspace_bytes,
        "shared": entry.workspace_bytes,
        "own": entry.thread_workspace_bytes,
    }


def _size(size: ToldSize | int, names: Sequence[str], arrays: Mapping[str, Given]) -> int:
    if isinstance(size, int):
        return size
    assert size.parameter is not None, size
    return arrays[names[size.parameter]].shape[size.axis]


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not sent is of no use
                stream.close()
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
