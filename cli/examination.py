"""What `doctor` looks at, as one value."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from ..runtime.cache import user_cache
from ..runtime.compile import CompileFailed
from ..runtime.compilers import CompilerNotFound, find_compiler
from ..runtime.host import HostError, allowed_cpus, default_threads, host
from ..runtime.limits import Limits, limits
from ..runtime.pool import pool_object
from ..runtime.report import bytes_text
from ..runtime.timing import seconds_text
from ..runtime.version import tool_version
from .settings import Setting, settings

GPU = "not supported yet: kernels run on the CPU"


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured limits of the machine, and lines that say them."""

    limits: Limits

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per thread count and kind."""
        found = self.limits
        fma = [f"{x.gflops:.1f} GFLOP/s on {x.threads} thread(s)" for x in found.fma]
        counts = sorted({x.threads for x in found.reads})
        reads = [
            f"reads on {count} thread(s): "
            + ", ".join(
                f"{x.gb_per_s:.0f} GB/s of {bytes_text(x.bytes)}"
                for x in found.reads
                if x.threads == count
            )
            for count in counts
        ]
        region = (
            f"an empty region takes {seconds_text(found.region_seconds)}, "
            f"a barrier {seconds_text(found.barrier_seconds)}"
        )
        return (f"fp32 multiply-adds ({found.isa}): {', '.join(fma)}", *reads, region)


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found. Texts are for people; `to_json` has the same."""

    version: str
    folder: str
    python: str
    platform: str
    packages: tuple[tuple[str, str], ...]
    compiler: str
    compiler_works: bool
    cpu: tuple[str, ...]
    threads: tuple[str, ...]
    gpu: str
    cache: tuple[str, ...]
    settings: tuple[Setting, ...]
    limits: Measured | None

    def to_json(self) -> dict[str, object]:
        """Every field as plain JSON values."""
        return {**asdict(self), "packages": dict(self.packages)}


def examine(*, measure: bool = False) -> Examination:
    """Look at everything; `measure` also times what the machine reaches at most."""
    compiler, works = _compiler()
    return Examination(
        version=tool_version(),
        folder=str(Path(__file__).resolve().parents[1]),
        python=f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}",
        platform=platform.platform(),
        packages=_packages(),
        compiler=compiler,
        compiler_works=works,
        cpu=_cpu(),
        threads=_threads(),
        gpu=GPU,
        cache=_cache(),
        settings=settings(),
        limits=Measured(limits(refresh=True)) if measure and works else None,
    )


def _packages() -> tuple[tuple[str, str], ...]:
    """What tilewright needs to run, with the versions that are installed."""
    try:
        needed = requires("tilewright") or []
    except PackageNotFoundError:
        return (("tilewright", "is not installed: run pip install -e . in the clone"),)
    names = [text.split(">=")[0].strip() for text in needed if "extra ==" not in text]
    return tuple((name, _version(name)) for name in sorted(names))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _compiler() -> tuple[str, bool]:
    """The compiler, or how to get one; whether it made the thread pool."""
    try:
        compiler = find_compiler()
        pool_object()
    except (CompilerNotFound, CompileFailed) as error:
        return str(error), False
    return f"{compiler.version} ({' '.join(compiler.command)})", True


def _cpu() -> tuple[str, ...]:
    here = host()
    sizes = [
        f"{name} {bytes_text(size)}"
        for name, size in (("L1", here.l1_bytes), ("L2", here.l2_bytes), ("L3", here.l3_bytes))
        if size
    ]
    return (
        here.model or "a processor whose model the system does not tell",
        f"instruction sets: {', '.join(here.isas)}; kernels use {here.isa}",
        f"caches: {', '.join(sizes) or 'not told'}",
        f"clock: {f'{here.clock_ghz:g} GHz' if here.clock_ghz else 'not told'}",
    )


def _threads() -> tuple[str, ...]:
    try:
        used = str(default_threads())
    except HostError as error:
        used = error.message
    quota = host().quota
    limit = "no limit on CPU time" if quota is None else f"CPU time of {quota:g} CPUs"
    return (f"{used} by default", f"{allowed_cpus()} CPUs allowed of {os.cpu_count()}, {limit}")


def _cache() -> tuple[str, ...]:
    info = user_cache().info()
    if info.folder is None:
        return ("none: everything is compiled anew in each process",)
    held = f"{info.entries} entries, {bytes_text(info.bytes)} of at most {bytes_text(info.max_bytes)}"
    return (str(info.folder), held)
