"""tw.build: a PrimFunc or a Schedule becomes a Kernel; tw.prove: just the proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..codegen.c.build import write_artifact
from ..codegen.lower.first_half import contraction
from ..runtime.compile import compile_shared
from ..runtime.host import host_target
from ..runtime.kernel import Kernel, accept_constants
from ..runtime.roofline import Work
from ..schedule.schedule import Schedule
from ..schedule.source import Chooser, ScheduleSource, as_source
from ..schedule.verdict import Verdict
from ..tir.errors import TargetError
from ..tir.func import PrimFunc
from ..tir.target import Target
from ..tir.work import bytes_moved, operations
from .check import check_chain, check_kernel
from .interpreted import interpreted
from .lower import lower_function, prove_schedule

Verify = Literal["all", "rewrites", "kernels", "off"]


def resolve_target(target: Target | str | None) -> Target:
    """The target that a caller names; this machine's CPU for None and "c". Raises: TargetError."""
    if isinstance(target, Target):
        return target
    return host_target() if target in (None, "c") else Target.parse(target)


def prove(sch: Schedule, target: Target | str | None = None) -> Verdict:
    """Prove, by P1 to P5, that the lowered nest of a schedule computes what its function
    defines.
    """
    return prove_schedule(sch, resolve_target(target))


def build(
    what: PrimFunc | Schedule,
    target: Target | str | None = None,
    *,
    schedules: ScheduleSource | Chooser | None = None,
    constants: Mapping[str, object] | None = None,
    strict: bool = False,
    verify: Verify = "all",
) -> Kernel:
    """Compile a function for a target: this machine's CPU by default.

    what: a PrimFunc, scheduled by `schedules` or else by the rule that recognises it; or a
    Schedule.
    constants: an array for each constant parameter; what depends on them alone is computed now.
    strict: no contraction, no re-association. verify: "all" and "kernels" run the kernel once on
    poisoned data against the reference.
    Raises: ScheduleError, TargetError, ArgumentError, CompilerNotFound, CheckError.
    """
    resolved = resolve_target(target)
    if resolved.kind == "python":
        func = what.func if isinstance(what, Schedule) else what
        return interpreted(func, resolved, constants or {})
    if resolved.kind != "c":
        raise TargetError(
            f"build: target '{resolved}' runs nothing; expected 'c' or 'python'.",
            code="build-target",
            hints=("tw.prove and kernel source need no run; tw.build(..., target='c').",),
        )
    lowered = lower_function(what, resolved, source=as_source(schedules), strict=strict)
    artifact = write_artifact(lowered.parts, resolved, notes="\n".join(lowered.schedule.steps))
    shared = compile_shared(artifact.source, resolved, name=artifact.name)
    original = lowered.schedule.original
    work = Work(operations(original), bytes_moved(original))
    kernel = Kernel.load(artifact, shared, constants, proof=lowered.verdict, work=work)
    if verify in ("all", "kernels"):
        check_chain(contraction(original, resolved, strict=strict), lowered.canonical)
        check_kernel(kernel, original, accept_constants(artifact, constants or {}))
    return kernel
