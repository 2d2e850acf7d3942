"""tw.build: a PrimFunc or a Schedule becomes a Kernel; tw.prove: just the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from ..runtime.call_result import CallResult
from ..runtime.kernel import Kernel
from ..runtime.model.coverage import TUNED
from ..schedule.schedule import Schedule
from ..schedule.source import Chooser, ScheduleSource
from ..schedule.verdict import Verdict
from ..tir.errors import TilewrightError, known_names
from ..tir.func import PrimFunc
from ..tir.instructions.instructions import INSTRUCTIONS
from ..tir.target.target import Target
from ..tir.te import te
from .backends.table import backend_of
from .check.chain import with_values
from .jobs import KernelJob
from .lower import prove_schedule
from .resolve_target import resolve_target

Verify = Literal["all", "rewrites", "kernels", "off"]


class UntunedKernelError(TilewrightError, ValueError):
    """A kernel was to be built from a tuned schedule only, and has none."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(
            f"build: '{kernel.name}' has no schedule that was tuned here: it is {kernel.tuning}.",
            code="build-untuned",
            hints=(
                "tw.tune(func, log=path) tunes it, schedules=tw.TuningLog(path) builds with that; "
                "or leave out require_tuned=True.",
            ),
        )


class BuildError(TilewrightError, TypeError):
    """What is to be built is none of the things that can be, or is to be built in no known way."""


def check_buildable(what: object, caller: str) -> None:
    """Refuse what is neither a function nor its schedule. Raises: BuildError."""
    if isinstance(what, PrimFunc | Schedule):
        return
    hints: tuple[str, ...] = ()
    if isinstance(what, te.Tensor):
        hints = ("te.func(inputs..., outputs..., name=...) makes a PrimFunc of tensors.",)
    raise BuildError(
        f"{caller}: got a {type(what).__name__}; expected a PrimFunc or a Schedule.",
        code="build-what",
        hints=hints,
    )


def _check_allowed(allow: Sequence[str], strict: bool) -> None:
    """Each name is that of an instruction with a liberty, and the build is not strict."""
    known = [name for name, unit in INSTRUCTIONS.items() if unit.asked_for]
    for name in (allow,) if isinstance(allow, str) else allow:
        if isinstance(allow, str) or name not in known:
            raise BuildError(
                f"build: allow names {name!r}; expected a tuple of instructions that take a "
                f"liberty: {known_names(str(name), known)}.",
                code="build-allow",
            )
        if strict:
            unit = INSTRUCTIONS[name]
            raise BuildError(
                f"build: allow names '{name}', which {unit.liberty}; expected no such instruction, "
                "since the build is strict.",
                code="build-allow-strict",
                hints=("leave out allow, or build without strict.",),
            )


def _check_verify(verify: str) -> None:
    if verify not in get_args(Verify):
        known = ", ".join(map(repr, get_args(Verify)))
        raise BuildError(
            f"build: verify is {verify!r}; expected one of {known}.",
            code="build-verify",
        )


def prove(sch: PrimFunc | Schedule, target: Target | str | None = None) -> Verdict:
    """Prove, by P1 to P5, that the lowered nest of a schedule, or a function's own plain loops,
    computes what its blocks define; where steps of the schedule changed these, their values are
    compared with those of the function's own as far as both are small. Raises: TargetError,
    BuildError.
    """
    resolved = resolve_target(target)
    check_buildable(sch, "prove")
    schedule = sch if isinstance(sch, Schedule) else Schedule(sch)
    return with_values(prove_schedule(schedule, resolved), schedule, resolved)


def build(
    what: PrimFunc | Schedule,
    target: Target | str | None = None,
    *,
    schedules: ScheduleSource | Chooser | None = None,
    constants: Mapping[str, object] | None = None,
    strict: bool = False,
    allow: Sequence[str] = (),
    verify: Verify = "all",
    require_tuned: bool = False,
) -> Kernel[CallResult]:
    """Compile a function for a target: this machine's CPU by default.

    what: a PrimFunc, scheduled by `schedules` or else by the rule that recognises it, and where our
    own checks refuse that, in a plainer way, which `kernel.notes` and a warning of the log say; or
    a Schedule.
    constants: an array for each constant parameter; what depends on them alone is computed now.
    strict: no contraction, no re-association. allow: instructions that a rule may use although
    their results differ from those of the definition, by name: ("vdpbf16ps",); a Schedule names its
    own.
    verify: "all" and "kernels" run the kernel on poisoned data of several kinds against the
    reference, where this machine can and the arrays are not too large (the kernel's `notes` say
    so). Without that run, a kernel whose proof is undecided is refused.
    require_tuned: refuse a kernel whose schedule was not tuned on this CPU; `kernel.tuning` says
    where it came from, and a warning of the log why `schedules` has none.
    A kernel for another processor ("c:neon" on x86, "c:avx512" where this one lacks that) is proved
    and written, but neither compiled nor run; one for a GPU ("cuda:sm_90a") is loaded at its first
    run, or `tw.emulated`.
    Raises: BuildError, DefinitionError, ScheduleError, TargetError, ProofError, ArgumentError,
    CompilerNotFound, CheckError.
    """
    resolved = resolve_target(target)
    check_buildable(what, "build")
    _check_verify(verify)
    _check_allowed(allow, strict)
    job = KernelJob(
        what,
        resolved,
        constants or {},
        schedules,
        strict,
        tuple(allow),
        is_checked=verify in ("all", "kernels"),
    )
    kernel = backend_of(resolved).build(job)
    if require_tuned and kernel.tuning.partition(":")[0] != TUNED:
        raise UntunedKernelError(kernel)
    return cast("Kernel[CallResult]", kernel)
