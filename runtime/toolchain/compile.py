"""C or C++ text in, shared object out, kept in the cache.

The object is keyed by its source, the flags, and the compiler's identity; several translation units
are compiled at once, one process per CPU, each kept by its own key, and linked into one object. No
libm, no BLAS, no threads are linked: on Linux a source that calls what libc itself does not have is
refused here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ...codegen.c.externs import blamed
from ...tir.errors import TargetError, TilewrightError
from ...tir.target.target import Target
from ..files.disk import DiskFull, disk_full, no_room, telling_full_disk
from ..files.temporary import temporary_folder
from ..log import log
from ..machine.host import CPU_VARIABLE, allowed_cpus, can_compile
from .cache import Cache, cache_key, user_cache
from .compilers import C, Compiler, SourceLanguage, compile_flags, find_compiler, link_flags
from .excerpt import excerpt, file_name
from .headers import discard_header, header_of, precompiled_header
from .library import SharedObject

OBJECTS, UNITS = "objects", "units"  # kinds of our cache entries
SOURCE_FILE = "source.cpp"  # what a source is called that our own text stands before
FIRST_LINE = f'#line 1 "{SOURCE_FILE}"\n'  # where its lines begin

_FORMAT = "1"

_COMPLAINT = re.compile(r"^[^\s:]+\.c(?:pp)?:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
# what gcc, clang and zig say of a flag for instructions that they do not know
_UNKNOWN_FLAG = re.compile(
    r"(?:unrecognized command[- ]line option|unknown [a-z ]+:?) .*?(-m[\w.+=-]+)"
)


class CompileFailed(TilewrightError, RuntimeError):
    """A compiler refused a source; the rendering shows the line."""


class CompileTimedOut(TilewrightError, TimeoutError):
    """The compiler took longer on a source than it may."""


def compile_shared(
    source: str,
    target: Target,
    *,
    name: str = "kernel",
    flags: tuple[str, ...] = (),
    cache: Cache | None = None,
    seconds: float | None = None,
) -> SharedObject:
    """Compile one C source; `flags` are added to the target's. seconds: what the compiler may take.

    Raises: CompilerNotFound, CompileFailed, CompileTimedOut; TargetError for another kind of
    processor.
    """
    _check_target(target, name)
    cache = cache if cache is not None else user_cache()
    compiler = find_compiler()
    every_flag = (*compile_flags(target), *compiler.flags, *flags)
    key = cache_key(_FORMAT, compiler.identity, *every_flag, *link_flags(), source)
    kept = cache.get(OBJECTS, key)
    if kept is not None:
        place = cache.path(OBJECTS, key)
        return SharedObject(kept, place, compiler.version, 0.0, target.instructions)
    began = time.perf_counter()
    with telling_full_disk(name), temporary_folder() as folder:
        job, output = _Job(compiler, cache, Path(folder), seconds), Path(folder, "whole.so")
        job.compile(job.write(source, name), every_flag, link_flags(), output)
        binary = output.read_bytes()
    spent = time.perf_counter() - began
    log.debug("compile: '%s', %.0f ms", name, spent * 1e3)
    place = cache.put(OBJECTS, key, binary)
    return SharedObject(binary, place, compiler.version, spent, target.instructions)


def common_header(target: Target) -> Path | None:
    """The precompiled header of intrinsics that units for a target share, made where it is not
    there yet; None where there is none to be had. Raises: CompilerNotFound.
    """
    if target.isa == "neon" or not target.has_vectors:  # that of Arm is read in no time
        return None
    compiler = find_compiler()
    flags = (*compile_flags(target), *compiler.flags)
    return header_of(compiler, flags, user_cache())


class Units:
    """Translation units of one shared object, compiled while others are still being written.

    with Units("model") as units:
        units.add(source, target)
        shared = units.link()

    Leaving it early waits for what runs and drops the rest.
    """

    def __init__(
        self,
        name: str,
        *,
        language: SourceLanguage = C,
        flags: tuple[str, ...] = (),
        cache: Cache | None = None,
    ) -> None:
        """flags: added to those of each unit's target. Raises: CompilerNotFound."""
        self._name = name
        self._flags = flags
        self._cache = cache if cache is not None else user_cache()
        self._compiler = find_compiler(language)
        with telling_full_disk(name):
            self._folder = temporary_folder()
        self._workers = ThreadPoolExecutor(max_workers=allowed_cpus())
        self._keys: list[str] = []
        self._targets: list[Target] = []
        self._objects: list[Future[tuple[Path, float]]] = []

    def __enter__(self) -> Units:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def add(self, source: str, target: Target, *, flags: tuple[str, ...] = ()) -> None:
        """Compile a unit, some time before `link` returns; flags: of this one alone.

        Raises: TargetError.
        """
        _check_target(target, self._name)
        usual = compile_flags(target, self._compiler.language)
        flags = (*usual, *self._compiler.flags, *self._flags, *flags)
        key = cache_key(_FORMAT, self._compiler.identity, *flags, source)
        name = f"{self._name}_{len(self._keys)}"
        self._keys.append(key)
        self._targets.append(target)
        self._objects.append(self._workers.submit(self._object, source, name, flags, key))

    def link(self) -> SharedObject:
        """The object of all units. Raises: CompileFailed."""
        objects, seconds = zip(*(made.result() for made in self._objects), strict=True)
        key = cache_key(_FORMAT, self._compiler.identity, *link_flags(), *self._keys)
        version, place = self._compiler.version, self._cache.path(OBJECTS, key)
        kept = self._cache.get(OBJECTS, key)
        if kept is not None:
            return SharedObject(kept, place, version, sum(seconds), self._instructions)
        began = time.perf_counter()
        binary = self._job.link(objects, self._name)
        spent = sum(seconds) + time.perf_counter() - began
        log.debug("compile: '%s', %d units, %.0f ms", self._name, len(objects), spent * 1e3)
        place = self._cache.put(OBJECTS, key, binary)
        return SharedObject(binary, place, version, spent, self._instructions)

    @property
    def _instructions(self) -> str:
        """What the units need together: they are of one instruction set and differ in features."""
        (isa,) = {target.isa for target in self._targets}
        features = {name for target in self._targets for name in target.features}
        return Target(isa=isa, features=tuple(features)).instructions

    @property
    def _job(self) -> _Job:
        return _Job(self._compiler, self._cache, Path(self._folder.name))

    def _object(
        self, source: str, name: str, flags: tuple[str, ...], key: str
    ) -> tuple[Path, float]:
        """The object file of one unit, and the seconds that making it took."""
        output = Path(self._folder.name, f"{file_name(name)}.o")
        kept = self._cache.get(UNITS, key)
        with telling_full_disk(name):
            if kept is not None:
                output.write_bytes(kept)
                return output, 0.0
            began = time.perf_counter()
            self._job.compile(self._job.write(source, name), flags, ("-c",), output)
            self._cache.put(UNITS, key, output.read_bytes())
        return output, time.perf_counter() - began


def assembly(source: str, target: Target, *, name: str = "kernel") -> str:
    """The assembly text that the compiler makes of a C source for the target.

    Raises: CompilerNotFound, CompileFailed; TargetError for another kind of processor.
    """
    _check_target(target, name)
    with telling_full_disk(name), temporary_folder() as folder:
        compiler = find_compiler()
        flags = (*compile_flags(target), *compiler.flags)
        job = _Job(compiler, user_cache(), Path(folder))
        file = job.write(source, name)
        output = file.with_suffix(".s")
        job.compile(file, flags, ("-S",), output)
        return output.read_text(encoding="utf-8", errors="replace")


def _check_target(target: Target, name: str) -> None:
    """Refuse a target that is another kind of processor. Raises: TargetError."""
    if not can_compile(target):
        raise TargetError(
            f"compile: '{name}' is for {target}, another kind of processor than this machine's.",
            code="compile-foreign",
            hints=("target 'c' is this machine; tw.build(func, target).source is the C text.",),
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """One use of the compiler, in a folder that lasts as long.

    seconds: what each run of it may take; None: there is no limit.
    """

    compiler: Compiler
    cache: Cache
    folder: Path
    seconds: float | None = None

    def link(self, objects: Sequence[Path], name: str) -> bytes:
        """The shared object of object files."""
        output = self.folder / f"{file_name(name)}.so"
        command = [*self.compiler.command, *link_flags(), *map(str, objects), "-o", str(output)]
        done = self._run(command)
        if done.returncode != 0:
            raise _failure(self.compiler, name, done.stderr)
        return output.read_bytes()

    def write(self, source: str, name: str) -> Path:
        """Put a source into the folder."""
        file = self.folder / f"{file_name(name)}{self.compiler.language.suffix}"
        file.write_text(source, encoding="utf-8")
        return file

    def compile(
        self, file: Path, flags: tuple[str, ...], how: tuple[str, ...], output: Path
    ) -> None:
        """Run the compiler on one file; without the precompiled header where that is to blame."""
        header = precompiled_header(self.compiler, flags, file.read_text("utf-8"), self.cache)
        plain = [*self.compiler.command, *flags, file.name, *how, "-o", str(output)]
        if header is not None:
            if self._run([*plain, "-include", str(header)]).returncode == 0:
                return
            done = self._run(plain)
            if done.returncode == 0:
                discard_header(header, self.compiler)
                return
        else:
            done = self._run(plain)
        if done.returncode != 0:
            raise _failure(self.compiler, file.stem, done.stderr, file)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = self.compiler.environment()
        if self.compiler.family == "zig":
            own = self.cache.private_folder("zig")
            environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(own or self.folder / "zig"))
            environment.setdefault("ZIG_LOCAL_CACHE_DIR", environment["ZIG_GLOBAL_CACHE_DIR"])
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            process_group=None if self.seconds is None else 0,
        ) as process:
            try:
                said, complaints = process.communicate(timeout=self.seconds)
            except BaseException as error:
                self._end(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise self._too_long() from None
                raise
        return subprocess.CompletedProcess(command, process.returncode, said, complaints)

    def _end(self, process: subprocess.Popen[str]) -> None:
        """End the compiler, and where it has a deadline also what it started."""
        if self.seconds is None:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)

    def _too_long(self) -> CompileTimedOut:
        return CompileTimedOut(
            f"compile: the {self.compiler.language} compiler took longer than {self.seconds:g} s.",
            code="compile-timed-out",
            notes=(f"the compiler is {self.compiler.version}.",),
        )


def _failure(
    compiler: Compiler, name: str, said: str, file: Path | None = None
) -> CompileFailed | DiskFull:
    """The error for what the compiler said: its first complaint, with our line."""
    full = no_room(said)
    if full is not None:
        return disk_full(name, full)
    match = _COMPLAINT.search(said)
    where = None
    language = compiler.language
    hint = (
        f"generated {language} that a compiler refuses is a defect of tilewright; please report it."
    )
    # lines are counted from here, where our own text stands before a source
    text = "" if file is None else file.read_text("utf-8").rpartition(FIRST_LINE)[2]
    if match is not None and file is not None:
        where = f"in {file.name}:\n{excerpt(text, int(match[1]))}"
        theirs = blamed(text, int(match[1]))
        if theirs is not None:
            hint = f"it is line {theirs[1]} of the source that te.extern '{theirs[0]}' was given."
    unknown = _UNKNOWN_FLAG.search(said)
    if unknown is not None:
        hint = (
            f"a newer compiler knows {unknown[1]}, which the target's instructions need; or "
            f"{CPU_VARIABLE} hides these: it names the most that is used of this CPU."
        )
    undefined = re.search(r"undefined (?:reference to|symbol:) \W?(\w+)", said)
    if match is not None:
        complaint = match[2]
    elif undefined is not None:
        complaint = f"it calls '{undefined[1]}', which no library that we link has"
        if text and blamed(text, len(text.splitlines()) - 1) is not None:
            hint = "the source that a te.extern was given must define all that libc does not have."
    else:
        fatal = re.search(r"(?:fatal error|error): (.*)$", said, re.MULTILINE)
        complaint = fatal[1] if fatal else (said.strip().splitlines() or ["it said nothing"])[-1]
    return CompileFailed(
        f"compile: the {language} compiler refused '{name}': {complaint}.",
        code="compile-failed",
        where=where,
        notes=(f"the compiler is {compiler.version}.",),
        hints=(hint,),
    )
