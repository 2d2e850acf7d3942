"""What `doctor` looks at, as one value."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from ..runtime.cpu.pool import pool_object
from ..runtime.cuda.device.availability import Unavailable, availability
from ..runtime.cuda.driver.driver import DeviceProperties
from ..runtime.cuda.toolchain.nvrtc import NvrtcNotFound, find_nvrtc
from ..runtime.cuda.toolchain.toolkit import find_tool
from ..runtime.machine.host import Host, HostError, allowed_cpus, default_threads, host
from ..runtime.measure.limits import Limits, limits
from ..runtime.toolchain.cache import CacheInfo, user_cache
from ..runtime.toolchain.compile import CompileFailed
from ..runtime.toolchain.compilers import CompilerNotFound, find_compiler
from ..runtime.version import tool_version
from .settings import Setting, settings

_TOOLS = ("cuobjdump", "nvdisasm")


@dataclass(frozen=True, slots=True)
class CompilerFound:
    """The C compiler. problem: why none works, and what to do; None where one compiled our pool."""

    command: str
    version: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class GpuFound:
    """problem: why no GPU can be used, None where one can. driver: what speaks to it.

    nvrtc: what compiles for it, and where that lies; None where there is none. tools: what reads
    cubins, by name; None for one that is missing.
    """

    problem: str | None
    driver: str
    devices: tuple[DeviceProperties, ...]
    nvrtc: str | None
    tools: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Threads:
    """default: of a run that does not say, None where the setting is wrong; problem: why.

    allowed: CPUs that this process may use; cpus: of the machine.
    """

    default: int | None
    problem: str | None
    allowed: int
    cpus: int


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found. packages: what tilewright needs, with versions; limits: where measured."""

    version: str
    folder: str
    python: str
    executable: str
    platform: str
    packages: dict[str, str]
    compiler: CompilerFound
    host: Host
    threads: Threads
    gpu: GpuFound
    cache: CacheInfo
    settings: tuple[Setting, ...]
    limits: Limits | None

    def to_json(self) -> dict[str, object]:
        """Every field as plain JSON values; seconds, bytes, GFLOP/s, GB/s."""
        folder = None if self.cache.folder is None else str(self.cache.folder)
        return {**asdict(self), "cache": {**asdict(self.cache), "folder": folder}}


def examine(*, measure: bool = False) -> Examination:
    """Look at everything; `measure` also times what the machine reaches at most.

    Raises: HostError where the number of threads to measure with is set wrongly.
    """
    compiler = _compiler()
    return Examination(
        version=tool_version(),
        folder=str(Path(__file__).resolve().parents[1]),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        platform=platform.platform(),
        packages=_packages(),
        compiler=compiler,
        host=host(),
        threads=_threads(),
        gpu=_gpu(),
        cache=user_cache().info(),
        settings=settings(),
        limits=limits(refresh=True) if measure and compiler.problem is None else None,
    )


def _packages() -> dict[str, str]:
    """What tilewright needs to run, with the versions that are installed."""
    try:
        needed = requires("tilewright") or []
    except PackageNotFoundError:
        return {"tilewright": "not installed"}
    names = [text.split(">=")[0].strip() for text in needed if "extra ==" not in text]
    return {name: _version(name) for name in sorted(names)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _compiler() -> CompilerFound:
    try:
        compiler = find_compiler()
    except CompilerNotFound as error:
        return CompilerFound("", "", str(error))
    command = " ".join(compiler.command)
    try:
        pool_object()
    except CompileFailed as error:
        return CompilerFound(command, compiler.version, str(error))
    return CompilerFound(command, compiler.version, None)


def _gpu() -> GpuFound:
    try:
        nvrtc: str | None = f"{find_nvrtc()}, {find_nvrtc().path}"
    except NvrtcNotFound:
        nvrtc = None
    paths = {name: find_tool(name) for name in _TOOLS}
    tools = {name: None if path is None else str(path) for name, path in paths.items()}
    found = availability()
    if isinstance(found, Unavailable):
        return GpuFound(found.reason, "", (), nvrtc, tools)
    return GpuFound(None, found.driver.name, found.devices, nvrtc, tools)


def _threads() -> Threads:
    default, problem = None, None
    try:
        default = default_threads()
    except HostError as error:
        problem = error.message
    return Threads(default, problem, allowed_cpus(), os.cpu_count() or 1)
