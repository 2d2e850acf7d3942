"""What this machine's CPU allows the launches of a program at best."""

from __future__ import annotations

from ...tir.program.program import Program
from ...tir.work.work import bytes_moved, operations
from .limits import limits


def launch_limits(program: Program, threads: int) -> tuple[float, ...]:
    """For each launch, in order, the longer of two times in seconds: that of its operations at the
    peak of multiply-adds, that of its bytes from the cache or memory that holds them.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    machine = limits()
    seconds: dict[str, float] = {}
    for func in program.functions:
        moved = bytes_moved(func)
        computing = operations(func) / machine.gflops(threads)
        moving = moved / machine.gb_per_s(threads, moved)
        seconds[func.name] = max(computing, moving) / 1e9
    return tuple(seconds[launch.function] for launch in program.launches)
