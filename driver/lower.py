"""From a function to code that a back end can emit, in the order that stands here, once: rule or
log; the passes to the nest; the proof; the passes of the target; the proof of what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen.lower.lower import contraction, lower_parts, lower_to_nest
from ..codegen.lower.split_prepare import Prepared
from ..schedule.canonical import canonical_form
from ..schedule.errors import ScheduleError
from ..schedule.proof.forms.budget import MAX_OPERATIONS
from ..schedule.proof.idle_barriers import without_idle_barriers
from ..schedule.proof.in_order import reordered_sums
from ..schedule.proof.lowered.prove import prove_lowered
from ..schedule.proof.prove import prove
from ..schedule.rules.default import default_schedule, rule_for
from ..schedule.schedule import Schedule
from ..schedule.verdict import PROVED, REFUTED, Verdict
from ..tir.analysis.bounds import known_interval
from ..tir.analysis.data import loose_indices
from ..tir.dim import Dim
from ..tir.errors import InternalError, IRError, TilewrightError
from ..tir.func import PrimFunc
from ..tir.instructions.instructions import INSTRUCTIONS
from ..tir.stmt import For
from ..tir.target.target import Target
from ..tir.text.equal import equal
from ..tir.text.printer import print_expr
from ..tir.visit import loads, walk
from .check.clock import Clock, Laps

NEST = "P1 to P5 of the nest before vectorising, against"
CODE = "P4 and P5 once more of the lowered code"
MOST_TENSORS = 200  # that a function keeps: the scope of each stands within that of the one before


class DefinitionError(TilewrightError, IndexError):
    """A function, as it was defined, reads outside of a tensor, whatever its schedule."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """One function on its way to code.

    schedule: what was asked for, and how; rule: the rule that made the schedule, or its origin.
    canonical: the blocks that the nest must compute; nest: what the passes to the nest make.
    verdict: the proof that the nest computes the canonical form, and that the parts stay in bounds
    and free of races. parts: `prepare` and `run`, of stage LOWERED. seconds: what each step took.
    strict: sums are in the order of the definition.
    """

    schedule: Schedule
    rule: str
    canonical: PrimFunc
    nest: PrimFunc
    verdict: Verdict
    parts: Prepared
    seconds: Laps
    strict: bool = False


def choose_schedule(
    what: PrimFunc | Schedule,
    target: Target,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> tuple[Schedule, str]:
    """The schedule to build and who made it: the caller, or the rule that fits.

    allow: the tensor intrinsics with a liberty that a rule may use.
    """
    if isinstance(what, Schedule):
        return what, what.origin
    made = default_schedule(what, target, strict=strict, allow=allow)
    return made, rule_for(what, target, strict=strict, allow=allow).name


def prove_schedule(schedule: Schedule, target: Target, *, strict: bool = False) -> Verdict:
    """The proof that the lowered nest of a schedule computes what its function defines."""
    scheduled = contraction(schedule.func, target, strict=strict)
    canonical = canonical_form(scheduled)
    verdict = prove(lower_to_nest(scheduled), canonical)
    original = contraction(schedule.original, target, strict=strict)
    return verdict.over(_against(original, canonical))


def lower_function(
    what: PrimFunc | Schedule,
    target: Target,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
    proof_operations: int = MAX_OPERATIONS,
) -> Lowered:
    """Schedule, lower and prove one function in one way, and write its code; `Ways` knows others.

    strict: no contraction, and each sum of floats in the order of its definition: the roundings are
    those of the definition. Rules keep that order; a schedule that does not is refused. allow: the
    tensor intrinsics with a liberty that a rule may use. proof_operations: of isl, after which the
    proof of the nest is left undecided.
    Raises: ScheduleError, TargetError; DefinitionError for a function that reads outside of a
    tensor; InternalError when the proof refutes what legality allowed.
    """
    clock = Clock()
    _check_tensors(what if isinstance(what, PrimFunc) else what.original)
    schedule, rule = choose_schedule(what, target, strict=strict, allow=allow)
    _check_indices(schedule.original)
    clock.lap("schedule")
    scheduled = contraction(schedule.func, target, strict=strict)
    canonical = canonical_form(scheduled)
    nest = lower_to_nest(scheduled)
    if target.has_grid:
        nest = without_idle_barriers(nest)
    clock.lap("lower")
    verdict = prove(nest, canonical, proof_operations)
    _check_verdict(schedule, verdict)
    original = contraction(schedule.original, target, strict=strict)
    verdict = verdict.over(_against(original, canonical))
    if strict:
        _check_order(schedule, canonical, nest)
    clock.lap("prove")
    parts = lower_parts(nest, target)
    clock.lap("lower to code")
    verdict = verdict.joined(prove_parts(parts))
    clock.lap("prove")
    return Lowered(schedule, rule, canonical, nest, verdict, parts, clock.laps, strict)


def _against(original: PrimFunc, canonical: PrimFunc) -> str:
    """What a nest was proved against: the function's own blocks, or what the schedule made of them,
    which is for numbers to compare.
    """
    if equal(canonical_form(original), canonical):
        return f"{NEST} the function's own blocks"
    return f"{NEST} its blocks as the schedule left them"


def prove_parts(parts: Prepared) -> Verdict:
    """The proof that lowered code stays inside of its buffers and is free of races.

    Raises: InternalError where it does not: a pass behind the proof of the nest is wrong.
    """
    found = Verdict(PROVED).over(CODE)
    for func in (parts.prepare, parts.run):
        if func is not None:
            found = found.joined(prove_lowered(func))
    if found.status == REFUTED:
        first, *others = found.failures
        raise InternalError(
            f"proof: lowering broke '{parts.run.name}': {first}.",
            code="proof-lowered",
            where="\n".join(f"and {other}" for other in others),
        )
    return found


def _check_tensors(func: PrimFunc) -> None:
    """Refuse a function of more tensors than the passes can stand one within the other."""
    count = len(func.allocations)
    if count > MOST_TENSORS:
        raise IRError(
            f"build: '{func.name}' computes {count} tensors besides its outputs; expected at most "
            f"{MOST_TENSORS}.",
            code="build-tensors",
            hints=(
                "make several functions, each the input of the next; tw.compile does so with a "
                "model.",
                "a te.compute may hold many operations: its expression is cut where it is high.",
            ),
        )


def _check_verdict(schedule: Schedule, verdict: Verdict) -> None:
    func = schedule.func
    if verdict.status == "refuted":
        _check_bounds(schedule.original)
        raise InternalError(
            f"proof: the nest of '{func.name}' does not compute what it defines: "
            f"{'; '.join(map(str, verdict.failures))}.",
            code="proof-refuted",
            where=lambda: f"in {func.name}:\n{func}",
        )


def _check_order(schedule: Schedule, canonical: PrimFunc, nest: PrimFunc) -> None:
    """Refuse a schedule that does not keep the order of a sum, or its roundings."""
    _check_instructions(schedule, nest)
    found = reordered_sums(schedule.original, canonical, nest)
    if not found:
        return
    func, runs = schedule.func, [str(run) for run in found[0].iterations]
    raise ScheduleError(
        f"build: the schedule of '{func.name}' changes the order of a sum: {found[0].message}; "
        "expected that of its definition, since the build is strict.",
        code="strict-order",
        where=lambda: f"in {func.name}:\n{func}",
        notes=(f"{' runs before '.join(runs)}.",) if runs else (),
        hints=(
            "leave out the steps that reorder its reduction or take it in parts, or build without "
            "strict.",
        ),
    )


def _check_instructions(schedule: Schedule, nest: PrimFunc) -> None:
    """Refuse an instruction that rounds in its own way."""
    func = schedule.func
    for loop in (x for x in walk(nest.body) if isinstance(x, For) and x.intrinsic):
        intrinsic = INSTRUCTIONS[loop.intrinsic]
        if intrinsic.liberty:
            raise ScheduleError(
                f"build: loop '{loop.var.name}' of '{func.name}' is computed by "
                f"'{intrinsic.name}', which {intrinsic.liberty}; expected the order and the "
                "roundings of the definition, since the build is strict.",
                code="strict-intrinsic",
                where=lambda: f"in {func.name}:\n{func}",
                hints=(f'leave out tensorize(..., "{intrinsic.name}"), or build without strict.',),
            )


def check_definition(func: PrimFunc) -> None:
    """Refuse a function that reads outside of a tensor, or where data says, whatever it says: what
    stands in for `lower_function` where nothing is lowered. Raises: DefinitionError.
    """
    _check_indices(func)
    _check_bounds(func)


def _check_indices(func: PrimFunc) -> None:
    """Refuse a function that reads where data says, whatever it says: te refuses it, a text that is
    parsed may hold it.
    """
    ranges = {axis.var: (0, axis.extent - 1) for block in func.blocks for axis in block.iters}
    for block in func.blocks:
        for load in loads(block.body):
            for position in loose_indices(load, lambda plain: known_interval(plain, ranges)):
                size = load.buffer.extents[position]
                last = f"{size.name}-1" if isinstance(size, Dim) else size - 1
                raise DefinitionError(
                    f"build: block '{block.name}' of '{func.name}' reads dimension {position} of "
                    f"'{load.buffer.name}' at {print_expr(load.indices[position])}, which is data; "
                    f"expected it clamped to 0 .. {last}.",
                    code="definition-data",
                )


def _check_bounds(func: PrimFunc) -> None:
    """Refuse a function whose own plain loops leave a tensor, before a schedule is blamed."""
    form = canonical_form(func)
    outside = [f for f in prove(form, form).failures if f.property == "P4"]
    if outside:
        failure = outside[0]
        raise DefinitionError(
            f"build: the definition of '{func.name}' is wrong: {failure.message}.",
            code="definition-refuted",
            notes=(f"found by {failure.property}; {' and '.join(map(str, failure.iterations))}.",),
            hints=("te.select(inside, tensor[...], value) reads only where `inside` holds.",),
        )
