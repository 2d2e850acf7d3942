"""A function becomes a Kernel by way of lowered code: scheduled, proved, written, loaded, checked;
a schedule whose kernel fails its check gives way to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from ..codegen.artifact import Written
from ..codegen.lower.lower import contraction
from ..codegen.lower.split_prepare import Prepared
from ..runtime.arrays import Array
from ..runtime.kernel import Kernel, accept_constants
from ..runtime.kernel_code import Code
from ..runtime.log import log
from ..runtime.measure.roofline import Work
from ..schedule.schedule import Schedule
from ..schedule.source import as_source
from ..tir.target.target import Target
from ..tir.work.work import bytes_moved, integer_operations, operations
from .check.budget import unchecked_because
from .check.chain import check_chain
from .check.check import CheckError, check_kernel
from .check.unproved import ProofError, unproved
from .check.ways import Way, Ways
from .jobs import KernelJob
from .lower import lower_function

W = TypeVar("W", bound=Written)


class KernelWriter(Protocol[W]):
    """What a back end that takes lowered code does with one function of it."""

    def why_not_run(self, target: Target) -> str | None:
        """Why this machine does not run its code; None: it does."""
        ...

    def write(self, parts: Prepared, target: Target, notes: str = "") -> W:
        """The source of a lowered function; notes: for a comment. Raises: TargetError."""
        ...

    def load(
        self, artifact: W, constants: Mapping[str, object]
    ) -> tuple[Code, Mapping[str, Array]]:
        """What runs the artifact, or refuses to where this machine cannot, and the arrays that its
        constants are bound to. Raises: ArgumentError for constants that do not fit.
        """
        ...


def build_kernel(writer: KernelWriter[W], job: KernelJob) -> Kernel:
    """The kernel of a function, or of its schedule, in the best way that passes our checks.

    Raises: as `tw.build`.
    """
    what, target, strict = job.what, job.target, job.strict
    if isinstance(what, Schedule):
        return _built(writer, Way(lower_function(what, target, strict=strict)), job)
    ways = Ways(what, target, as_source(job.schedules), strict=strict, allow=job.allow)
    while True:
        try:
            return _built(writer, ways.best(), job)
        except CheckError as error:
            ways.give_up(f"its kernel failed the check: {error.message}", error)
        except ProofError as error:
            ways.give_up("its kernel is neither proved nor checked", error)


def _built(writer: KernelWriter[W], way: Way, job: KernelJob) -> Kernel:
    """The kernel of a lowered function, checked. Raises: CheckError, ProofError."""
    original = way.lowered.schedule.original
    too_large = unchecked_because(original) if job.is_checked else None
    notes = (*way.notes(original.name), *(() if too_large is None else (too_large,)))
    if job.schedules is not None and way.lowered.schedule.origin in ("rule", "similar"):
        notes = (*notes, f"schedule: {way.tuning}")
        log.warning("'%s' has no schedule that was tuned here: %s", original.name, way.tuning)
    kernel = _kernel(writer, way, job, notes)
    runs_here = writer.why_not_run(kernel.artifact.target) is None
    if job.is_checked and runs_here and too_large is None:
        check_chain(contraction(original, job.target, strict=job.strict), way.lowered.canonical)
        bound = accept_constants(kernel.artifact, job.constants)
        check_kernel(kernel, original, bound, strict=job.strict)
    elif error := unproved({original.name: way.lowered.verdict}, runs_here=runs_here):
        raise error
    return kernel


def _kernel(writer: KernelWriter[W], way: Way, job: KernelJob, notes: tuple[str, ...]) -> Kernel:
    """The code of a lowered function, written and loaded."""
    lowered = way.lowered
    original = lowered.schedule.original
    integers = integer_operations(original)
    work = Work(operations(original) + integers, bytes_moved(original), integers)
    written = writer.write(lowered.parts, job.target, notes="\n".join(lowered.schedule.steps))
    code, bound = writer.load(written, job.constants)
    return Kernel(
        written,
        code,
        proof=lowered.verdict,
        work=work,
        notes=notes,
        bound=bound,
        tuning=way.tuning,
        schedule=lowered.schedule.copy(),
    )
