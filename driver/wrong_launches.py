"""Run an engine launch by launch and say which of them is wrong on what it is given.

Each launch runs alone, on the memory that those before it left; its results are compared with the
reference of its function on just that. What a launch reads must be what was written for it: where
other bytes lie in a tensor's place, the plan of the memory is wrong, and not the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..runtime.arrays import Array
from ..runtime.model import Model
from ..runtime.program_code import Frame
from ..tir.error_bound import reference
from ..tir.program import Copy, Effects, Launch, Slice, Step, Sync, launch_effects
from .fenced import same_bits


@dataclass(slots=True)
class Findings:
    """wrong: what is wrong, by the name of the function. lost: what was taken from a launch that
    reads it.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


def wrong_launches(
    frame: Frame, model: Model, inputs: Sequence[Array], outputs: Sequence[Array], threads: int
) -> Findings:
    """Run all steps.

    frame: memory for a run, which points to `inputs` and `outputs`. model: the program before
    schedules, launch for launch, with its constants.
    """
    steps = (step for step in model.program.body if not isinstance(step, Sync))
    calls = (call for step, call in frame.steps(threads) if not isinstance(step, Sync))
    memory = _Memory(frame, model, inputs, outputs)
    found = Findings()
    for step, call in zip(steps, calls, strict=True):
        effects = _effects(model, step)
        for item in effects.read:
            if memory.changed(item):
                found.lost.append(f"{item}, which {_title(step)} reads")
        given = [memory.view(item).copy() for item in effects.read]
        call()
        for item in effects.written:
            memory.keep(item)
        if isinstance(step, Launch) and step.function not in found.wrong:
            problem = _problem(model, step, given, [memory.view(item) for item in effects.written])
            if problem:
                found.wrong[step.function] = problem
    return found


def _problem(
    model: Model, step: Launch, given: Sequence[Array], results: Sequence[Array]
) -> str | None:
    """How the results of a launch differ from what its function gives; None where they do not."""
    func = model.program.function(step.function)
    read = [p.buffer for p in func.parameters if p.role != "output"]
    named = {b.name: a.reshape(b.shape) for b, a in zip(read, given, strict=True)}
    got = {b.name: a.reshape(b.shape) for b, a in zip(func.outputs, results, strict=True)}
    comparison = reference(func, named).compare(got)
    return None if comparison else f"{comparison}, in the engine"


def _effects(model: Model, step: Launch | Copy) -> Effects:
    if isinstance(step, Copy):
        return step.effects
    return launch_effects(model.program.function(step.function).parameters, step)


def _title(step: Step) -> str:
    return f"'{step.label or step.function}'" if isinstance(step, Launch) else "a copy"


class _Memory:
    """The arrays of a run, and what was last written to each place of the arena."""

    def __init__(
        self, frame: Frame, model: Model, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        self._frame = frame
        self._model = model
        self._inputs = inputs
        self._outputs = outputs
        self._written: dict[tuple[int, int], Array] = {}

    def view(self, item: Slice) -> Array:
        """The array in its place; a constant as it was before schedules."""
        match item.space:
            case "arena":
                memory = self._frame.scratch[item.position : item.position + item.bytes]
                return memory.view(item.dtype.numpy).reshape(item.shape)
            case "input":
                return self._inputs[item.position].reshape(item.shape)
            case "constant":
                name = self._model.program.constants[item.position].name
                return self._model.constants[name].reshape(item.shape)
        return self._outputs[item.position].reshape(item.shape)

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
