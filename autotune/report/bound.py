"""A lower bound of the time of a function on the machine that ran a trial: from its operations and
bytes on this machine's CPU, from the nest of the trial and the rates of the board on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import geometric_mean

from ...runtime.artifact_json import target_from_json
from ...runtime.machine.host import host
from ...runtime.measure.limits import Limits, limits
from ...schedule.cost.grid import nest_kernels
from ...schedule.schedule import Schedule
from ...tir.analysis.specialise import specialise
from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.instructions.warp_products import WARP_PRODUCTS
from ...tir.json_reader import Reader
from ...tir.target.target import GpuTarget
from ...tir.work.work import bytes_moved, operations
from ..log.record import Trial
from ..log.setting import Setting
from ..sizes import SizeValues

_MEMORY_BYTES = 1 << 28  # more than any cache


@dataclass(frozen=True, slots=True)
class Limit:
    """The seconds that a machine needs at least, and what for: "compute", "memory" or, on a GPU,
    "tensor core".
    """

    seconds: float
    name: str


@dataclass(frozen=True, slots=True)
class MachineBound:
    """The work of a function: floating-point operations, bytes of constants that it reads, and
    other bytes that it reads and writes; and the function, which a trial on a GPU schedules.
    """

    func: PrimFunc = field(compare=False, repr=False)
    operations: int
    constant_bytes: int
    other_bytes: int

    @staticmethod
    def of(func: PrimFunc) -> MachineBound:
        """The bound of a function."""
        moved = bytes_moved(func)
        fixed = min(moved, sum(b.type.bytes * b.size for b in func.constants))
        return MachineBound(func, operations(func), fixed, moved - fixed)

    def at(self, values: SizeValues) -> MachineBound:
        """The bound at one choice of the sizes that calls decide; itself where there are none."""
        if not values:
            return self
        return MachineBound.of(
            specialise(self.func, dict(zip(self.func.dims, values, strict=True)))
        )

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / max(1, self.constant_bytes + self.other_bytes)

    def limit(self, trial: Trial) -> Limit | None:
        """What the machine of a trial needs at least. None for another CPU than this one, or a GPU
        of which we have no rates. Of a trial at several sizes the geometric mean.
        """
        if trial.sizes:
            plain = replace(trial, sizes=())
            each = [self.at(values).limit(plain) for values in trial.timed_at]
            known = [one for one in each if one is not None and one.seconds > 0.0]
            return (
                Limit(geometric_mean(x.seconds for x in known), known[-1].name) if known else None
            )
        if Setting.of(trial.conditions).is_of_gpu:
            return self._gpu_limit(trial)
        if trial.conditions.cpu != host().model:
            return None
        threads = trial.conditions.target.get("threads")
        count = threads if isinstance(threads, int) else 1
        computing = self.operations / (peak_gflops([trial], count) * 1e9)
        moving = self._moving(trial, count)
        return Limit(computing, "compute") if computing >= moving else Limit(moving, "memory")

    def _gpu_limit(self, trial: Trial) -> Limit | None:
        """The limits of the kernels of a trial, one after the other; the name is that of the
        longest. What tensor cores compute is in the nest, and not in the function.
        """
        target = _board_of(trial)
        if target is None:
            return None
        try:
            made = Schedule.replay(self.func, trial.trace, target)
        except TilewrightError:  # the trace of another version
            return None
        kernels = [kernel.limits(target) for kernel in nest_kernels(made.func)]
        if not kernels:
            return None
        longest = max(kernels, key=lambda one: one.seconds)
        return Limit(sum(one.seconds for one in kernels), longest.name)

    def _moving(self, trial: Trial, threads: int) -> float:
        """Seconds to move the bytes: constants from the level that holds all rotated copies, other
        bytes from the cache that holds them.
        """
        machine = _machine()
        held = max(self.constant_bytes, trial.method.rotated)
        fixed = self.constant_bytes / machine.gb_per_s(threads, held)
        others = self.other_bytes / machine.gb_per_s(threads, self.other_bytes)
        return (fixed + others) / 1e9


@dataclass(frozen=True, slots=True)
class Roofs:
    """What bounds every function on a machine, by name: peak rates in GFLOP/s, and bandwidths in
    GB/s.
    """

    peaks: Mapping[str, float]
    bandwidths: Mapping[str, float]


def roofs(trials: Sequence[Trial]) -> Roofs:
    """The bounds of the machine of trials of one setting; of another CPU the largest result of its
    probes, of a GPU of which we have no rates none.
    """
    setting = Setting.of(trials[0].conditions)
    if setting.is_of_gpu:
        return _gpu_roofs(trials)
    if setting.cpu != host().model:
        return Roofs({"": max(trial.method.calibration or 0.0 for trial in trials)}, {})
    return Roofs({"": peak_gflops(trials, setting.threads)}, memory_gb_per_s(setting.threads))


def _gpu_roofs(trials: Sequence[Trial]) -> Roofs:
    """Those of the board, with the tensor cores for the instructions that the schedules use."""
    target = _board_of(trials[0])
    if target is None:
        return Roofs({}, {})
    steps = [step for trial in trials for step in trial.trace.steps]
    used = {dict(step.arguments).get("intrinsic") for step in steps}
    units = [unit for name, unit in WARP_PRODUCTS.items() if name in used and unit.element.is_float]
    tensor = {f"tensor core {unit.element}": target.warp_gflops(unit.element) for unit in units}
    return Roofs({"": target.gflops, **tensor}, {"memory": target.gb_per_s})


def _board_of(trial: Trial) -> GpuTarget | None:
    """The target of a trial on a GPU; None where its rates are those of another board."""
    try:
        target = GpuTarget.of(target_from_json(Reader(dict(trial.conditions.target), "target")))
    except TilewrightError:  # of another version, which knows more architectures
        return None
    known = target.limits
    return target if known is not None and known.board in trial.conditions.cpu else None


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
