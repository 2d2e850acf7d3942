"""The process that runs kernels between guard pages: what touches one ends this process, and no
other. It needs no package, so it starts in some 30 ms: `python -I -S guarded_process.py`.

It reads jobs from standard input: a line of JSON (`guarded.py` writes it), then the bytes of the
arrays that are given. For each of two runs it prints where the guard is, and "done" after them. In
the first, arrays end where a page begins that may not be touched; in the second they begin where
one ends.

Between them stands a line that begins with "own": of threads that each have scratch memory of their
own it tells the bytes that two of them write, "own 0 1" for the first two threads. Which bytes a
thread writes shows when it runs alone, once where all bits were set and once where none was. That
two threads meet there, and when, is chance in any other run.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import resource
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

PAGE = mmap.PAGESIZE
ROOM = 16  # pages on either side of an array that has no guard
ALIGNMENT = 64  # bytes: of scratch memory
VOID = ctypes.c_void_p


class FaultPlace:
    """Pages of memory with a guard page on either side; pointer: where the array in them starts."""

    def __init__(self, libc: ctypes.CDLL, size: int, side: str, guarded: bool) -> None:
        room = PAGE if guarded else ROOM * PAGE
        inner = -(-size // PAGE) * PAGE
        self._map = mmap.mmap(-1, inner + 2 * room)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        if guarded:
            for page in (start, start + room + inner):
                if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), mmap_none()):
                    sys.exit("no guard pages")
        self.pointer = start + room + (inner - size if side == "behind" else 0)

    def fill(self, data: bytes | None, size: int) -> None:
        """Let the array be these bytes; by default all bits are set."""
        if data is None:
            ctypes.memset(self.pointer, 0xFF, size)
        else:
            ctypes.memmove(self.pointer, data, size)


def mmap_none() -> int:
    """The protection of a page that may not be touched."""
    return getattr(mmap, "PROT_NONE", 0)


def main() -> None:
    """Do jobs until the parent closes the pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc, loaded = ctypes.CDLL(None), {}
    while line := sys.stdin.buffer.readline():
        job = json.loads(line)
        data = {a["name"]: read(sys.stdin.buffer, a["bytes"]) for a in job["arrays"] if a["given"]}
        for path in (job["pool"], job["object"]):
            if path not in loaded:
                loaded[path] = ctypes.CDLL(path)
        for side in ("behind", "before"):
            print(side, flush=True)
            run(job, data, libc, loaded, side)
        print("own", flush=True)
        print(*shared_by(job, data, libc, loaded), flush=True)
        print("done", flush=True)


def read(stream: BinaryIO, size: int) -> bytes:
    """So many bytes. Ends the process where the parent is gone."""
    found = stream.read(size)
    if len(found) < size:
        sys.exit()
    return found


def run(
    job: dict[str, Any],
    data: dict[str, bytes],
    libc: ctypes.CDLL,
    loaded: dict[str, ctypes.CDLL],
    side: str,
) -> None:
    """Run the entries of a job one after the other on arrays of their own."""
    only = job["only"]
    places = placed(job, data, libc, side, lambda name: only in (None, name))
    for entry in job["entries"]:
        size = -(-entry["scratch"] // ALIGNMENT) * ALIGNMENT
        scratch = FaultPlace(libc, size, side, only in (None, ""))
        scratch.fill(None, size)
        arguments = pointers(entry, places, scratch)
        function = getattr(loaded[job["object"]], entry["symbol"])
        pool = loaded[job["pool"]].tw_pool_run
        pool(ctypes.cast(function, ctypes.c_void_p), arguments, ctypes.c_int(job["threads"]))


def placed(
    job: dict[str, Any],
    data: dict[str, bytes],
    libc: ctypes.CDLL,
    side: str,
    guarded: Callable[[str], bool],
) -> dict[str, FaultPlace]:
    """The arrays of a job in memory, by name."""
    places = {}
    for array in job["arrays"]:
        name, size = array["name"], array["bytes"]
        places[name] = FaultPlace(libc, size, side, guarded(name))
        places[name].fill(data.get(name), size)
    return places


def pointers(entry: dict[str, Any], places: dict[str, FaultPlace], scratch: FaultPlace) -> Any:
    """The arguments of an entry."""
    numbers = [places[name].pointer for name in entry["arrays"]]
    numbers += [*entry["sizes"], scratch.pointer]
    return (ctypes.c_void_p * len(numbers))(*numbers)


def shared_by(
    job: dict[str, Any], data: dict[str, bytes], libc: ctypes.CDLL, loaded: dict[str, ctypes.CDLL]
) -> list[int]:
    """Two threads that write the same byte of what is scratch memory of one of them; none else."""
    places = placed(job, data, libc, "behind", lambda name: False)
    count = job["threads"]
    for entry in job["entries"]:
        if not entry["own"]:
            continue
        function = getattr(loaded[job["object"]], entry["symbol"])
        size = -(-entry["scratch"] // ALIGNMENT) * ALIGNMENT
        scratch = FaultPlace(libc, size, "behind", False)
        arguments = pointers(entry, places, scratch)
        written = []
        for thread in range(count):
            touched = 0
            for before in (0xFF, 0):
                ctypes.memset(scratch.pointer, before, size)
                function(arguments, ctypes.byref(ALONE), ctypes.c_int(thread), ctypes.c_int(count))
                own = ctypes.string_at(scratch.pointer + entry["shared"], size - entry["shared"])
                touched |= int.from_bytes(own.translate(changed_from(before)), "little")
            written.append(touched)
        for one in range(count):
            for other in range(one):
                if written[one] & written[other]:
                    return [other, one]
    return []


def changed_from(byte: int) -> bytes:
    """A table of bytes: 0 for this one, 1 for all others."""
    return bytes(int(value != byte) for value in range(256))


class TeamStruct(ctypes.Structure):
    """The threads of a region, as pool.c has them: here one that waits for nobody."""

    _fields_ = (("barrier", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)), ("state", VOID))


ALONE = TeamStruct(type(TeamStruct().barrier)(lambda state, thread: None), None)


if __name__ == "__main__":
    main()
