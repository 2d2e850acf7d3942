"""The report of `doctor` as one value."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, requires, version
from pathlib import Path

from ..driver.backends.table import backend_named
from ..graph.errors import ExtensionError
from ..graph.extensions.entries import load
from ..graph.extensions.origin import GROUPS
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
from ..tir.errors import TargetError
from ..tir.extensions import (
    EXTENSIONS_VARIABLE,
    extensions_are_off,
    installed_entry_points,
    package_entry_points,
    package_title,
)
from ..tir.target.kinds import BUILT_IN
from ..tir.target.kinds import GROUP as TARGETS
from .settings import EnvironmentVariable, settings

_TOOLS = ("cuobjdump", "nvdisasm")


@dataclass(frozen=True, slots=True)
class CompilerFound:
    """The C compiler. problem: why none works, and what to do; None where one works."""

    command: str
    version: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class GpuFound:
    """The GPUs. problem: why none can be used; None where one can. driver: the name of its binding.

    nvrtc: version and path of the compiler; None where there is none. tools: the paths of the
    programs that read cubins, by name; None for a missing one.
    """

    problem: str | None
    driver: str
    devices: tuple[DeviceProperties, ...]
    nvrtc: str | None
    tools: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Threads:
    """The numbers of threads. default: of a run; None where the setting is invalid; problem: why.

    allowed: CPUs that this process may use; cpus: of the machine.
    """

    default: int | None
    problem: str | None
    allowed: int
    cpus: int


@dataclass(frozen=True, slots=True)
class TargetFound:
    """A kind of target. package: which brings it, with its version; None for one that is built in.
    problem: why its back end does not load; None where it does.
    """

    kind: str
    package: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ExtensionFound:
    """What a package brings. kind: "operators", "passes" or "importers"; name: of its entry point;
    package: with its version; problem: why it does not load, or that it is kept from loading; None
    where it loads.
    """

    kind: str
    name: str
    package: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class Examination:
    """The report. packages: the requirements of tilewright, with versions; limits: if measured."""

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
    targets: tuple[TargetFound, ...]
    extensions: tuple[ExtensionFound, ...]
    cache: CacheInfo
    settings: tuple[EnvironmentVariable, ...]
    limits: Limits | None

    def to_json(self) -> dict[str, object]:
        """Every field as plain JSON values; seconds, bytes, GFLOP/s, GB/s."""
        folder = None if self.cache.folder is None else str(self.cache.folder)
        return {**asdict(self), "cache": {**asdict(self.cache), "folder": folder}}


def examine(*, measure: bool = False) -> Examination:
    """Examine the machine; `measure` also times its limits.

    Raises: HostError where the number of threads to measure with is invalid.
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
        targets=_targets(),
        extensions=tuple(_extensions()),
        cache=user_cache().info(),
        settings=settings(),
        limits=limits(refresh=True) if measure and compiler.problem is None else None,
    )


def _packages() -> dict[str, str]:
    """The requirements of tilewright, with the versions that are installed."""
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


def _targets() -> tuple[TargetFound, ...]:
    """The kinds of targets: those built in, then those of packages by name."""
    found = [TargetFound(kind, None, None) for kind in BUILT_IN]
    brought = (
        TargetFound(entry.name, package_title(entry), _why_not_loaded(entry.name))
        for entry in package_entry_points(TARGETS)
    )
    return (*found, *brought)


def _extensions() -> Iterator[ExtensionFound]:
    """What packages bring to models, in the order of groups and names."""
    for group in GROUPS:
        for entry in installed_entry_points(group):
            kind = group.rpartition(".")[2]
            yield ExtensionFound(kind, entry.name, package_title(entry), _why_no_extension(entry))


def _why_no_extension(entry: EntryPoint) -> str | None:
    if extensions_are_off():
        return f"{EXTENSIONS_VARIABLE}=0 keeps it from being loaded"
    try:
        load(entry)
    except ExtensionError as error:
        cause = error.__cause__ or error
        return " ".join(f"does not load: {type(cause).__name__}: {cause}".split())
    return None


def _why_not_loaded(kind: str) -> str | None:
    """The error that ends the import of a back end, in one line; None where it loads."""
    try:
        backend_named(kind)
    except TargetError as error:
        cause = error.__cause__ or error
        return " ".join(f"{type(cause).__name__}: {cause}".split())
    return None


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
