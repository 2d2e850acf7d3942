"""Random steps: each draws a primitive and its arguments, most of them sensible, some not.

A step is data before it is taken, so one that makes a primitive fail can be kept and taken again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from ...schedule.drawing import (
    Arguments,
    Draw,
    NothingToTry,
    ScheduleView,
    choose_tensor,
    computed_and_used,
)
from ...schedule.errors import Kind, ScheduleError
from ...schedule.primitives.table import PRIMITIVES
from ...schedule.schedule import Schedule
from ...schedule.trace.references import LoopRef
from ...schedule.trace.trace import Step, Trace
from ...tir.func import PrimFunc


def _draw_pack(sch: ScheduleView, rng: Random) -> Arguments:
    """Any buffer, in panels of a few elements."""
    return {"buffer": choose_tensor(sch, rng), "width": rng.randint(2, 4)}


# what is drawn, the primitives and a library function; and each name as often as it is drawn
STEPS: Mapping[str, Draw] = {form.name: form.draw for form in PRIMITIVES if form.draw} | {
    "pack": _draw_pack
}
_DRAWN = ("pack", *(form.name for form in PRIMITIVES if form.draw for _ in range(form.weight)))


def refusals_by_kind() -> dict[str, Counter[str]]:
    """A counter of codes for each kind of refusal."""
    return {kind.value: Counter() for kind in Kind}


class StepFailed(Exception):
    """A primitive failed in another way than by refusing.

    trace: the steps before; step: the one that failed, None where a library function took it.
    """

    def __init__(self, trace: Trace, step: Step | None, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.trace = trace
        self.step = step


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each primitive was applied and refused, and how often each rule refused: by the
    kind of the refusal, then by its code.
    """

    applied: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Counter[str]] = field(default_factory=refusals_by_kind)

    def refusal(self, primitive: str, error: ScheduleError) -> None:
        """Count a refusal."""
        str(error)  # the text is made lazily; it must not fail
        self.refused[primitive] += 1
        self.kinds[error.kind.value][error.code] += 1


def random_schedule(rng: Random, func: PrimFunc, depth: int, tally: Tally) -> Schedule:
    """The schedule of `func` after about `depth` random steps; refused ones leave no trace.

    Raises: StepFailed.
    """
    sch = Schedule(func)
    done = _roll(sch, rng, tally) if rng.random() < 0.9 else 0
    return take_random(sch, rng, depth, tally, done)


def take_random(sch: Schedule, rng: Random, depth: int, tally: Tally, done: int = 0) -> Schedule:
    """The schedule after up to `depth` random steps, of which `done` have been taken; at most four
    times as many are tried.

    Raises: StepFailed.
    """
    for _ in range(4 * depth):
        if done >= depth:
            break
        name = rng.choice(_DRAWN)
        try:
            arguments = STEPS[name](sch, rng)
        except NothingToTry:
            continue
        if _take(sch, name, arguments, tally):
            done += 1
    return sch


def _roll(sch: Schedule, rng: Random, tally: Tally) -> int:
    """Let a window over a tensor roll, where there is one: steps that are seldom drawn one after
    the other. How many were taken.
    """
    for block, user in rng.sample(pairs := computed_and_used(sch), len(pairs)):
        for loop in sch.loops(user):
            if sch.copy().attempt(partial(_rolled, block=block, loop=loop)):
                named = {"block": block, "loop": loop}
                names = ("compute_at", "rolling_buffer")
                return sum(_take(sch, name, named, tally) for name in names)
    return 0


def _rolled(sch: Schedule, block: str, loop: LoopRef) -> None:
    sch.compute_at(block, loop)
    sch.rolling_buffer(block, loop)


def _take(sch: Schedule, name: str, arguments: Arguments, tally: Tally) -> bool:
    """Whether the step applied."""
    before = sch.trace
    try:
        perform(sch, name, arguments)
    except ScheduleError as refusal:
        tally.refusal(name, refusal)
        return False
    except Exception as error:
        step = sch.as_step(name, arguments) if name != "pack" else None
        raise StepFailed(before, step, error) from error
    tally.applied[name] += 1
    return True


def perform(sch: Schedule, name: str, arguments: Arguments) -> object:
    """Call a primitive, or leave the schedule as it is. Raises: ScheduleError."""
    named = dict(arguments)
    loops = named.pop("loops", ())
    assert isinstance(loops, tuple)
    made: list[object] = []
    sch.apply(lambda s: made.append(getattr(s, name)(*loops, **named)))
    return made[0]
