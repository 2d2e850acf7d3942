"""A model becomes an Engine: import, passes, fusion, plan, build; each part is checked where it is
made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..driver.backends.table import backend_of
from ..driver.build_program import build_program
from ..driver.check.blas_threads import fewer_blas_threads, share_of_cpus
from ..driver.check.clock import Clock
from ..driver.check.program import ProgramCheckError
from ..driver.jobs import ProgramOptions
from ..driver.lower_program import ProgramRefusedError
from ..runtime.arrays import Array
from ..runtime.engine.engine import Engine, Reference
from ..runtime.log import log
from ..runtime.model.coverage import Coverage, Covered
from ..runtime.model.precision_report import PrecisionReport
from ..runtime.model.verification import Report, compare_outputs
from ..schedule.source import ReasonedSource, ScheduleSource, as_source, schedule_from
from ..tir.program.program import Program
from ..tir.target.target import Target
from .assumed_sizes import telling_assumed
from .errors import ModelError
from .given_model import imported_graph
from .ir.ir import Graph
from .options import BuildOptions
from .plan.explain import explain
from .plan.layer_prices import LayerPrices
from .plan.plan import Planned, apart, closer, divisible, plan_model, rounding_more
from .plan.reference_program import reference_model
from .precision.levels.byte_engine import byte_engine
from .precision.levels.byte_model import ByteRequest
from .reference.compare import relative_rms
from .reference.oracle import ModelOracle, model_oracle
from .reference.reference import evaluate

_CHECKING_REWRITES = ("all", "rewrites", "emulated")  # values of `verify`


class UntunedError(ModelError):
    """A model was to be compiled from tuned schedules only, and some functions have none.

    coverage: where the schedule of each function would come from.
    """

    def __init__(self, coverage: Coverage) -> None:
        super().__init__(
            f"compile: {len(coverage.gaps)} of {len(coverage.kernels)} functions have no tuned "
            "schedule.",
            code="compile-untuned",
            where="\n".join(map(str, coverage.gaps)),
            hints=(
                "tune the functions of tw.tasks(model), or leave out require_tuned=True.",
                "`tilewright tune MODEL --log LOG` tunes a model; `tilewright log check MODEL "
                "--log LOG` says why each of them is not tuned.",
            ),
        )
        self.coverage = coverage


def compile_model(
    model: object, target: Target, options: BuildOptions, tell: Callable[[str], object]
) -> Engine:
    """What `compile` does where no engine is kept; `tell` is called with the name of each stage."""
    tell("import")
    clock = Clock()
    imported = imported_graph(model, options.shapes, options.constants)
    clock.lap("import")
    if options.calibration is not None:
        return _with_bytes(imported, target, options, tell)
    with telling_assumed(imported.dims):
        return _compiled(imported, target, options, clock, tell)


def _with_bytes(
    imported: Graph, target: Target, options: BuildOptions, tell: Callable[[str], object]
) -> Engine:
    """An engine whose products multiply bytes, as far as the options say."""
    assert options.calibration is not None
    plain = replace(options, precision="float32", calibration=None, accuracy=None)

    def build(graph: Graph, is_final: bool, others: str | Mapping[str, str]) -> Engine:
        how = replace(plain, precision=others) if is_final else replace(plain, verify="off")
        with telling_assumed(imported.dims):
            return _compiled(graph, target, how, Clock(), tell if is_final else _silent)

    request = ByteRequest.of(
        *(options.precision, options.calibration, target, options.accuracy),
        is_checked=options.verify in _CHECKING_REWRITES,
    )
    prices = LayerPrices(target, options.tolerance)
    made = byte_engine(imported, target, request, prices, build, tell)
    halves = made.engine.parts.report.precision
    return _changed(made.engine, precision=made.precision.with_others(halves))


def _silent(stage: str) -> None:
    """Discard a progress message."""


def _compiled(
    imported: Graph,
    target: Target,
    options: BuildOptions,
    clock: Clock,
    tell: Callable[[str], object],
) -> Engine:
    source = as_source(options.schedules)
    tell("plan")
    check = options.verify in _CHECKING_REWRITES
    with fewer_blas_threads(share_of_cpus(2)):  # the compiler works beside, as warm_up says
        planned = plan_model(
            imported,
            target,
            source,
            passes=options.passes,
            check=check,
            strict=options.strict,
            tolerance=options.tolerance,
            precision=options.precision,
            keep=options.cache,
        )
    if options.require_tuned:
        _check_tuned(planned.lowered.program, target, source)
    tell("build")
    how = ProgramOptions(
        strict=options.strict,
        verify=options.verify,
        max_contexts=options.max_contexts,
        seconds=(*clock.laps, *planned.seconds),
        tolerance=options.tolerance,
        allow=planned.allow,
        precision=PrecisionReport(tuple(one.layer for one in planned.products)),
        keep_kernels=options.cache,
    )
    job = _Job(planned, target, source, how)
    made = _build(job)
    if isinstance(source, ReasonedSource):
        _warn_untuned(made, target, source)
    if options.verify != "all" or not (rounding_more(made.planned) or planned.is_rounded):
        return made.engine
    tell("measure")
    without = _not_measured(job, made.engine)
    if rounding_more(made.planned) and without is None:
        made = _Made(_within_tolerance(job, made), made.planned)
    elif rounding_more(made.planned):
        note = f"tolerance {options.tolerance:g}: not measured: {without}"
        made = _Made(_noted(job, made.engine, note), made.planned)
    if not planned.is_rounded:
        return made.engine
    found = _beside_floats(job, made.engine) if without is None else f"not measured: {without}"
    precision = replace(made.engine.parts.report.precision, accuracy=(found,))
    return _changed(made.engine, _reference(planned.reference), precision=precision)


@dataclass(frozen=True, slots=True)
class _Job:
    planned: Planned
    target: Target
    source: ScheduleSource | None
    options: ProgramOptions


@dataclass(frozen=True, slots=True)
class _Made:
    """An engine, and the plan that it was built by in the end."""

    engine: Engine
    planned: Planned


def _warn_untuned(made: _Made, target: Target, source: ReasonedSource) -> None:
    """Say how many kernels take no schedule of a log that was tuned here, and why."""
    coverage = made.engine.tuning
    names = {kernel.name for kernel in coverage.gaps}
    functions = [f for f in made.planned.lowered.program.functions if f.name in names]
    reasons = dict.fromkeys(source.reason(func, target) for func in functions)
    if names:
        log.warning(
            "%d of %d kernels of '%s' have no schedule that was tuned here: %s",
            len(names),
            len(coverage.kernels),
            made.engine.name,
            "; ".join(filter(None, reasons)),
        )


def _within_tolerance(job: _Job, made: _Made) -> Engine:
    """The engine, where its outputs are as near to the reference as the tolerance asks, on random
    inputs; else one without algorithms that round more. The report says what was measured.
    """
    engine, said = made.engine, f"tolerance {job.options.tolerance:g}"
    found = _measured(job, engine)
    if not found:
        count = len(rounding_more(made.planned))
        said += f": {_errors(found)} with {count} kernel(s) that round more; built without them"
        engine = _build(replace(job, planned=closer(made.planned))).engine
        found = _measured(job, engine)
    note = f"{said}: {_errors(found)}, measured beside the reference in float64"
    return _noted(job, engine, note)


def _measured(job: _Job, engine: Engine) -> Report:
    """The errors beside what was asked for, whatever the model's own types would explain."""
    given = engine.random_inputs()
    expected = evaluate(job.planned.imported, given)
    accepted = job.options.tolerance
    return compare_outputs(engine.name, engine.run(given), expected, tolerance=accepted)


def _beside_floats(job: _Job, engine: Engine) -> str:
    """How far outputs are from those of the model without rounded operands, in float64."""
    given = engine.random_inputs()
    got, wanted = engine.run(given), evaluate(job.planned.imported, given)
    shares = [
        f"'{name}' is off by {relative_rms(got[name], array):.2g}"
        for name, array in wanted.items()
        if np.issubdtype(array.dtype, np.floating)
    ]
    return (
        f"beside the model in float64, {', '.join(shares)} of its root mean square, on random data"
    )


def _not_measured(job: _Job, engine: Engine) -> str | None:
    """Why an engine cannot be run beside its reference; None: it can."""
    target = engine.parts.artifact.target
    why = backend_of(target).why_not_run(target)
    oracle = ModelOracle(job.planned.imported)
    return oracle.why_not_run(engine.random_inputs()) if why is None else why


def _noted(job: _Job, engine: Engine, note: str) -> Engine:
    """The engine with one more note, in front."""
    notes = (note, *engine.parts.report.notes)
    return _changed(engine, _reference(job.planned.reference), notes=notes)


def _changed(engine: Engine, reference: Reference | None = None, **fields: Any) -> Engine:
    """The engine with other fields of its report. reference: by default that which its parts
    keep.
    """
    parts = replace(engine.parts, report=replace(engine.parts.report, **fields))
    return Engine(parts, reference=reference, max_contexts=engine.max_contexts)


def _errors(report: Report) -> str:
    return "; ".join(map(str, report.outputs))


def _reference(imported: Graph) -> Reference:
    """What computes the outputs of a model as it was imported."""

    def reference(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return evaluate(imported, inputs)

    return reference


def _build(job: _Job) -> _Made:
    """Build; a fused kernel that is refused, or whose check fails, is replaced by kernels of its
    parts, and the report says so.
    """
    planned, failed = job.planned, list[str]()
    while True:
        lowered, meant = planned.lowered, planned.reference
        options = replace(
            job.options,
            notes=(*failed, *explain(planned)),
            divisible=divisible(planned),
            lower_bound_bytes=lowered.plan.lower_bound,
            imported=reference_model(meant).stored(),
            oracle=model_oracle(meant),
        )
        try:
            engine = build_program(
                lowered.program,
                lowered.constants,
                job.target,
                source=job.source,
                reference=_reference(meant),
                options=options,
            )
            return _Made(engine, planned)
        except (ProgramCheckError, ProgramRefusedError) as error:
            smaller = apart(planned, error.functions)
            if smaller is planned:
                raise
            failed += [
                f"kernel '{name}' was taken apart: {error.message}" for name in error.functions
            ]
            planned = smaller


def _check_tuned(program: Program, target: Target, source: ScheduleSource | None) -> None:
    places = Counter(launch.function for launch in program.launches)
    covered = []
    for func in program.functions:
        found = schedule_from(source, func, target) if source is not None else None
        origin = "rule" if found is None else found.origin
        covered.append(Covered(func.name, places[func.name], origin))
    coverage = Coverage(tuple(covered))
    if coverage.gaps:
        raise UntunedError(coverage)
