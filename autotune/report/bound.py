"""The time that this machine needs at least for what a function must compute and move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ...runtime.machine.host import host
from ...runtime.measure.limits import Limits, limits
from ...tir.func import PrimFunc
from ...tir.work.work import bytes_moved, operations
from ..log.record import Trial

_MEMORY_BYTES = 1 << 28  # which no cache holds


@dataclass(frozen=True, slots=True)
class Bound:
    """What a function must do: floating-point operations, bytes of constants that it reads, and
    other bytes that it reads and writes.
    """

    operations: int
    constant_bytes: int
    other_bytes: int

    @staticmethod
    def of(func: PrimFunc) -> Bound:
        """The bound of a function."""
        moved = bytes_moved(func)
        fixed = min(moved, sum(b.type.bytes * b.size for b in func.constants))
        return Bound(operations(func), fixed, moved - fixed)

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.operations / max(1, self.constant_bytes + self.other_bytes)

    def share(self, trial: Trial) -> float | None:
        """The least time over the trial's: 1 is the best that the machine can do.

        None where another machine ran it, whose limits are not known here.
        """
        if trial.seconds is None or trial.conditions.cpu != host().model:
            return None
        threads = trial.conditions.target.get("threads")
        count = threads if isinstance(threads, int) else 1
        computing = self.operations / (peak_gflops([trial], count) * 1e9)
        return max(computing, self._moving(trial, count)) / trial.seconds

    def _moving(self, trial: Trial, threads: int) -> float:
        """Seconds to move the bytes: constants from where copies in turn leave them, all others
        from the cache that holds them.
        """
        machine = _machine()
        held = max(self.constant_bytes, trial.method.rotated)
        fixed = self.constant_bytes / machine.gb_per_s(threads, held)
        others = self.other_bytes / machine.gb_per_s(threads, self.other_bytes)
        return (fixed + others) / 1e9


def peak_gflops(trials: Iterable[Trial], threads: int) -> float:
    """Multiply-adds of this machine: as the probe beside one of the trials found, or as was found
    before, whichever is more: other work can only slow a probe.
    """
    probed = [trial.method.calibration or 0.0 for trial in trials]
    return max(_machine().gflops(threads), *probed)


def memory_gb_per_s(threads: int) -> dict[str, float]:
    """What this machine reads from its first caches and from memory."""
    sizes = {"first cache": threads * host().l1_bytes // 2, "memory": _MEMORY_BYTES}
    return {level: _machine().gb_per_s(threads, size) for level, size in sizes.items()}


@cache
def _machine() -> Limits:
    """The limits of this machine, asked for once."""
    return limits()
