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
from types import EllipsisType
from typing import Protocol

from ...runtime.arrays import Array
from ...runtime.model.model import Model
from ...tir.dim import Dim
from ...tir.func import PrimFunc
from ...tir.program.at_sizes import launch_at
from ...tir.program.flow import Iterations, taken
from ...tir.program.program import (
    Action,
    Effects,
    Launch,
    ReadSize,
    Slice,
    actions,
    launch_effects,
    step_text,
)
from ...tir.program.steps_at import action_at
from ...tir.reference.error_bound import reference
from ...tir.sizes import closed_shape
from .fenced import same_bits

# a step, and what runs it alone, given the iterations of the loops around it
Call = tuple[Action, Callable[[Iterations], object]]


class SteppedRun(Protocol):
    """A run whose steps are called one by one."""

    def steps(self) -> Sequence[Call]:
        """Each step that reads and writes, in order, those of branches and loops once."""
        ...

    def view(self, item: Slice) -> Array:
        """What lies in a slice of the arena, of an input or of an output, as it is now."""
        ...


@dataclass(slots=True)
class Findings:
    """wrong: what is wrong, by the name of the function. lost: what was taken from a launch that
    reads it; no step has run from there on. planned: the first step that is another than the
    program's; nothing has run then. sizes: those that the run has computed.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    lost: str | None = None
    planned: str | None = None
    sizes: dict[Dim, int] = field(default_factory=dict)


def wrong_launches(run: SteppedRun, model: Model, cut: int = 0) -> Findings:
    """Run all steps.

    model: the program before schedules, launch for launch, with its constants. cut: as `reference`
    takes it.
    """
    calls = list(run.steps())
    found = Findings(planned=_other_step([s for s, _ in calls], [*actions(model.program.body)]))
    if found.planned is not None:
        return found
    memory = _Memory(run, model)
    for item in taken(model.program.body, memory):
        step, at = action_at(item.step, found.sizes), item.iterations
        effects = _effects(model, step)
        for place in effects.read:
            if memory.changed(place, at):
                found.lost = f"{place}, which {_title(step)} reads"
                return found
        given = [memory.view(place, at).copy() for place in effects.read]
        calls[item.number][1](at)
        for place in effects.written:
            memory.keep(place, at)
        if isinstance(step, Launch) and step.function not in found.wrong:
            results = [memory.view(place, at) for place in effects.written]
            func, _ = launch_at(model.program, step, found.sizes)
            problem = _problem(func, given, results, cut)
            if problem:
                found.wrong[step.function] = problem
        elif isinstance(step, ReadSize):
            found.sizes[step.dim] = memory.scalar(step.source, at)
    return found


def _other_step(planned: Sequence[Action], meant: Sequence[Action]) -> str | None:
    """The first step that is not what the program says, and what it says; None where all are."""
    for number, (one, other) in enumerate(zip_longest(planned, meant)):
        if one is None or other is None or not _same(one, other):
            mine, theirs = ("none" if s is None else step_text(s) for s in (one, other))
            return f"step {number} is {mine}; its program has {theirs}"
    return None


def _same(planned: Action, meant: Action) -> bool:
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
    func: PrimFunc, given: Sequence[Array], results: Sequence[Array], cut: int
) -> str | None:
    """How the results of a launch differ from what its function gives; None where they do not."""
    read = [p.buffer for p in func.parameters if p.role != "output"]
    named = {b.name: a.reshape(b.shape) for b, a in zip(read, given, strict=True)}
    got = {b.name: a.reshape(b.shape) for b, a in zip(func.outputs, results, strict=True)}
    comparison = reference(func, named, cut=cut).compare(got)
    return None if comparison else f"{comparison}, in the engine"


def _effects(model: Model, step: Action) -> Effects:
    if not isinstance(step, Launch):
        return step.effects
    return launch_effects(model.program.function(step.function).parameters, step)


def _title(step: Action) -> str:
    return f"'{step.label or step.function}'" if isinstance(step, Launch) else step_text(step)


class _Memory:
    """The arrays of a run, and what was last written to each place of the arena."""

    def __init__(self, run: SteppedRun, model: Model) -> None:
        self._run = run
        self._model = model
        self._written: dict[tuple[int, int], Array] = {}

    def view(self, item: Slice, at: Iterations) -> Array:
        """The array in its place; a constant as it was before schedules."""
        whole = item.whole
        if item.space != "constant":
            return _row(self._run.view(whole), item, at)
        name = self._model.program.constants[item.position].name
        return _row(self._model.constants[name].reshape(closed_shape(whole.shape)), item, at)

    def scalar(self, item: Slice, at: Iterations) -> int:
        """The one element of a slice."""
        return int(self.view(item, at).item())

    def keep(self, item: Slice, at: Iterations) -> None:
        """Remember what was written to a place of the arena."""
        if item.space != "arena":
            return
        key = item.position, item.reach
        if key in self._written and item.moves:
            array = self._written[key].reshape(closed_shape(item.whole.shape))
            _row(array, item, at)[...] = self.view(item, at)
        else:
            self._written[key] = self.view(item.whole, at).copy()

    def changed(self, item: Slice, at: Iterations) -> bool:
        """Whether other bytes lie in a place of the arena than were written there."""
        if item.space != "arena" or not item.bytes:
            return False
        written = self._written.get((item.position, item.reach))
        if written is None:
            return True
        mine = _row(written.reshape(closed_shape(item.whole.shape)), item, at)
        return not same_bits(self.view(item, at).reshape(-1), mine.reshape(-1))


def _row(whole: Array, item: Slice, at: Iterations) -> Array:
    """What an iteration works on of the array of all rows."""
    rows: tuple[int | EllipsisType, ...] = (*(move.of(at) for move in item.moves), ...)
    return whole[rows]
