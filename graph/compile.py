"""tw.compile: a model becomes an Engine: import, passes, fusion, plan, build; each part checked
where it is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from onnx import ModelProto

from ..driver.build import Verify, resolve_target
from ..driver.build_program import ProgramOptions, build_program
from ..driver.check_program import ProgramCheckError
from ..runtime.arrays import Array
from ..runtime.engine import Engine
from ..runtime.report import bytes_text
from ..schedule.source import Chooser, ScheduleSource, as_source
from ..tir.func import PrimFunc
from ..tir.target import Target
from .errors import ModelError
from .explain import explain
from .importers.onnx import Source, import_onnx
from .importers.symbols import Shapes
from .ir import Graph
from .options import check_options
from .passes.pipeline import Pass
from .plan import Planned, apart, plan_model
from .reference import evaluate
from .reference_program import reference_model

Progress = Callable[[str], object]


class UntunedError(ModelError):
    """A model was to be compiled from tuned schedules only, and some functions have none."""


class MemoryLimitError(ModelError, MemoryError):
    """An engine needs more memory than it was allowed."""


def compile(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    precision: str = "float32",
    effort: str = "default",
    schedules: ScheduleSource | Chooser | None = None,
    require_tuned: bool = False,
    passes: tuple[Pass, ...] | None = None,
    max_bytes: int | None = None,
    max_contexts: int | None = None,
    deterministic: str = "engine",
    strict: bool = False,
    verify: Verify = "all",
    calibration: None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Engine:
    """Compile a model for a target: this machine's CPU by default.

    model: the path or the bytes of an ONNX file, a ModelProto, or a Graph. shapes: sizes that it
    leaves open, by input {"x": (1, 3, 224, 224)} or by symbol {"batch": 1}. schedules: a source of
    schedules and times, or a function of (func, target); require_tuned: refuse a function that it
    has no tuned schedule for. passes: in place of the usual ones.
    max_bytes: most memory of all contexts, of which there are at most `max_contexts`, with the
    weights.
    strict: no contraction, no re-association. verify: "rewrites" compares each pass's result with
    what it was given, "kernels" runs each kernel once beside its reference, "all" does both.
    progress: is called with the name of each stage.
    Raises: ModelError, TargetError, ScheduleError, CompilerNotFound; OptionError for an option that
    is not available yet; UntunedError; MemoryLimitError.
    """
    check_options(
        precision=precision,
        effort=effort,
        deterministic=deterministic,
        verify=verify,
        calibration=calibration,
        cache=cache,
    )
    tell = progress or _silent
    resolved, source = resolve_target(target), as_source(schedules)
    tell("import")
    imported = _imported(model, shapes)
    tell("plan")
    check = verify in ("all", "rewrites")
    planned = plan_model(imported, resolved, source, passes=passes, check=check)
    if require_tuned:
        _check_tuned(planned.lowered.program.functions, resolved, source)
    tell("build")
    options = ProgramOptions(strict=strict, verify=verify, max_contexts=max_contexts)
    engine = _build(_Job(planned, resolved, source, options))
    if max_bytes is not None:
        _check_memory(engine, resolved, max_bytes, max_contexts or 1)
    return engine


def _silent(stage: str) -> None:
    """Progress that nobody wants to see."""


def _imported(model: object, shapes: Shapes | None) -> Graph:
    if isinstance(model, Graph):
        return model
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith((".pt2", ".pt")):
        kind = f"the file '{os.fspath(model)}'"
    elif isinstance(model, str | os.PathLike | bytes | ModelProto):
        return import_onnx(model, shapes=shapes)
    else:
        kind = f"a {type(model).__name__}"
    raise ModelError(
        f"compile: the model is {kind}; expected the path or the bytes of an ONNX file, "
        "or a ModelProto.",
        code="compile-model",
        hints=("torch.onnx.export(module, inputs, 'model.onnx') writes such a file.",),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    planned: Planned
    target: Target
    source: ScheduleSource | None
    options: ProgramOptions


def _build(job: _Job) -> Engine:
    """Build; a fused kernel whose check fails is replaced by kernels of its parts, and the report
    says so.
    """
    planned, failed = job.planned, list[str]()
    while True:
        lowered, imported = planned.lowered, planned.imported

        def reference(inputs: Mapping[str, Array], graph: Graph = imported) -> dict[str, Array]:
            return evaluate(graph, inputs)

        options = replace(
            job.options,
            notes=(*failed, *explain(planned)),
            lower_bound_bytes=lowered.plan.lower_bound,
            imported=reference_model(imported).stored(),
        )
        try:
            return build_program(
                lowered.program,
                lowered.constants,
                job.target,
                source=job.source,
                reference=reference,
                options=options,
            )
        except ProgramCheckError as error:
            smaller = apart(planned, error.functions)
            if smaller is planned:
                raise
            failed += [
                f"kernel '{name}' failed its check and was taken apart" for name in error.functions
            ]
            planned = smaller


def _check_tuned(
    functions: tuple[PrimFunc, ...], target: Target, source: ScheduleSource | None
) -> None:
    untuned = []
    for func in functions:
        found = source.schedule(func, target) if source is not None else None
        if found is None or found.origin != "tuned":
            untuned.append(func.name)
    if untuned:
        raise UntunedError(
            f"compile: {len(untuned)} of {len(functions)} functions have no tuned schedule: "
            f"{', '.join(untuned[:5])}{', ...' if len(untuned) > 5 else ''}.",
            code="compile-untuned",
            hints=("tune the functions of tw.tasks(model), or leave out require_tuned=True.",),
        )


def _check_memory(engine: Engine, target: Target, max_bytes: int, contexts: int) -> None:
    plan = engine.memory_plan
    peak = plan.peak_bytes(target.threads, contexts)
    if peak > max_bytes:
        raise MemoryLimitError(
            f"compile: {contexts} context(s) of '{engine.name}' take {bytes_text(peak)}; "
            f"expected at most {bytes_text(max_bytes)}.",
            code="compile-memory",
            notes=(str(plan),),
            hints=("raise max_bytes, or lower max_contexts.",),
        )
