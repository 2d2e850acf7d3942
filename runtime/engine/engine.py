"""An Engine: a model, ready to run on arrays, with all there is to say about it.

An engine is immutable, and any number of threads may run it at once: each run borrows a frame of
memory from a pool, which grows to as many as run at the same time.

What a run does not need (files, profiles, checks, sources) is imported by the method that does, so
that a first result does not wait for it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from ...tir.output_file import writing
from ..arrays import ArgumentTypeError, Array
from ..call_names import join_names, outputs_by_name
from ..call_result import CallResult
from ..machine.host import default_threads
from ..machine.threads import checked_threads
from ..model.coverage import Coverage
from ..model.interface import TensorSpec
from ..model.report import EngineReport, MemoryPlan
from .context import Context, ProfiledFrame, ProgramCode, RunFrame, written_by
from .engine_code import EngineError, ReadCode
from .occupied import Occupied
from .parts import EngineParts, Variant
from .reader import EngineFile
from .size_counts import EngineStats, SizeCounts
from .sized_program import SizedProgram
from .specialiser import Build, Specialiser
from .variants import fits, let_serve, loaded, prepared, serving, with_variants

if TYPE_CHECKING:
    from ...tir.text.source_text import SourceText
    from ..model.profile import Profile
    from ..model.verification import Report

Reference = Callable[[Mapping[str, Array]], Mapping[str, Array]]
Loader = Callable[[EngineParts], ProgramCode]

_PROFILE_ROUNDS = 20


_bounded: weakref.WeakSet[Engine[Any]] = weakref.WeakSet()


def _free_places() -> None:
    """In a forked child nobody runs: the places that runs of the parent had are free."""
    for engine in _bounded:
        assert engine.max_contexts is not None
        engine._turn = threading.BoundedSemaphore(engine.max_contexts)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_places)


class Engine(Generic[CallResult]):
    """A model on arrays; make one with `tilewright.compile` or `tilewright.load`.

    `engine.run({"input": x})` returns a dict of new arrays; `engine(x)` takes the inputs in
    order, `engine(input=x)` by name.
    It pickles, with its compiled code and its weights.

    parts: everything that it consists of, as values; code: what runs them. report, memory_plan:
    what is known of it.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        reference: Reference | None = None,
        threads: int | None = None,
        max_contexts: int | None = None,
        load: Loader | None = None,
    ) -> None:
        """Load the code of the parts; compute what depends on constants alone where that is left.

        An engine for instructions that this machine lacks is not loaded: a run is refused.
        reference: computes the outputs from the inputs, for `verify`; by default the parts' own.
        load: makes of the parts what runs them; by default their code does.
        threads: of runs that do not say. max_contexts: the most runs at one time; others wait.
        Raises: LibraryError; EngineError where the parts hold no code, or for `max_contexts` below
        1; ArgumentTypeError, ArgumentValueError for threads that are no number of 1 or more.
        """
        if max_contexts is not None and (type(max_contexts) is not int or max_contexts < 1):
            raise EngineError(
                f"engine: max_contexts is {max_contexts!r}; expected at least 1, or None.",
                code="engine-contexts",
            )
        self.parts = parts = prepared(parts)
        self.max_contexts = max_contexts
        self._load = load
        code = loaded(parts) if load is None else load(parts)
        self.interface = code.interface
        self._counts = SizeCounts()
        self._specialiser: Specialiser | None = None
        self.code = code
        if self.interface.dims:
            self.code = SizedProgram(code, self._counts)
            for variant in parts.variants if load is None else ():
                let_serve(self.code, parts, variant)
        self._checks = self.code.checks
        self._reference = reference if reference is not None else parts.reference
        self._occupied: Occupied | None = None
        self._default_threads = None if threads is None else checked_threads(threads, self.name)
        self._frames: deque[RunFrame] = deque()
        self._turn: AbstractContextManager[object] = nullcontext()
        if max_contexts is not None:
            self._turn = threading.BoundedSemaphore(max_contexts)
            _bounded.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        from .writer import to_bytes

        data = to_bytes(self.parts)
        read = self.parts.code.read
        return _from_bytes, (data, read, self._default_threads, self.max_contexts, self._load)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The model's name."""
        return self.parts.artifact.name

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What a run takes."""
        return self.interface.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What a run gives."""
        return self.interface.outputs

    @property
    def source(self) -> SourceText:
        """The generated source text; empty where nothing was compiled."""
        from ...tir.text.source_text import SourceText  # a run needs no source

        return SourceText(self.parts.code.source)

    @property
    def plan(self) -> str:
        """The steps of a run, in order, and where their arrays lie; of a GPU also the streams."""
        return self.parts.code.plan

    @property
    def memory_plan(self) -> MemoryPlan:
        """How much memory runs take, promised before the first; its picture is a map of it."""
        return replace(self.parts.plan, tensors=self.parts.code.memory.tensors)

    @property
    def tuning(self) -> Coverage:
        """Which kernels have a tuned schedule, and which have not."""
        return self.parts.report.coverage

    @property
    def stats(self) -> EngineStats:
        """At which sizes it ran, where runs decide them, and which variants served them."""
        counted = self._counts.stats(dim.name for dim in self.interface.dims)
        errors = () if self._specialiser is None else self._specialiser.errors
        return replace(counted, variants=len(self.parts.variants), errors=errors)

    def explain(self) -> EngineReport:
        """What each kernel is and how it was checked, and what was not done, and why; its picture
        has the launches of a run in order.
        """
        order = tuple(launch.function for launch in self.parts.artifact.launches)
        variants = tuple((str(one), one.parts.report) for one in self.parts.variants)
        return replace(self.parts.report, order=order, variants=variants)

    def __repr__(self) -> str:
        lines = [
            f"Engine {self.interface}",
            f"  target: {self.parts.artifact.target}",
            f"  memory: {self.memory_plan}",
            *(f"  {line}" for line in str(self.explain()).splitlines()[:2]),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ...tir.text.html import details, plain

        memory = details("memory", self.memory_plan._repr_html_())
        return plain(repr(self)) + details("kernels", self.explain()._repr_html_()) + memory

    # -- runs ------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Mapping[str, object],
        *,
        outputs: Iterable[str] | None = None,
        out: Mapping[str, object] | None = None,
        threads: int | None = None,
    ) -> dict[str, Array]:
        """Run on arrays by name; the outputs by name, new arrays but for those that `out` gives.

        outputs: the names of those to return; all by default. threads: default
        TILEWRIGHT_NUM_THREADS, else the CPUs allowed to this process now; the result has the same
        bits at any number.
        Raises: ArgumentTypeError, ArgumentValueError; IndexRangeError, an IndexError, after a run
        in which an index that is data lay outside of its range.
        """
        arrays = self.interface.accept(inputs, out)
        if out:
            self._check_apart(arrays[1])
        count = self._threads(threads)
        with self._turn:
            frame = self._borrow(count)
            try:
                frame.point(*arrays)
                frame.run(count)
                made = written_by(frame, self.interface, arrays[1])
            finally:
                self._frames.append(frame)
        return self.interface.named(made, outputs)

    def run_unchecked(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int
    ) -> None:
        """Run on arrays in order, at which nobody looks: the caller has seen to their types, their
        shapes, that they are dense and that outputs share no memory with others. For callers who
        know that of each call, such as a compiler that guards its calls.

        Raises: IndexRangeError, as `run` does.
        """
        with self._turn:
            frame = self._borrow(threads)
            try:
                frame.point(inputs, outputs)
                frame.run(threads)
            finally:
                self._frames.append(frame)

    def __call__(
        self, *arrays: object, out: object = None, threads: int | None = None, **named: object
    ) -> CallResult:
        """Run on the inputs, in order or by name; the output, or a tuple where there are several.

        out: what to write into: the output, a tuple of all outputs, or a dict of some by name.
        Raises: ArgumentTypeError, ArgumentValueError.
        """
        if len(arrays) != len(self.inputs) and not named:
            raise ArgumentTypeError(
                f"{self.name}: {len(arrays)} arrays given; expected {len(self.inputs)}: "
                f"{', '.join(map(str, self.inputs))}.",
                code="engine-count",
            )
        inputs = join_names(self.name, [spec.name for spec in self.inputs], arrays, named)
        outputs = outputs_by_name(self.name, [spec.name for spec in self.outputs], out)
        results = tuple(self.run(inputs, out=outputs, threads=threads).values())
        return cast("CallResult", results[0] if len(results) == 1 else results)

    def context(self, threads: int | None = None) -> Context:
        """Memory of its own for runs on `threads` threads, to be bound to arrays.

        Raises: ArgumentTypeError, ArgumentValueError for threads that are no number of 1 or more.
        """
        count = self._threads(threads)
        return Context(self.interface, self.code.frame(count), count, self._check_apart)

    def random_inputs(
        self, seed: int = 0, *, sizes: Mapping[str, int] | None = None
    ) -> dict[str, Array]:
        """Random arrays that a run takes: normal numbers; integers that are indices are 0 and 1.

        sizes: of what a run decides, by name; what is left out is as it usually is.
        Raises: ArgumentValueError for a size that the engine has not, or that is out of bounds.
        """
        from ..model.verification import random_inputs

        specs = self.interface.inputs_at(sizes or {})
        return random_inputs(specs, seed, indices=bool(self._checks))

    def verify(
        self,
        inputs: Mapping[str, Array] | None = None,
        *,
        against: Literal["reference"] = "reference",
        atol: float | None = None,
        rtol: float | None = None,
        seed: int = 0,
    ) -> Report:
        """Run on the inputs and compare with the reference in float64; an output that is off by
        more than its type explains is compared with what the model's own types explain, too.

        inputs: random ones by default, at the usual sizes, at those of each variant, and at the
        least that it pads. atol, rtol: see `compare_outputs`.
        Raises: EngineError where the engine has no reference, or for another `against`;
        EngineFileError where the file that it came from holds a damaged one; ArgumentTypeError,
        ArgumentValueError.
        """
        if against != "reference":
            raise EngineError(
                f"verify: against is {against!r}; expected 'reference'.", code="engine-against"
            )
        if self._reference is None:
            raise EngineError(
                f"verify: '{self.name}' carries no {against} to compare with.",
                code="engine-reference",
                hints=("engine.save(path, keep_weights=True) keeps it in the file.",),
            )
        if inputs is not None:
            return self._compared(dict(inputs), self._reference, atol, rtol)
        found = self._compared(self.random_inputs(seed), self._reference, atol, rtol)
        for at, sizes in (pair for variant in self.parts.variants for pair in variant.ends):
            given = self.random_inputs(seed, sizes=sizes)
            report = self._compared(given, self._reference, atol, rtol)
            found = found.joined(report, f"at {at}")
        return found

    def _compared(
        self,
        given: dict[str, Array],
        reference: Reference,
        atol: float | None,
        rtol: float | None,
    ) -> Report:
        """What a run on these inputs gives, beside the reference."""
        from ..model.verification import compare_in_own_types, compare_outputs

        got, expected = self.run(given), reference(given)
        accepted, kept = self.parts.report.tolerance, self.parts.reference
        report = compare_outputs(self.name, got, expected, atol, rtol, tolerance=accepted)
        if report or kept is None or not (atol is None and rtol is None):
            return report
        return compare_in_own_types(self.name, got, expected, kept.model(), given, accepted)

    def profile(
        self,
        inputs: Mapping[str, object] | None = None,
        *,
        threads: int | None = None,
        rounds: int = _PROFILE_ROUNDS,
        roofline: bool = False,
    ) -> Profile:
        """Time each launch alone; random inputs by default. On a GPU by the device's clock, copies
        from and to the host not counted.

        roofline: also the time that this machine's CPU allows each launch at best; measuring its
        limits takes about a second, once per machine.
        Raises: EngineError where the engine is interpreted or emulated, and for a roofline of a GPU
        or of an engine that keeps no program; ArgumentTypeError, ArgumentValueError; NoDevice;
        CompilerNotFound.
        """
        count = self._threads(threads)
        frame = self.code.frame(count)
        if not isinstance(frame, ProfiledFrame):
            raise EngineError(
                f"profile: '{self.name}' is interpreted or emulated, launch by launch is not "
                "timed; expected an engine of a compiled target.",
                code="engine-profile",
            )
        given = self.random_inputs() if inputs is None else inputs
        arrays = self.interface.accept(given)  # kept here until all is timed
        frame.point(*arrays)
        limits = self._launch_limits(count, arrays[0]) if roofline else None
        found = frame.profile(count, rounds)
        return found if limits is None else found.with_limits(limits)

    def _launch_limits(self, threads: int, inputs: Sequence[Array]) -> tuple[float, ...]:
        """For each launch, in order, the seconds that this machine's CPU allows it at best."""
        from ..measure.launch_limits import launch_limits

        sizes = tuple(inputs[number].shape[axis] for number, axis in self.interface.told)
        kept = serving(self.parts, sizes).plain
        if kept is None or self.parts.code.c_program is None:
            raise EngineError(
                f"profile: the limits of '{self.name}' are not known; expected an engine of a CPU "
                "that keeps its program.",
                code="engine-roofline",
                hints=("engine.profile() times the launches alone.",),
            )
        named = {spec.name: array for spec, array in zip(self.inputs, inputs, strict=True)}
        return launch_limits(kept.model().program_for(named), threads)

    def run_by(self, load: Loader) -> Engine:
        """The same engine, run by what `load` makes of its parts."""
        return Engine(
            self.parts,
            reference=self._reference,
            threads=self._default_threads,
            max_contexts=self.max_contexts,
            load=load,
        )

    def log_sizes(self, path: str | Path) -> None:
        """Add the runs at each size since the last call to a log, for `tilewright.frequent_sizes`.

        Raises: OutputFileError.
        """
        from .size_log import append_sizes  # a run writes no log

        runs = self._counts.not_told(dim.name for dim in self.interface.dims)
        append_sizes(Path(path), self.name, runs)

    # -- variants --------------------------------------------------------------------------------

    def add_variant(self, variant: Variant) -> None:
        """Let a variant serve the runs of its sizes that begin from now on; one caller at a time.

        Raises: EngineError where it is not one of this engine; LibraryError.
        """
        if not isinstance(self.code, SizedProgram) or not fits(self.parts, variant):
            raise EngineError(
                f"engine: a variant at {variant} is not one of '{self.name}'; expected the same "
                "model at sizes that it may have.",
                code="engine-variant",
            )
        parts = with_variants(self.parts, [variant])
        let_serve(self.code, parts, parts.variants[-1])
        self.parts = parts

    def specialise(self, most: int, build: Build) -> None:
        """Make variants for the `most` sizes that come most often, in the background.

        build: makes the parts of one, for these sizes, and calls its second argument before each
        stage.
        """
        names = tuple(dim.name for dim in self.interface.dims)
        gone = weakref.ref(self)
        self._specialiser = Specialiser(self._counts, names, most, build, gone)

    # -- ways out --------------------------------------------------------------------------------

    def save(self, path: str | Path, *, keep_weights: bool = True) -> Path:
        """Write the engine to a file that `tilewright.load` reads; the file.

        A file that is there is replaced in one step: engines that were loaded from it keep the old
        one, and a reader finds the old or the new one, whole. A link is followed.

        keep_weights: also the program before schedules, the original weights and the reference, so
        that it can be built anew on another machine, and verified there.
        Raises: OutputFileError; EngineFileError where they are damaged in the file that the engine
        came from.
        """
        from .writer import write_file

        file = Path(path)
        with writing(file):
            write_file(self.parts, file, keep_weights=keep_weights)
        return file

    def export_c(self, folder: str | Path) -> Path:
        """Write the model as C that needs nothing else: model.c, model.h, weights.bin, Makefile.

        The folder is made where it is not there. Returns it. Variants are in it, each for its own
        sizes: one that pads runs of fewer rows here leaves these to the code for all sizes there.
        Raises: ExportError where the engine holds no C; OutputFileError.
        """
        from .export_c import export_c

        return export_c(self.parts, Path(folder))

    def _check_apart(self, outputs: Sequence[Array]) -> None:
        """Refuse arrays that are the caller's weights. Raises: ArgumentValueError."""
        if self._occupied is None:
            kept = (self.parts.plain, self.parts.reference)
            # what a file holds is read-only, and read when it is needed
            named = [m.constants for m in kept if m is not None and type(m.constants) is dict]
            self._occupied = Occupied(named)
        self._occupied.check(self.name, [spec.name for spec in self.outputs], outputs)

    def _borrow(self, threads: int) -> RunFrame:
        try:
            return self._frames.pop()
        except IndexError:
            return self.code.frame(threads)

    def _threads(self, threads: int | None) -> int:
        count = threads if threads is not None else self._default_threads
        return default_threads() if count is None else checked_threads(count, self.name)


def _from_bytes(
    data: bytes,
    read: ReadCode,
    threads: int | None,
    max_contexts: int | None,
    load: Loader | None,
) -> Engine:
    parts = EngineFile(data).parts(read)
    return Engine(parts, threads=threads, max_contexts=max_contexts, load=load)
