"""Run emitted CUDA C on the CPU: the source itself, unchanged, compiled as C++.

launch = Launch("matmul", (8, 8, 1), (256, 1, 1), ("A", "B", "C", "n"))
emulate(source, [launch], {"A": a, "B": b, "C": c, "n": 64})

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
from dataclasses import replace
from itertools import combinations

import numpy as np

from ....codegen.cuda.artifact import KernelLaunch
from ....tir.errors import known_names
from ...arrays import Array
from .build import Emulation, emulation
from .launch import FencedArrays, LaunchRun, pack_arguments
from .report import EmulationReport
from .source import MOST_SHARED, EmulationError, SourceKernel

Given = Mapping[str, Array | int | float]

_KINDS = {
    **{"P": "an array", "f": "a float", "d": "a double"},
    **{"b": "a signed char", "B": "an unsigned char", "h": "a short", "H": "an unsigned short"},
    **{"i": "an int", "I": "an unsigned int", "q": "a long long", "Q": "an unsigned long long"},
}
_MOST_THREADS, _MOST_STATIC = 1024, 48 << 10
_MOST_GRID = (2**31 - 1, 65535, 65535)
_MOST_BLOCK = (1024, 1024, 64)
_one_at_a_time = threading.Lock()  # the device is one set of variables


def emulate(
    source: str,
    launches: Sequence[KernelLaunch],
    given: Given,
    *,
    checked: bool = False,
    fresh: Collection[str] = (),
) -> EmulationReport:
    """Run launches one after the other on arrays, which are written in place.

    given: what the launches name: arrays, and numbers, each of which becomes what the kernel's
    parameter is.
    checked: every load and store is looked at: whether it lies in an array or in shared memory that
    was written, whether two threads race for it, what it costs a warp. Without that, only what
    leaves no way to go on is found, and what a launch has changed close beside an array or in one
    that it may only read. It ends at the first launch with a finding.
    fresh: arrays whose first content means nothing; where checked, none of it may be read.
    Raises: EmulationError; CompilerNotFound, CompileFailed; TargetError where nothing is emulated.
    """
    made = emulation(source, checked)
    for launch in launches:
        _check(launch, made, given)
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    _check_overlap(arrays)
    fenced = FencedArrays(arrays, fresh)
    reports: list[EmulationReport] = []
    with _one_at_a_time:
        for launch in launches:
            values = [fenced.value(given[name], name) for name in launch.arguments]
            arguments, _held = pack_arguments(made.types(launch.kernel), values)
            memory = fenced.memory(made, launch.kernel, launch.shared_bytes)
            run = LaunchRun(made, launch, memory)
            report = run.run(arguments)
            if report:  # what was seen by each access says more
                report = replace(report, findings=tuple(fenced.faults(launch.kernel)))
            reports.append(report)
            if not report:
                break
    fenced.copy_back()
    return EmulationReport.of_launches(reports)


def _check(launch: KernelLaunch, made: Emulation, given: Given) -> None:
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
    _check_arguments(launch, made.types(launch.kernel), given)


def _check_overlap(arrays: Mapping[str, Array]) -> None:
    for (one, first), (other, second) in combinations(arrays.items(), 2):
        if np.may_share_memory(first, second):
            raise EmulationError(
                f"emulate: '{one}' and '{other}' share memory; expected arrays that do not.",
                code="emulate-overlap",
            )


def _check_shape(launch: KernelLaunch, kernel: SourceKernel) -> None:
    grid, block = launch.grid, launch.block
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


def _check_shared(launch: KernelLaunch, kept: int) -> None:
    given = launch.shared_bytes
    if kept > _MOST_STATIC or given < 0 or kept + given > MOST_SHARED:
        raise EmulationError(
            f"emulate: '{launch.kernel}' has {kept} bytes of shared memory by itself and is given "
            f"{given}; expected at most {_MOST_STATIC}, and at most {MOST_SHARED} in all.",
            code="emulate-shared",
        )


def _check_arguments(launch: KernelLaunch, types: str, given: Given) -> None:
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
    for index, (letter, name) in enumerate(zip(types, launch.arguments, strict=True)):
        if name not in given:
            raise EmulationError(
                f"emulate: nothing is given for '{name}', which '{launch.kernel}' takes; there are "
                f"{known_names(name, given)}.",
                code="emulate-array",
            )
        if not _fits(letter, value := given[name]):
            what = "an array" if isinstance(value, np.ndarray) else value
            raise EmulationError(
                f"emulate: argument {index} of '{launch.kernel}', '{name}', is {what}; expected "
                f"{_KINDS[letter]}.",
                code="emulate-argument",
            )


def _fits(letter: str, value: Array | int | float) -> bool:
    """Whether a parameter can hold what is given for it."""
    if letter == "P" or isinstance(value, np.ndarray):
        return letter == "P" and isinstance(value, np.ndarray)
    try:
        struct.pack(f"<{letter}", value)
    except (struct.error, OverflowError):
        return False
    return True
