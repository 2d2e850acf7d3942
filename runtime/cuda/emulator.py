"""Run emitted CUDA C on the CPU: the source itself, unchanged, compiled as C++.

emulate(source, [Launch("matmul", (8, 8), 256, ("A", "B", "C"))], {"A": a, "B": b, "C": c})

Threads, blocks, shared memory, barriers, shuffles, atomics and our device functions have their
meaning on the CPU (emulation.h); arrays are NumPy's, copied between fences for the run and back
after it. What is not emulated does not compile.

What a device leaves open has one answer here: threads run in the order of their numbers, each until
it waits, blocks one after the other; shared memory holds NaN at first; a copy lands at the last
moment that it may. That another order gives the same is what checked mode looks for, by what orders
the accesses and not by trying. Two barriers on one line count as one. A loop without end does not
end.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...tir.errors import known_names
from ..arrays import Array
from .emulation_build import Emulation, emulation
from .emulation_launch import FencedArrays, LaunchRun, pack_arguments
from .emulation_report import EmulationReport, Index
from .emulation_source import MOST_SHARED, EmulationError, Kernel

Extent = int | tuple[int, ...]

_KINDS = {
    **{"P": "the name of an array", "f": "a float", "d": "a double"},
    **{"b": "a signed char", "B": "an unsigned char", "h": "a short", "H": "an unsigned short"},
    **{"i": "an int", "I": "an unsigned int", "q": "a long long", "Q": "an unsigned long long"},
}
_MOST_THREADS, _MOST_STATIC = 1024, 48 << 10
_MOST_GRID = (2**31 - 1, 65535, 65535)
_MOST_BLOCK = (1024, 1024, 64)
_one_at_a_time = threading.Lock()  # the device is one set of variables


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    grid, block: blocks and threads, along x, y, z. arguments: the name of an array, or a number,
    which becomes what the kernel's parameter is. shared_bytes: of the shared memory whose size the
    source leaves open.
    """

    kernel: str
    grid: Extent
    block: Extent
    arguments: tuple[str | int | float, ...]
    shared_bytes: int = 0

    @property
    def shape(self) -> tuple[Index, Index]:
        """Grid and block with three extents each; of more, none fits."""
        return _three(self.grid), _three(self.block)


def emulate(
    source: str,
    launches: Sequence[Launch],
    arrays: Mapping[str, Array],
    *,
    checked: bool = False,
    fresh: Collection[str] = (),
) -> EmulationReport:
    """Run launches one after the other on arrays, which are written in place.

    checked: every load and store is looked at: whether it lies in an array or in shared memory that
    was written, whether two threads race for it, what it costs a warp. Without that, only what
    leaves no way to go on is found. It ends at the first launch with a finding.
    fresh: arrays whose first content means nothing; where checked, none of it may be read.
    Raises: EmulationError; CompilerNotFound, CompileFailed; TargetError where nothing is emulated.
    """
    made = emulation(source, checked)
    for launch in launches:
        _check(launch, made, arrays)
    _check_overlap(arrays)
    fenced = FencedArrays(arrays, fresh)
    reports: list[EmulationReport] = []
    with _one_at_a_time:
        for launch in launches:
            values = [fenced.value(argument) for argument in launch.arguments]
            arguments, _held = pack_arguments(made.types(launch.kernel), values)
            memory = fenced.memory(made, launch.kernel, launch.shared_bytes)
            run = LaunchRun(made, launch.kernel, launch.shape, memory)
            reports.append(run.run(arguments))
            if not reports[-1]:
                break
    fenced.copy_back()
    return EmulationReport.of_launches(reports)


def _three(extent: Extent) -> Index:
    given = (extent,) if isinstance(extent, int) else extent
    x, y, z = (*given, 1, 1, 1)[:3] if len(given) <= 3 else (0, 0, 0)
    return x, y, z


def _check(launch: Launch, made: Emulation, arrays: Mapping[str, Array]) -> None:
    """Refuse a launch that the device would refuse. Raises: EmulationError."""
    kernels = made.source.kernels
    if launch.kernel not in kernels:
        raise EmulationError(
            f"emulate: the source has no kernel '{launch.kernel}'; it has "
            f"{known_names(launch.kernel, kernels)}.",
            code="emulate-kernel",
        )
    _check_shape(launch, kernels[launch.kernel])
    _check_shared(launch, sum(array.bytes for array in made.shared(launch.kernel)))
    _check_arguments(launch, made.types(launch.kernel), arrays)


def _check_overlap(arrays: Mapping[str, Array]) -> None:
    for (one, first), (other, second) in combinations(arrays.items(), 2):
        if np.may_share_memory(first, second):
            raise EmulationError(
                f"emulate: '{one}' and '{other}' share memory; expected arrays that do not.",
                code="emulate-overlap",
            )


def _check_shape(launch: Launch, kernel: Kernel) -> None:
    grid, block = launch.shape
    most = kernel.most_threads or _MOST_THREADS
    fits = all(0 < n <= top for n, top in zip(grid, _MOST_GRID, strict=True))
    fits = fits and all(0 < n <= top for n, top in zip(block, _MOST_BLOCK, strict=True))
    if not fits or int(np.prod(block)) > most:
        raise EmulationError(
            f"emulate: '{launch.kernel}' cannot be launched with grid {grid} and block {block}; "
            f"expected a grid up to {_MOST_GRID}, and a block up to {_MOST_BLOCK} with at most "
            f"{most} threads.",
            code="emulate-shape",
        )


def _check_shared(launch: Launch, kept: int) -> None:
    given = launch.shared_bytes
    if kept > _MOST_STATIC or given < 0 or kept + given > MOST_SHARED:
        raise EmulationError(
            f"emulate: '{launch.kernel}' has {kept} bytes of shared memory by itself and is given "
            f"{given}; expected at most {_MOST_STATIC}, and at most {MOST_SHARED} in all.",
            code="emulate-shared",
        )


def _check_arguments(launch: Launch, types: str, arrays: Mapping[str, Array]) -> None:
    if "?" in types:
        raise EmulationError(
            f"emulate: parameter {types.index('?')} of '{launch.kernel}' is neither a pointer nor "
            "a number.",
            code="emulate-parameter",
        )
    if len(types) != len(launch.arguments):
        raise EmulationError(
            f"emulate: '{launch.kernel}' takes {len(types)} arguments; got "
            f"{len(launch.arguments)}.",
            code="emulate-arguments",
        )
    for index, (letter, argument) in enumerate(zip(types, launch.arguments, strict=True)):
        if isinstance(argument, str) and argument not in arrays:
            raise EmulationError(
                f"emulate: there is no array '{argument}' for '{launch.kernel}'; there are "
                f"{known_names(argument, arrays)}.",
                code="emulate-array",
            )
        if not _fits(letter, argument):
            raise EmulationError(
                f"emulate: argument {index} of '{launch.kernel}' is {argument!r}; expected "
                f"{_KINDS[letter]}.",
                code="emulate-argument",
            )


def _fits(letter: str, argument: str | int | float) -> bool:
    """Whether a parameter can hold what is given for it."""
    if letter == "P" or isinstance(argument, str):
        return letter == "P" and isinstance(argument, str)
    try:
        struct.pack(f"<{letter}", argument)
    except (struct.error, OverflowError):
        return False
    return True
