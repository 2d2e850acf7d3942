"""The fake driver library: how it is made, and how tests in its process steer it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from pathlib import Path

from .shared_library import shared_library

SOURCE = Path(__file__).with_name("fake_libcuda.c")
_STUB = 'int {0}(void) {{ note("{0} is not faked"); return UNSUPPORTED; }}\n'


def fake_library(folder: Path, extensions: Iterable[Path]) -> Path:
    """Compile libcuda.so.1 into a folder; what the extensions name beyond it is refused by it."""
    text = SOURCE.read_text(encoding="utf-8")
    named = {
        name.decode()
        for path in extensions
        for name in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", path.read_bytes())
    }
    have = set(re.findall(r"^int (cu\w+)\(", text, re.MULTILINE))
    stubs = "".join(_STUB.format(name) for name in sorted(named - have))
    return shared_library(text + stubs, folder / "libcuda.so.1", "-pthread", "-ldl")


class FakeDriver:
    """What the library in this process did, and what it is to do."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._library.fake_log.restype = ctypes.c_char_p

    def calls(self) -> list[str]:
        """Every call since the last time, but those that make a context current."""
        lines = self._library.fake_log().decode().splitlines()
        self._library.fake_forget()
        return [line for line in lines if not line.startswith("cuCtxP")]

    def pushes_and_pops(self) -> tuple[int, int]:
        """How often a context was made current and not any more, since the last time."""
        names = self._library.fake_log().decode().split()
        self._library.fake_forget()
        return names.count("cuCtxPushCurrent"), names.count("cuCtxPopCurrent")

    def fail(self, function: str, status: int, times: int = 1) -> None:
        """Let the next calls of a function give a status; from 700 on, every call after it too."""
        self._library.fake_fail(function.encode(), status, times)

    def alive(self, kind: str) -> int:
        """How many are not given back: "d"evice or "h"ost memory, "m"odules, "s"treams, "e"vents,
        "g"raphs recorded and those ready to e"x"ecute.
        """
        return int(self._library.fake_alive(ord(kind)))

    def depth(self) -> int:
        """How many contexts are current to this thread, one above the other."""
        return int(self._library.fake_depth())
