"""From a scheduled function to code that a back end can emit, in the order that stands here, once:

rule or log; codegen's first half (contraction, initialisation, partition, storage, barriers); the proof; codegen's second half.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..codegen.lower.pipeline import first_half, second_half
from ..codegen.lower.split_prepare import split_prepare
from ..schedule.canonical import canonical_form
from ..schedule.proof.prove import Verdict, prove
from ..schedule.rules.default import default_schedule, rule_for
from ..schedule.schedule import Schedule
from ..schedule.source import ScheduleSource
from ..tir.errors import InternalError
from ..tir.func import PrimFunc
from ..tir.target import Target


@dataclass(frozen=True, slots=True)
class Lowered:
    """One function on its way to code.

    original, schedule: what was asked for and how; rule: the rule that made the schedule, or its origin.
    canonical: the blocks that the nest must compute; nest: the function after codegen's first half; verdict: the proof.
    prepare, run: the function after the second half, in two parts; prepare is None where nothing depends on constants alone.
    seconds: what each part took.
    """

    original: PrimFunc
    schedule: Schedule
    rule: str
    canonical: PrimFunc
    nest: PrimFunc
    verdict: Verdict
    prepare: PrimFunc | None
    run: PrimFunc
    seconds: tuple[tuple[str, float], ...]


def choose_schedule(what: PrimFunc | Schedule, target: Target, source: ScheduleSource | None) -> tuple[Schedule, str]:
    """The schedule to build, and who made it: the caller, the source, or the rule that recognises the function."""
    if isinstance(what, Schedule):
        return what, what.origin
    found = source.schedule(what, target) if source is not None else None
    if found is not None:
        return found, found.origin
    return default_schedule(what, target), rule_for(what).name


def lower_function(
    what: PrimFunc | Schedule,
    target: Target,
    *,
    source: ScheduleSource | None = None,
    strict: bool = False,
) -> Lowered:
    """Schedule, lower and prove one function.

    strict: no contraction; the roundings are those of the definition.
    Raises: ScheduleError, TargetError; InternalError when the proof refutes what legality allowed.
    """
    clock = _Clock()
    schedule, rule = choose_schedule(what, target, source)
    clock.lap("schedule")
    scheduled = first_half(target, strict=strict).contraction(schedule.func)
    canonical = canonical_form(scheduled)
    nest = first_half(target, strict=strict)(schedule.func)
    clock.lap("lower")
    verdict = prove(nest, canonical)
    clock.lap("prove")
    check_verdict(schedule.func, verdict)
    parts = split_prepare(nest)
    half = second_half(target)
    prepare = None if parts.prepare is None else half(parts.prepare)
    run = half(parts.run)
    clock.lap("emit")
    return Lowered(
        schedule.original, schedule, rule, canonical, nest, verdict, prepare, run, tuple(clock.laps)
    )


def check_verdict(func: PrimFunc, verdict: Verdict) -> None:
    """Raise InternalError when the nest does not compute what the function defines."""
    if verdict.status == "refuted":
        raise InternalError(
            f"proof: the nest of '{func.name}' does not compute its canonical form: {verdict}",
            code="proof-refuted",
            where=lambda: f"in {func.name}:\n{func}",
        )


class _Clock:
    """Seconds of each part, by name."""

    def __init__(self) -> None:
        self.laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """End a part."""
        now = time.perf_counter()
        self.laps.append((name, now - self._last))
        self._last = now
