"""From when to when each tensor of the arena is needed, where steps branch and repeat.

Points of time are the steps in the order in which they are written. What is read in a loop and was
there before is needed to the loop's end, and so is what a loop collects; both blocks of a branch
take their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from .choose import KernelChoice
from .homes import CopyValue, IfSteps, LoopSteps, NumberIteration, PlannedStep, SizeStep
from .memory_plan import StepUse


class Lives:
    """Collects the uses of the steps of a model."""

    def __init__(self, base: Callable[[str], str | None]) -> None:
        """base: the tensor of the arena that has the place of a value, None for none."""
        self._base = base
        self._point = 0
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._loops: list[list[str]] = []  # what was used in the loops around that was there before

    def walk(self, steps: Sequence[PlannedStep]) -> None:
        """Take in steps, in order."""
        for step in steps:
            match step:
                case KernelChoice():
                    self._use((*step.values, *step.group.outputs))
                case CopyValue():
                    self._use((step.source, step.target.value))
                case NumberIteration():
                    self._use((step.loop.iteration,))
                case SizeStep():
                    self._use((step.source,))
                case IfSteps():
                    self._use((step.branch.condition,))
                    self.walk(step.then)
                    self.walk(step.otherwise)
                case LoopSteps():
                    self._loop(step)

    def _loop(self, step: LoopSteps) -> None:
        loop = step.loop
        count = (loop.count,) if isinstance(loop.count, str) else ()
        asked = () if step.condition is None else (step.condition,)
        self._use((*count, *asked, *loop.results))
        begin = self._point
        self._loops.append([])
        self.walk(step.body)
        self._use((*asked, *loop.results))
        older = [name for name in self._loops.pop() if self._first[name] < begin]
        end = self._point - 1
        for name in older:
            self._last[name] = end
        if self._loops:
            self._loops[-1] += older

    def end(self, values: Iterable[str]) -> None:
        """What is read when all steps have run."""
        self._use(values)

    def _use(self, values: Iterable[str]) -> None:
        names = dict.fromkeys(name for value in values if (name := self._base(value)) is not None)
        for name in names:
            self._first.setdefault(name, self._point)
            self._last[name] = self._point
            if self._loops:
                self._loops[-1].append(name)
        self._point += 1

    def uses(self) -> Iterator[StepUse]:
        """What each step defines, and what it is the last to need."""
        made: list[list[str]] = [[] for _ in range(self._point)]
        needed: list[list[str]] = [[] for _ in range(self._point)]
        for name, first in self._first.items():
            made[first].append(name)
            if self._last[name] > first:
                needed[self._last[name]].append(name)
        for defined, read in zip(made, needed, strict=True):
            yield StepUse(tuple(read), tuple(defined))
