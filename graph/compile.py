"""tw.compile: a model becomes an Engine, found among those that were made before, or made now.

What is needed to make one (ONNX, graph and proof libraries) is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..driver.backends.table import backend_of
from ..driver.check.collector import fewer_collections
from ..driver.resolve_target import resolve_target
from ..runtime.call_result import CallResult
from ..runtime.engine.engine import Engine
from ..runtime.engine.parts import EngineParts, Variant
from ..runtime.engine.variants import with_variants
from ..runtime.machine.memory import process_memory
from ..runtime.model.interface import Interface
from ..tir.target.target import Target
from ..tir.text.size import bytes_text
from .assumed_sizes import telling_assumed
from .buckets import BucketPlan, Buckets, PathLike, bucket_plan
from .engine_cache import (
    constants_digest,
    engine_key,
    keep_engine,
    keep_requests,
    kept_engine,
    key_with_requests,
    model_digest,
)
from .errors import ModelError
from .extensions.entries import importer_of
from .extensions.identity import pass_identity
from .importers.traced_model import traced_model
from .options import BuildOptions, Shapes, Verify, check_calibration, check_options, given_passes
from .specialise import Chosen, NamedSizes, check_count, chosen_sizes

if TYPE_CHECKING:
    from ..schedule.source import Chooser, ScheduleSource
    from .passes.pipeline import GraphPass
    from .precision.accuracy import Accuracy
    from .precision.calibration.calibration import Calibration

Progress = Callable[[str], object]


class MemoryLimitError(ModelError, MemoryError):
    """An engine needs more memory than it was allowed."""


def compile(
    model: object,
    target: Target | str | None = None,
    *,
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    specialise: Sequence[NamedSizes] | int = (),
    buckets: Buckets | None = None,
    shape_log: PathLike | None = None,
    precision: str | Mapping[str, str] = "float32",
    effort: str = "default",
    schedules: ScheduleSource | Chooser | None = None,
    require_tuned: bool = False,
    passes: Iterable[GraphPass] | None = None,
    max_bytes: int | None = None,
    max_contexts: int | None = None,
    deterministic: str = "engine",
    strict: bool = False,
    verify: Verify = "all",
    calibration: Calibration | None = None,
    accuracy: Accuracy | None = None,
    tolerance: float | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Engine[CallResult]:
    """Compile a model for a target: this machine's CPU by default, "cuda" its GPU. One that is not
    here, "cuda:sm_90a" or "c:avx512", gets an engine to be looked at, saved, a GPU's emulated.

    model: path or bytes of an ONNX file or an archive of torch.export, a ModelProto, an
    ExportedProgram, a module of torch, a function of JAX, or a Graph. args, kwargs: example inputs
    of a module or function (of JAX also `ShapeDtypeStruct`s). shapes: sizes that it leaves open, by
    input {"x": (1, 3, 224, 224)} or by symbol {"batch": 1}, {"batch": (1, 8, 64)} for the least,
    the usual and the largest; others are assumed; of a sequence those of each tensor, {"x": [(1,
    3), (2, 3)]}. constants: values of inputs, {"k": [1]}, None where an optional one is empty.
    specialise: variants for sizes that come often, [{"batch": 1}]; 4: for the four most frequent,
    in the background. buckets: {"batch": [4, 16]}, sizes that fewer rows are padded to where proved
    inert and timed no slower; 4: chosen by `shape_log`. precision: "bfloat16" or "float16" for
    products by constant weights where priced faster; "int8" for products of bytes by the ranges of
    `calibration`; with an `accuracy` as many as keep it, as timed; "auto" for both; {"fc1": "int8"}
    for those named. schedules: a source of schedules and times, or a function of (func, target);
    require_tuned: refuse a function without one. passes: in place of `tw.PASSES`. max_bytes: of all
    contexts, at most `max_contexts`, with the weights. strict: no contraction or re-association.
    verify: "rewrites" compares each pass's result with what it got, "kernels" runs each kernel
    beside its reference, "all" does both and runs the whole engine; "emulated" is "all" on the CPU.
    tolerance: the largest error of an output, as a share of its largest magnitude, from 1e-5, for
    Winograd's F(4x4, 3x3) and `Engine.verify`. cache: keep engines and kernels. progress: called at
    each stage.
    Raises: ModelError, TargetError, ScheduleError, CompilerNotFound, SizeLogError.
    """
    check_options(effort=effort, deterministic=deterministic, verify=verify)
    check_calibration(precision, calibration, accuracy)
    options = BuildOptions(shapes, schedules, require_tuned, given_passes(passes), max_contexts)
    options = replace(options, strict=strict, verify=verify, tolerance=tolerance)
    options = replace(options, constants=constants, precision=precision)
    options = replace(options, calibration=calibration, accuracy=accuracy, cache=cache)
    model = traced_model(model, args, kwargs, shapes)
    job = _Job(model, resolve_target(target), options, cache, progress or _silent)
    return job.specialised(_AskedVariants(specialise, buckets, shape_log, max_bytes))


@dataclass(frozen=True, slots=True)
class _AskedVariants:
    """Which variants a caller wants, and the most memory that all of it may take."""

    specialise: Sequence[NamedSizes] | int
    buckets: Buckets | None
    shape_log: PathLike | None
    max_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be compiled, for what, and how."""

    model: object
    target: Target
    options: BuildOptions
    cache: bool
    tell: Progress

    def engine(self) -> Engine:
        """The engine, found among those that are kept, or made."""
        key = self._key()
        engine = self._kept(key, key)
        if engine is None:
            backend_of(self.target).warm_up(self.target)
            # here, because a hit must not wait for what only a build needs
            from .compile_model import compile_model
            from .extensions.lookup import recorded_requests

            with fewer_collections(), _telling_memory(), recorded_requests() as asked:
                engine = compile_model(self.model, self.target, self.options, self.tell)
            if key:
                keep_requests(key, [(one.front, one.key, one.namespace) for one in asked])
            self._keep(key, key, engine)
        return engine

    def specialised(self, asked: _AskedVariants) -> Engine[Any]:
        """The engine with its variants, kept as one; or one that makes them as it runs.

        Raises: OptionError, SizeLogError, MemoryLimitError.
        """
        engine, wanted, plan = self.engine(), asked.specialise, None
        if asked.buckets is not None or asked.shape_log is not None:
            plan = bucket_plan(engine, asked.buckets, asked.shape_log)
        if isinstance(wanted, int):
            check_count(engine, wanted, asked.max_bytes)
        chosen = () if isinstance(wanted, int) else chosen_sizes(engine, wanted)
        made = self._with_variants(engine, chosen, plan) if chosen or plan else engine
        if isinstance(wanted, int):
            interface = engine.interface
            made.specialise(wanted, lambda at, tell: replace(self, tell=tell)._at(interface, at))
        _check_memory(made, self.target, asked.max_bytes, self.options.max_contexts or 1)
        return made

    def _with_variants(
        self, engine: Engine, chosen: Sequence[Chosen], plan: BucketPlan | None
    ) -> Engine:
        """The engine with variants, kept as one, found among those that are kept, or made."""
        asked = None if plan is None else (plan.dim.name, plan.sizes, plan.others, plan.note)
        key, base = self._key(chosen, asked), self._key()
        made = self._kept(key, base)
        if made is None:
            padded, notes = self._padded(engine, plan)
            there = {one.sizes for one in padded}
            plain = [
                Variant(sizes, self._at(engine.interface, dict(sizes)))
                for sizes in chosen
                if sizes not in there
            ]
            parts = with_variants(engine.parts, [*plain, *padded])
            report = replace(parts.report, notes=(*notes, *parts.report.notes))
            parts = replace(parts, report=report)
            made = Engine[Any](parts, max_contexts=self.options.max_contexts)
            self._keep(key, base, made)
        return made

    def _padded(self, engine: Engine, plan: BucketPlan | None) -> tuple[list[Variant], list[str]]:
        """The variants that runs of fewer rows are padded to, and what there is to say of them."""
        if plan is None:
            return [], []
        # here, because a hit must not wait for what only a build needs
        from .padded_variants import check_open, padded_variant

        check_open(engine.parts, plan.dim)
        found, notes, below = list[Variant](), [plan.note] if plan.note else [], 0
        for size in plan.sizes:
            sizes = plan.chosen(engine.interface.dims, size)
            plain = Variant(sizes, self._at(engine.interface, dict(sizes)))
            check = self.options.verify == "all"
            variant, note = padded_variant(engine, plan, plain, below, check=check)
            found.append(variant)
            notes.append(note)
            below = size
        return found, notes

    def _at(self, interface: Interface, sizes: NamedSizes) -> EngineParts:
        """The parts of the engine for these sizes alone."""
        self.tell("variant at " + ", ".join(f"{name} {size}" for name, size in sizes.items()))
        specs = interface.inputs_at(sizes)
        options = replace(self.options, shapes={spec.name: spec.shape for spec in specs})
        model = _closed(self.model, sizes)
        return replace(self, model=model, options=options, cache=False).engine().parts

    def _kept(self, key: str | None, base: str | None) -> Engine | None:
        """base: the key of the model's engine without variants."""
        whole = key_with_requests(key, base)
        return kept_engine(whole, self.target, self.options.max_contexts) if whole else None

    def _keep(self, key: str | None, base: str | None, engine: Engine) -> None:
        whole = key_with_requests(key, base)
        if whole:
            keep_engine(whole, engine)

    def _key(self, variants: Sequence[Chosen] = (), buckets: object = None) -> str | None:
        """Under what the engine is kept; None where it is not."""
        options = self.options
        if not self.cache or options.schedules is not None or options.require_tuned:
            return None
        if options.accuracy is not None:  # it has functions and data of the caller, and is timed
            return None
        passes = options.passes and [pass_identity(one).key for one in options.passes]
        if (passes and None in passes) or importer_of(self.model) is not None:
            return None
        digest = model_digest(self.model, _load_builder)
        constants = constants_digest(options.constants or {})
        if digest is None or constants is None:
            return None
        plain = {name: getattr(options, name) for name in ("strict", "verify", "tolerance")}
        asked = options.precision
        plain["precision"] = sorted(asked.items()) if isinstance(asked, Mapping) else asked
        if options.calibration is not None:
            plain["calibration"] = options.calibration.key
        shapes = dict(options.shapes or {})
        values = {"shapes": shapes, "constants": constants, "variants": variants, **plain}
        if passes is not None:
            values["passes"] = passes
        if buckets is not None:
            values["buckets"] = buckets
        return engine_key(digest, self.target, values)


def _closed(model: object, sizes: NamedSizes) -> object:
    """The model, at these sizes where it is a graph; `shapes` closes others."""
    # here, because a hit must not wait for what only a build needs
    from .ir.at_sizes import graph_at
    from .ir.ir import Graph

    if not isinstance(model, Graph):
        return model
    return graph_at(model, {dim: sizes[dim.name] for dim in model.dims})


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


def _load_builder() -> None:
    """Import what a build needs, which it will where a large file was not seen before."""
    import_module(f"{__package__}.compile_model")


def _silent(stage: str) -> None:
    """Discard a progress message."""


def _check_memory(engine: Engine, target: Target, max_bytes: int | None, contexts: int) -> None:
    """Raises: MemoryLimitError."""
    plan, dims = engine.memory_plan, engine.interface.dims
    peak = plan.peak_bytes(target.threads, contexts)
    if max_bytes is None or peak <= max_bytes:
        return
    with telling_assumed(dims):
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
