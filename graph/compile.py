"""tw.compile: a model becomes an Engine, found among those that were made before, or made now.

What is needed to make one (ONNX, graph and proof libraries) is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from ..driver.check.collector import fewer_collections
from ..driver.resolve_target import resolve_target
from ..runtime.call_result import CallResult
from ..runtime.engine.engine import Engine
from ..runtime.machine.memory import process_memory
from ..tir.target.target import Target
from ..tir.text.size import bytes_text
from .assumed_sizes import telling_assumed
from .engine_cache import engine_key, keep_engine, kept_engine, model_digest
from .errors import ModelError
from .options import BuildOptions, Shapes, Verify, check_options

if TYPE_CHECKING:
    from ..schedule.source import Chooser, ScheduleSource
    from .importers.onnx.importer import Source
    from .ir.ir import Graph
    from .passes.pipeline import GraphPass

Progress = Callable[[str], object]


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
    passes: tuple[GraphPass, ...] | None = None,
    max_bytes: int | None = None,
    max_contexts: int | None = None,
    deterministic: str = "engine",
    strict: bool = False,
    verify: Verify = "all",
    calibration: None = None,
    tolerance: float | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Engine[CallResult]:
    """Compile a model for a target: this machine's CPU by default, "cuda" its GPU. One that is not
    here, "cuda:sm_90a" or "c:avx512", gets an engine to be looked at, saved, a GPU's emulated.

    model: the path or the bytes of an ONNX file, a ModelProto, or a Graph; what it has in float16
    is stored so and computed in float32. shapes: sizes that it leaves open, by input {"x": (1, 3,
    224, 224)} or by symbol {"batch": 1}, {"batch": (1, 8, 64)} for the least, the usual and the
    largest of a run; bounds of others are assumed, and `explain` says which. schedules: a source of
    schedules and times, or a function of (func, target); require_tuned: refuse a function that it
    has no tuned schedule for. passes: in place of the usual ones.
    max_bytes: most memory of all contexts, of which there are at most `max_contexts`, with the
    weights.
    strict: no contraction, no re-association. verify: "rewrites" compares each pass's result with
    what it was given, "kernels" runs each kernel once beside its reference, "all" does both and
    runs the whole engine. For a GPU both run where there is one; "emulated" is "all" on the CPU.
    tolerance: the largest error of an output that you accept, as a share of its largest magnitude,
    from 1e-5. Algorithms that round more may then be used (today Winograd's F(4x4, 3x3)), each
    where its own expected error is no larger; with verify="all" the engine runs once beside its
    reference, and where an output is off by more it is built without them. `Engine.verify` allows
    as much. None: no such algorithm.
    cache: look for the engine among those made before, and keep it; only without `schedules` and
    `passes`. progress: is called with the name of each stage.
    Raises: ModelError, TargetError, ScheduleError, CompilerNotFound; OptionError for an option that
    is not available yet; UntunedError; MemoryLimitError.
    """
    check_options(
        precision=precision,
        effort=effort,
        deterministic=deterministic,
        verify=verify,
        calibration=calibration,
    )
    options = BuildOptions(
        shapes, schedules, require_tuned, passes, max_contexts, strict, verify, tolerance
    )
    resolved, tell = resolve_target(target), progress or _silent
    engine = _found_or_made(model, resolved, options, cache, tell)
    if max_bytes is not None:
        with telling_assumed(engine.interface.dims):
            _check_memory(engine, resolved, max_bytes, max_contexts or 1)
    return cast("Engine[CallResult]", engine)


def _found_or_made(
    model: object, target: Target, options: BuildOptions, cache: bool, tell: Progress
) -> Engine:
    key = _key(model, target, options) if cache else None
    engine = kept_engine(key, target, options.max_contexts) if key else None
    if engine is None:
        # here, because a hit must not wait for what only a build needs
        from .compile_model import compile_model

        with fewer_collections(), _telling_memory():
            engine = compile_model(model, target, options, tell)
        if key:
            keep_engine(key, engine)
    return engine


@contextmanager
def _telling_memory() -> Iterator[None]:
    """Say what may be done where memory ends."""
    try:
        yield
    except MemoryError as error:
        raise MemoryLimitError(
            f"compile: no memory is left; this process may take {bytes_text(process_memory())}.",
            code="compile-no-memory",
            hints=('verify="kernels" does not evaluate the model in float64 beside each pass.',),
        ) from error


def _key(model: object, target: Target, options: BuildOptions) -> str | None:
    """Under what the engine is kept; None where it is not."""
    if options.schedules is not None or options.passes is not None or options.require_tuned:
        return None
    digest = model_digest(model)
    shapes = dict(options.shapes or {})
    plain = ("strict", "verify", "tolerance")
    values = {"shapes": shapes, **{name: getattr(options, name) for name in plain}}
    return None if digest is None else engine_key(digest, target, values)


def _silent(stage: str) -> None:
    """Discard a progress message."""


def _check_memory(engine: Engine, target: Target, max_bytes: int, contexts: int) -> None:
    plan, dims = engine.memory_plan, engine.interface.dims
    peak = plan.peak_bytes(target.threads, contexts)
    if peak > max_bytes:
        sizes = ", ".join(f"'{dim.name}' {dim.high}" for dim in dims)
        hints = ("raise max_bytes, or lower max_contexts.",)
        raise MemoryLimitError(
            f"compile: {contexts} context(s) of '{engine.name}' take {bytes_text(peak)}"
            f"{f' at the largest sizes, {sizes}' if dims else ''}; expected at most "
            f"{bytes_text(max_bytes)}.",
            code="compile-memory",
            notes=(str(plan),),
            hints=(*hints, "shapes={...} with smaller largest sizes takes less.")
            if dims
            else hints,
        )
