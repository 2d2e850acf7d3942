"""Run an engine launch by launch and say which of them is wrong on what it is given.

Each launch runs alone, on the memory that those before it left; its results are compared with the
reference of its function on just that. What a launch reads must be what was written for it: where
other bytes lie in a tensor's place, the plan of the memory is wrong, and not the launch. Steps that
are others than those of the program are not run: they are to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol

from ...runtime.arrays import Array
from ...runtime.model.model import Model
from ...tir.program.program import (
    Copy,
    Effects,
    Launch,
    Slice,
    Step,
    Sync,
    launch_effects,
    step_text,
)
from ...tir.reference.error_bound import reference
from ...tir.sizes import closed_shape
from .fenced import same_bits

Call = tuple[Step, Callable[[], object]]  # a step, and what runs it alone


class SteppedRun(Protocol):
    """A run whose steps are called one by one."""

    def steps(self) -> Sequence[Call]:
        """Each step, in order."""
        ...

    def view(self, item: Slice) -> Array:
        """What lies in a slice of the arena, of an input or of an output, as it is now."""
        ...


@dataclass(slots=True)
class Findings:
    """wrong: what is wrong, by the name of the function. lost: what was taken from a launch that
    reads it; no step has run from there on. planned: the first step that is another than the
    program's; nothing has run then.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    lost: str | None = None
    planned: str | None = None


def wrong_launches(run: SteppedRun, model: Model, cut: int = 0) -> Findings:
    """Run all steps.

    model: the program before schedules, launch for launch, with its constants. cut: as `reference`
    takes it.
    """
    steps = [step for step in model.program.body if not isinstance(step, Sync)]
    calls = [(step, call) for step, call in run.steps() if not isinstance(step, Sync)]
    found = Findings(planned=_other_step([step for step, _ in calls], steps))
    if found.planned is not None:
        return found
    memory = _Memory(run, model)
    for step, (_, call) in zip(steps, calls, strict=True):
        effects = _effects(model, step)
        for item in effects.read:
            if memory.changed(item):
                found.lost = f"{item}, which {_title(step)} reads"
                return found
        given = [memory.view(item).copy() for item in effects.read]
        call()
        for item in effects.written:
            memory.keep(item)
        if isinstance(step, Launch) and step.function not in found.wrong:
            results = [memory.view(item) for item in effects.written]
            problem = _problem(model, step, given, results, cut)
            if problem:
                found.wrong[step.function] = problem
    return found


def _other_step(planned: Sequence[Step], meant: Sequence[Step]) -> str | None:
    """The first step that is not what the program says, and what it says; None where all are."""
    for number, (one, other) in enumerate(zip_longest(planned, meant)):
        if one is None or other is None or not _same(one, other):
            mine, theirs = ("none" if s is None else step_text(s) for s in (one, other))
            return f"step {number} is {mine}; its program has {theirs}"
    return None


def _same(planned: Step, meant: Step) -> bool:
    """Whether a step is the program's. The kernel of a launch may have another name, constants in
    another form, and memory of its own behind its arguments.
    """
    if not isinstance(planned, Launch) or not isinstance(meant, Launch):
        return planned == meant
    mine, theirs = _passing(planned), _passing(meant)
    return (planned.label, mine[: len(theirs)]) == (meant.label, theirs)


def _passing(launch: Launch) -> list[Slice]:
    """The arguments of a launch that are no constants."""
    return [item for item in launch.arguments if item.space != "constant"]


def _problem(
    model: Model, step: Launch, given: Sequence[Array], results: Sequence[Array], cut: int
) -> str | None:
    """How the results of a launch differ from what its function gives; None where they do not."""
    func = model.program.function(step.function)
    read = [p.buffer for p in func.parameters if p.role != "output"]
    named = {b.name: a.reshape(b.shape) for b, a in zip(read, given, strict=True)}
    got = {b.name: a.reshape(b.shape) for b, a in zip(func.outputs, results, strict=True)}
    comparison = reference(func, named, cut=cut).compare(got)
    return None if comparison else f"{comparison}, in the engine"


def _effects(model: Model, step: Launch | Copy) -> Effects:
    if isinstance(step, Copy):
        return step.effects
    return launch_effects(model.program.function(step.function).parameters, step)


def _title(step: Step) -> str:
    return f"'{step.label or step.function}'" if isinstance(step, Launch) else "a copy"


class _Memory:
    """The arrays of a run, and what was last written to each place of the arena."""

    def __init__(self, run: SteppedRun, model: Model) -> None:
        self._run = run
        self._model = model
        self._written: dict[tuple[int, int], Array] = {}

    def view(self, item: Slice) -> Array:
        """The array in its place; a constant as it was before schedules."""
        if item.space != "constant":
            return self._run.view(item)
        name = self._model.program.constants[item.position].name
        return self._model.constants[name].reshape(closed_shape(item.shape))

    def keep(self, item: Slice) -> None:
        """Remember what was written to a place of the arena."""
        if item.space == "arena":
            self._written[item.position, item.bytes] = self.view(item).copy()

    def changed(self, item: Slice) -> bool:
        """Whether other bytes lie in a place of the arena than were written there."""
        if item.space != "arena" or not item.bytes:
            return False
        written = self._written.get((item.position, item.bytes))
        return written is None or not same_bits(self.view(item).reshape(-1), written.reshape(-1))
