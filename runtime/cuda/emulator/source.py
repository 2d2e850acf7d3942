"""CUDA C as the emulation compiles it: the source itself, with our text before and after it.

What the source says is read where C++ cannot say it: the names of its kernels, and which lines
declare shared memory, for `__shared__` means another thing after `extern` than without.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ....codegen.cuda.device_functions import emulated_definitions
from ....tir.errors import TilewrightError
from ...toolchain.compile import FIRST_LINE

FENCE = 1 << 16  # bytes; the arrays of shared memory begin at multiples of it
MOST_SHARED = 227 << 10  # bytes that a block can have, on any architecture that we know

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"__global__\s+(?:void\s+|__launch_bounds__\s*\(\s*(?P<threads>\d+)[^()]*\)\s*)*"
    r"(?P<name>\w+)\s*\("
)
_TYPE = r"(?P<type>(?:__align__\s*\(\s*\d+\s*\)\s*)?[\w\s]+?)"
_DYNAMIC = re.compile(rf"\bextern\s+__shared__\s+{_TYPE}\b(?P<name>\w+)\s*\[\s*\]\s*;")
_STATIC = re.compile(rf"__shared__\s+{_TYPE}\b(?P<name>\w+)\s*[\[;]")
_STORAGE = f'static __attribute__((section(".bss.em_shared"), aligned({FENCE})))'
_ITEMS = {"char": 1, "short": 2, "half": 2, "float": 4, "int": 4, "double": 8, "long": 8}


class EmulationError(TilewrightError, ValueError):
    """A source cannot be emulated, or a launch asks for what the kernel or the device lacks."""


@dataclass(frozen=True, slots=True)
class SourceKernel:
    """A kernel of a source. most_threads: what its launch bounds say, None where it has none."""

    name: str
    most_threads: int | None


@dataclass(frozen=True, slots=True)
class EmulatedSource:
    """A source and what is read from it. items: bytes of one element of shared arrays, by name.
    dynamic: the types of those whose size comes with the launch, by name.
    """

    text: str
    kernels: dict[str, SourceKernel]
    items: dict[str, int]
    dynamic: dict[str, str]
    shared_lines: dict[int, bool]

    def unit(self, *, checked: bool) -> str:
        """The translation unit; lines of the source keep their numbers."""
        before = ["#define TW_CHECKED"] if checked else []
        before.append(_ours("emulation.h"))
        before.append(emulated_definitions(self.text))
        before += [
            f"#define em_shared_{line}{'' if dynamic else f' {_STORAGE}'}"
            for line, dynamic in self.shared_lines.items()
        ]
        after = [
            f"extern {kind} {name}[];\n"
            f"__align__({FENCE}) {kind} {name}[{MOST_SHARED} / sizeof({name}[0])];"
            for name, kind in self.dynamic.items()
        ]
        after += [f"TW_KERNEL({name})" for name in self.kernels]
        return "\n".join(before) + f"\n{FIRST_LINE}{self.text}\n" + "\n".join(after) + "\n"


def read_source(text: str) -> EmulatedSource:
    """Read a source. Raises: EmulationError."""
    plain = _COMMENT.sub(_blank, text)
    threads = {match["name"]: match["threads"] for match in _KERNEL.finditer(plain)}
    kernels = {name: SourceKernel(name, int(n) if n else None) for name, n in threads.items()}
    dynamic = {match["name"]: match["type"].strip() for match in _DYNAMIC.finditer(plain)}
    lines = {
        number: _is_dynamic(line, number)
        for number, line in enumerate(plain.splitlines(), 1)
        if "__shared__" in line
    }
    items = {match["name"]: _item_bytes(match["type"]) for match in _STATIC.finditer(plain)}
    return EmulatedSource(text, kernels, items, dynamic, lines)


def device_text() -> str:
    """The translation unit of the emulated device, the same for every source."""
    parts = ("emulation", "emulation_warp", "emulation_checks", "emulation_sums")
    return "\n".join(_ours(f"{part}.cpp") for part in parts)


def _ours(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _is_dynamic(line: str, number: int) -> bool:
    """Whether what a line declares as shared has no size. Raises: EmulationError."""
    dynamic = len(re.findall(r"\bextern\s+__shared__", line))
    if dynamic not in (0, line.count("__shared__")):
        raise EmulationError(
            f"emulate: line {number} declares shared memory of a size and without one; expected "
            "two lines.",
            code="emulate-shared-line",
        )
    return dynamic > 0


def _blank(comment: re.Match[str]) -> str:
    """As many lines as the comment has, and nothing on them."""
    return " " + "\n" * comment[0].count("\n")


def _item_bytes(kind: str) -> int:
    """Bytes of one element of a type, of one component where it is a vector."""
    base = re.sub(r"\d+$", "", kind.split()[-1].removeprefix("u"))
    return _ITEMS.get(base, 4)
