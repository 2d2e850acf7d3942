"""tw.build: a PrimFunc or a Schedule becomes a Kernel; tw.prove: just the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ..codegen.c.build import write_artifact
from ..codegen.cuda.build import write_cuda
from ..codegen.lower.lower import contraction
from ..runtime.cuda.device.availability import Available, availability
from ..runtime.cuda.device.code import DeviceCode
from ..runtime.engine.foreign import ForeignCode
from ..runtime.kernel import Code, Kernel, accept_constants
from ..runtime.machine.host import why_not_run
from ..runtime.measure.roofline import Work
from ..runtime.toolchain.compile import compile_shared
from ..schedule.schedule import Schedule
from ..schedule.source import Chooser, ScheduleSource, as_source
from ..schedule.verdict import Verdict
from ..tir.errors import TargetError, TilewrightError, known_names
from ..tir.func import PrimFunc
from ..tir.instructions.instructions import INSTRUCTIONS
from ..tir.target import Target
from ..tir.te import te
from ..tir.work.work import bytes_moved, operations
from .check.budget import unchecked_because
from .check.chain import check_chain, with_values
from .check.check import CheckError, check_kernel
from .check.unproved import ProofError, unproved
from .check.ways import Way, Ways
from .interpreted import interpreted
from .lower import Lowered, lower_function, prove_schedule
from .resolve_target import resolve_target

Verify = Literal["all", "rewrites", "kernels", "off"]


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
) -> Kernel:
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
    A kernel for another processor ("c:neon" on x86, "c:avx512" where this one lacks that) is proved
    and written, but neither compiled nor run; one for a GPU ("cuda:sm_90a") is loaded at its first
    run, or `tw.emulated`.
    Raises: BuildError, DefinitionError, ScheduleError, TargetError, ProofError, ArgumentError,
    CompilerNotFound, CheckError.
    """
    resolved = resolve_target(target)
    check_buildable(what, "build")
    _check_verify(verify)
    how = _How(resolved, strict, verify in ("all", "kernels"))
    _check_allowed(allow, strict)
    if resolved.kind == "python":
        func = what.func if isinstance(what, Schedule) else what
        return interpreted(func, resolved, constants or {})
    if resolved.kind not in ("c", "cuda"):
        raise TargetError(
            f"build: target '{resolved}' runs nothing; expected 'c', 'cuda' or 'python'.",
            code="build-target",
            hints=("tw.prove and kernel source need no run; tw.build(..., target='c').",),
        )
    if isinstance(what, Schedule):
        return _built(Way(lower_function(what, resolved, strict=strict)), constants or {}, how)
    ways = Ways(what, resolved, as_source(schedules), strict=strict, allow=allow)
    while True:
        try:
            return _built(ways.best(), constants or {}, how)
        except CheckError as error:
            ways.give_up(f"its kernel failed the check: {error.message}", error)
        except ProofError as error:
            ways.give_up("its kernel is neither proved nor checked", error)


@dataclass(frozen=True, slots=True)
class _How:
    """Options of a build. checked: where this machine runs the kernel."""

    target: Target
    strict: bool
    checked: bool


def _built(way: Way, constants: Mapping[str, object], how: _How) -> Kernel:
    """The kernel of a lowered function, checked. Raises: CheckError, ProofError."""
    original = way.lowered.schedule.original
    too_large = unchecked_because(original) if how.checked else None
    notes = (*way.notes(original.name), *(() if too_large is None else (too_large,)))
    kernel = _kernel(way.lowered, how.target, constants, notes)
    runs_here = _runs_here(kernel)
    if how.checked and runs_here and too_large is None:
        check_chain(contraction(original, how.target, strict=how.strict), way.lowered.canonical)
        bound = accept_constants(kernel.artifact, constants)
        check_kernel(kernel, original, bound, strict=how.strict)
    elif error := unproved({original.name: way.lowered.verdict}, runs_here=runs_here):
        raise error
    return kernel


def _kernel(
    lowered: Lowered, target: Target, constants: Mapping[str, object], notes: tuple[str, ...]
) -> Kernel:
    """The code of a lowered function, written and, where it runs here, compiled."""
    steps, original = "\n".join(lowered.schedule.steps), lowered.schedule.original
    work = Work(operations(original), bytes_moved(original))
    if target.kind == "cuda":
        written = write_cuda(lowered.parts, target, notes=steps)
        bound = accept_constants(written, constants)
        code: Code = DeviceCode(written, bound)
        return Kernel(written, code, proof=lowered.verdict, work=work, notes=notes, bound=bound)
    artifact = write_artifact(lowered.parts, target, notes=steps)
    if why_not_run(artifact.target) is not None:
        code = ForeignCode(artifact)
        return Kernel(artifact, code, proof=lowered.verdict, work=work, notes=notes)
    shared = compile_shared(artifact.source, artifact.target, name=artifact.name)
    return Kernel.load(artifact, shared, constants, proof=lowered.verdict, work=work, notes=notes)


def _runs_here(kernel: Kernel) -> bool:
    """Whether this machine runs a kernel."""
    if kernel.artifact.target.kind == "cuda":
        return isinstance(availability(), Available)
    return not isinstance(kernel.code, ForeignCode)
