"""tw.load: an engine from its file. Where the compiled code fits this machine, nothing is built and
only the runtime is imported.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from ..runtime.call_result import CallResult
from ..runtime.engine.engine import Engine
from ..runtime.engine.format import EngineFileError
from ..runtime.engine.reader import EngineFile
from ..runtime.engine.variants import with_variants
from ..runtime.log import log
from ..runtime.machine.host import host
from ..tir.errors import TilewrightError
from .backends.table import read_code

if TYPE_CHECKING:
    from os import PathLike

OnMismatch = Literal["rebuild", "refuse"]


class LoadError(TilewrightError, ValueError):
    """An engine is to be loaded in no known way."""


def load(
    path: str | PathLike[str],
    *,
    threads: int | None = None,
    max_contexts: int | None = None,
    on_mismatch: OnMismatch = "rebuild",
    copy: bool = False,
) -> Engine[CallResult]:
    """The engine that `Engine.save` wrote.

    The weights stay in the file, which is mapped, so that processes share them and a start does not
    read them all. Replace a file that may be in use by renaming another one to its name, as
    `Engine.save` and `mv` on one file system do: those who loaded the old one keep it. Writing into
    it (`cp new live`) changes the results of engines that are running, and cutting it short ends
    their processes.

    threads: of runs that do not say. max_contexts: the most runs at one time; others wait; the file
    keeps none. on_mismatch: what to do where the compiled code does not fit this machine: build it
    anew from the kept weights, by the rules' schedules, which a warning of the log says, or refuse.
    copy: read the whole file into memory, after which it may become anything.
    Raises: LoadError for another `on_mismatch`; EngineError for `max_contexts` below 1; OSError;
    EngineFileError for a file that is damaged, or that does not fit and is not rebuilt. Loading an
    engine runs its code: load only files that you trust.
    """
    if on_mismatch not in get_args(OnMismatch):
        known = " or ".join(map(repr, get_args(OnMismatch)))
        raise LoadError(
            f"load: on_mismatch is {on_mismatch!r}; expected {known}.", code="load-mismatch"
        )
    file = EngineFile(Path(path), copy=copy)
    missing = file.missing(host().instructions)
    if not missing:
        return Engine(file.parts(read_code), threads=threads, max_contexts=max_contexts)
    if on_mismatch == "refuse":
        raise EngineFileError(
            f"load: '{file.title}' does not fit this machine: {missing[0]}",
            code="engine-mismatch",
            notes=missing[1:],
            hints=('tw.load(path, on_mismatch="rebuild") builds it anew from the kept weights.',),
        )
    return cast("Engine[CallResult]", _rebuild(file, missing, threads, max_contexts))


def _rebuild(
    file: EngineFile, missing: tuple[str, ...], threads: int | None, max_contexts: int | None
) -> Engine:
    # imported here: building needs the schedules' and the proof's libraries, loading must not
    from .build_program import build_program
    from .jobs import ProgramOptions

    parts = file.parts(read_code)
    if parts.plain is None:
        raise EngineFileError(
            f"load: '{file.title}' does not fit this machine and keeps no weights to build from: "
            f"{missing[0]}",
            code="engine-rebuild",
            notes=missing[1:],
            hints=("write it with engine.save(path, keep_weights=True).",),
        )
    log.warning(
        "load: '%s' does not fit this machine and is built anew, by the rules' schedules: %s",
        file.title,
        missing[0],
    )
    oracle = "not run: the file keeps no reference"
    options = ProgramOptions(
        notes=(*parts.report.notes, f"built anew: {missing[0]}"),
        lower_bound_bytes=parts.plan.lower_bound_bytes,
        imported=parts.reference,
        threads=threads,
        max_contexts=max_contexts,
        tolerance=parts.report.tolerance,
        allow=parts.report.allow,
        precision=parts.report.precision,
        oracle=oracle if parts.reference is None else parts.reference.model(),
    )
    model = parts.plain.model()
    engine = build_program(model.program, model.constants, options=options)
    variants = []
    for variant in parts.variants:
        own = variant.parts
        assert own.plain is not None, "kept with that of the engine"
        model = own.plain.model()
        notes, bound = (*own.report.notes, f"built anew: {missing[0]}"), own.plan.lower_bound_bytes
        precision = own.report.precision
        how = replace(options, notes=notes, lower_bound_bytes=bound, precision=precision)
        built = build_program(model.program, model.constants, options=how)
        variants.append(replace(variant, parts=built.parts))
    if not variants:
        return engine
    made = with_variants(engine.parts, variants)
    return Engine(made, threads=threads, max_contexts=max_contexts)
