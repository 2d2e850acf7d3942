"""A lower bound of the time of a function on this machine, from its operations and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ...runtime.machine.host import host
from ...runtime.measure.limits import Limits, limits
from ...tir.func import PrimFunc
from ...tir.work.work import bytes_moved, operations
from ..log.record import Trial

_MEMORY_BYTES = 1 << 28  # more than any cache


@dataclass(frozen=True, slots=True)
class MachineBound:
    """The work of a function: floating-point operations, bytes of constants that it reads, and
    other bytes that it reads and writes.
    """

    operations: int
    constant_bytes: int
    other_bytes: int

    @staticmethod
    def of(func: PrimFunc) -> MachineBound:
        """The bound of a function."""
        moved = bytes_moved(func)
        fixed = min(moved, sum(b.type.bytes * b.size for b in func.constants))
        return MachineBound(operations(func), fixed, moved - fixed)

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / max(1, self.constant_bytes + self.other_bytes)

    def share(self, trial: Trial) -> float | None:
        """The bound over the time of a trial: 1 is the best that the machine can do.

        None for a trial of another machine, whose limits are unknown here.
        """
        if trial.seconds is None or trial.conditions.cpu != host().model:
            return None
        threads = trial.conditions.target.get("threads")
        count = threads if isinstance(threads, int) else 1
        computing = self.operations / (peak_gflops([trial], count) * 1e9)
        return max(computing, self._moving(trial, count)) / trial.seconds

    def _moving(self, trial: Trial, threads: int) -> float:
        """Seconds to move the bytes: constants from the level that holds all rotated copies, other
        bytes from the cache that holds them.
        """
        machine = _machine()
        held = max(self.constant_bytes, trial.method.rotated)
        fixed = self.constant_bytes / machine.gb_per_s(threads, held)
        others = self.other_bytes / machine.gb_per_s(threads, self.other_bytes)
        return (fixed + others) / 1e9


def peak_gflops(trials: Iterable[Trial], threads: int) -> float:
    """The peak rate of multiply-adds of this machine: the largest result of a probe, those next to
    the trials included, since other work can only slow a probe down.
    """
    probed = [trial.method.calibration or 0.0 for trial in trials]
    return max(_machine().gflops(threads), *probed)


def memory_gb_per_s(threads: int) -> dict[str, float]:
    """What this machine reads from its first caches and from memory."""
    sizes = {"first cache": threads * host().l1_bytes // 2, "memory": _MEMORY_BYTES}
    return {level: _machine().gb_per_s(threads, size) for level, size in sizes.items()}


@cache
def _machine() -> Limits:
    """The limits of this machine, measured once."""
    return limits()
