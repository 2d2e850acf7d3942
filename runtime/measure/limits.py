"""What this machine can do at most, measured: multiply-adds, bytes read, regions a second.

The probes (probes.c, dot_probe.py) go through the same compiler flags and the same thread pool as
kernels, so a kernel's share of a limit compares like with like; `fma_peak` gives the probe itself,
to be timed in the same rounds as a kernel, because a machine's clock drifts. `limits` keeps its
figures in the cache, per machine. Plans never read them (see Target).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ...tir.errors import TargetError
from ...tir.instructions.tensor_intrinsics import TENSOR_INTRINSICS
from ...tir.target.target import CpuTarget, Target
from ..arrays import Array, address, empty_aligned
from ..cpu.pool import pool_run
from ..machine.host import allowed_cpus, default_threads, host, host_target
from ..machine.timing import compare
from ..toolchain.cache import cache_key, user_cache
from ..toolchain.compile import compile_shared
from ..toolchain.library import Library, ffi
from .dot_probe import dot_probe

_FORMAT = "2"
_FMA_ITERATIONS = 300_000  # about a millisecond
_READ_BYTES = 1 << 27  # per call of a read probe, about; a few milliseconds
_STRIDE = 128  # bytes between the results of two threads
_ROUNDS = 15
_SECONDS = 0.25  # of one probe, after which five rounds will do
_REGIONS = 2_000


@dataclass(frozen=True, slots=True)
class FmaLimit:
    """fp32 GFLOP/s at a number of threads; a multiply-add counts as two."""

    threads: int
    gflops: float


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """GB/s that `threads` threads read together from `bytes` bytes in all, read again and again."""

    threads: int
    bytes: int
    gb_per_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The measured limits of a machine for one instruction set.

    region_seconds: an empty region at `fma[-1].threads` threads, while the pool is awake;
    barrier_seconds: a barrier.
    """

    isa: str
    fma: tuple[FmaLimit, ...]
    reads: tuple[ReadLimit, ...]
    region_seconds: float
    barrier_seconds: float

    def gflops(self, threads: int) -> float:
        """Peak fp32 GFLOP/s: measured, or in proportion to the nearest measured thread count."""
        nearest = min(self.fma, key=lambda limit: abs(limit.threads - threads))
        return nearest.gflops * threads / nearest.threads

    def gb_per_s(self, threads: int, size: int) -> float:
        """Read bandwidth for `size` bytes in all: of the next measured size."""
        count = min({limit.threads for limit in self.reads}, key=lambda held: abs(held - threads))
        measured = sorted(
            (limit.bytes, limit.gb_per_s) for limit in self.reads if limit.threads == count
        )
        return next((speed for held, speed in measured if held >= size), measured[-1][1])


@dataclass(frozen=True, slots=True)
class Probe:
    """A call that works at a limit: `work` operations or bytes per call, on `threads` threads."""

    call: Callable[[], int]
    work: float
    threads: int

    def __call__(self) -> int:
        """Run once; the number of threads that took part (fewer where the pool was busy)."""
        return self.call()

    def rate(self, seconds: float) -> float:
        """G operations or GB per second where a call took `seconds`."""
        return self.work / seconds / 1e9


def fma_peak(threads: int = 1, target: Target | None = None) -> Probe:
    """A probe of the fp32 multiply-add peak, about a millisecond per call; `rate` gives GFLOP/s.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    library = _probes(target or host_target())
    flops = int(library.entry("tw_probe_flops", "tw_count")())
    result = empty_aligned((threads * _STRIDE,), np.dtype(np.uint8))
    run = _Region(library, "tw_probe_fma", threads, (_number(_FMA_ITERATIONS), result))
    return Probe(run, float(flops * _FMA_ITERATIONS * threads), threads)


def dot_peak(unit: str, threads: int = 1, target: Target | None = None) -> Probe:
    """A probe of the peak of a tensor intrinsic beside that of multiply-adds; `rate` gives G
    operations per second, a product and a sum being two.

    Raises: TargetError where the target lacks the instruction; CompilerNotFound, CompileFailed,
    LibraryError.
    """
    machine = target or host_target()
    intrinsic = TENSOR_INTRINSICS[unit]
    if not intrinsic.is_on(machine):
        raise TargetError(
            f"dot_peak: target '{machine}' lacks '{unit}'; expected {intrinsic.needs}.",
            code="probe-target",
        )
    library = _probes(machine)
    work = int(library.entry("tw_probe_flops", "tw_count")()) * intrinsic.points
    result = empty_aligned((threads * _STRIDE,), np.dtype(np.uint8))
    run = _Region(library, f"tw_probe_{unit}", threads, (_number(_FMA_ITERATIONS), result))
    return Probe(run, float(work * _FMA_ITERATIONS * threads), threads)


def read_peak(threads: int, size: int, target: Target | None = None) -> Probe:
    """A probe that reads `size` bytes in all, each thread its part, again and again; `rate` gives
    GB/s.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    library = _probes(target or host_target())
    part = max(512, size // threads // 512 * 512)
    passes = max(1, _READ_BYTES // (part * threads))
    memory = empty_aligned((part * threads,), np.dtype(np.uint8))
    memory[...] = np.uint8(1)
    result = empty_aligned((threads * 2 * _STRIDE,), np.dtype(np.uint8))
    arguments = (_number(passes), memory, _number(part), result)
    run = _Region(library, "tw_probe_read", threads, arguments)
    return Probe(run, float(part * threads * passes), threads)


def limits(*, refresh: bool = False) -> Limits:
    """The limits of this machine at one thread and at `default_threads()`.

    Measured at the first call, which takes about a second, then kept.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    here, store = host(), user_cache()
    threads = tuple(sorted({1, default_threads()}))
    key = cache_key(_FORMAT, repr(here), str(threads), str(allowed_cpus()))
    kept = None if refresh else store.get("limits", key)
    if kept is not None:
        return _from_json(kept)
    measured = _measure(host_target(), threads)
    store.put("limits", key, json.dumps(asdict(measured)).encode())
    return measured


def _measure(target: CpuTarget, threads: tuple[int, ...]) -> Limits:
    sizes = (target.l1_bytes // 2, target.l2_bytes // 2, target.l3_bytes // 2, target.l3_bytes * 4)
    reads = [
        ReadLimit(count, size, _rate(read_peak(count, size, target)))
        for count in threads
        # the first two levels are per core
        for size in (sizes[0] * count, sizes[1] * count, *sizes[2:])
    ]
    return Limits(
        isa=target.isa,
        fma=tuple(FmaLimit(count, _rate(fma_peak(count, target))) for count in threads),
        reads=tuple(reads),
        region_seconds=_fastest(region_probe(threads[-1], target)) / _REGIONS,
        barrier_seconds=_fastest(barrier_probe(threads[-1], target)) / _REGIONS,
    )


def region_probe(threads: int, target: Target | None = None) -> Probe:
    """A probe that opens and closes 2,000 empty regions per call; `rate` gives G regions per
    second.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    run = np.array([int(ffi.cast("uintptr_t", pool_run()))], np.uintp)
    arguments = (_number(_REGIONS), run, _number(threads))
    library = _probes(target or host_target())
    return Probe(_Region(library, "tw_probe_regions", 1, arguments), float(_REGIONS), threads)


def barrier_probe(threads: int, target: Target | None = None) -> Probe:
    """A probe of one region that passes 2,000 barriers per call; `rate` gives G barriers per
    second.

    Raises: CompilerNotFound, CompileFailed, LibraryError.
    """
    library = _probes(target or host_target())
    run = _Region(library, "tw_probe_barriers", threads, (_number(_REGIONS),))
    return Probe(run, float(_REGIONS), threads)


class _Region:
    """A region of probe code on fixed arrays, ready to run; keeps what it points to."""

    def __init__(
        self, library: Library, symbol: str, threads: int, arrays: tuple[Array, ...]
    ) -> None:
        self._keep = (library, arrays)
        self._entry = library.entry(symbol)
        self._threads = threads
        self._arguments = ffi.new("void *[]", [ffi.cast("void *", address(a)) for a in arrays])
        self._run = pool_run()

    def __call__(self) -> int:
        return int(self._run(self._entry, self._arguments, self._threads))


@cache
def _probes(target: Target) -> Library:
    source = Path(__file__).with_name("probes.c").read_text(encoding="utf-8")
    units = (unit for unit in TENSOR_INTRINSICS.values() if unit.is_on(target))
    source += "".join(dot_probe(unit, target) for unit in units)
    return Library(compile_shared(source, target, name="probes"), name="probes", pinned=True)


def _number(value: int) -> Array:
    """A C `long` in memory."""
    return np.array([value], np.int_)


def _rate(probe: Probe) -> float:
    return round(probe.rate(_fastest(probe)), 3)


def _fastest(probe: Probe) -> float:
    """Seconds of the best round: a limit is what the machine can do while nothing disturbs it."""
    return min(compare({"probe": probe}, _ROUNDS, seconds=_SECONDS)["probe"].samples)


def _from_json(text: bytes) -> Limits:
    fields = json.loads(text)
    fma = tuple(FmaLimit(**limit) for limit in fields.pop("fma"))
    reads = tuple(ReadLimit(**limit) for limit in fields.pop("reads"))
    return Limits(fma=fma, reads=reads, **fields)
