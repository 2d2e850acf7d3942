"""The process that runs kernels between guard pages: what touches one ends this process, and no
other. It needs no package, so it starts in some 30 ms: `python -I -S guarded_process.py`.

It reads jobs from standard input: a line of JSON (`guarded.py` writes it), then the bytes of the
arrays that are given. For each of two runs it prints where the guard is, and "done" after them. In
the first, arrays end where a page begins that may not be touched; in the second they begin where
one ends.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import resource
import sys
from typing import Any, BinaryIO

PAGE = mmap.PAGESIZE
ROOM = 16  # pages on either side of an array that has no guard
ALIGNMENT = 64  # bytes: of scratch memory


class Place:
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
    places = {}
    for array in job["arrays"]:
        name, size = array["name"], array["bytes"]
        places[name] = Place(libc, size, side, only in (None, name))
        places[name].fill(data.get(name), size)
    for entry in job["entries"]:
        size = -(-entry["scratch"] // ALIGNMENT) * ALIGNMENT
        scratch = Place(libc, size, side, only in (None, ""))
        scratch.fill(None, size)
        numbers = [places[name].pointer for name in entry["arrays"]]
        numbers += [*entry["sizes"], scratch.pointer]
        arguments = (ctypes.c_void_p * len(numbers))(*numbers)
        function = getattr(loaded[job["object"]], entry["symbol"])
        pool = loaded[job["pool"]].tw_pool_run
        pool(ctypes.cast(function, ctypes.c_void_p), arguments, ctypes.c_int(job["threads"]))


if __name__ == "__main__":
    main()
