"""Branches and loops of a program: its steps rewritten in their places, and as a run takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from ..sizes import AnySize, closed
from .program import Action, Branch, Repeat, Slice, Step, Sync

Iterations = Mapping[int, int]  # of the loops around, by their numbers


class AskedMemory(Protocol):
    """What holds the arrays of a run."""

    def scalar(self, item: Slice, iterations: Iterations) -> int:
        """The one element of a slice, as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that a run takes. number: among the `actions` of its program; iterations: of the loops
    around.
    """

    number: int
    step: Action
    iterations: Iterations


def with_actions(steps: Sequence[Step], change: Callable[[Action], Action]) -> tuple[Step, ...]:
    """The steps with others in place of those that read and write."""

    def changed(step: Step) -> Step:
        match step:
            case Branch():
                then = with_actions(step.then, change)
                return replace(step, then=then, otherwise=with_actions(step.otherwise, change))
            case Repeat():
                return replace(step, body=with_actions(step.body, change))
            case Sync():
                return step
        return change(step)

    return tuple(map(changed, steps))


def has_flow(steps: Sequence[Step]) -> bool:
    """Whether there are branches or loops among the steps."""
    return any(isinstance(step, Branch | Repeat) for step in steps)


def is_open(steps: Sequence[Step]) -> bool:
    """Whether data decide how often a loop among the steps runs."""

    def opened(step: Step) -> bool:
        match step:
            case Branch():
                return is_open((*step.then, *step.otherwise))
            case Repeat():
                return step.count is None or isinstance(step.count, Slice) or is_open(step.body)
        return False

    return any(map(opened, steps))


def taken(steps: Sequence[Step], memory: AskedMemory) -> Iterator[Taken]:
    """The steps of a run in order, each to be done before the next one is asked for: what they
    leave in memory decides how it goes on.
    """
    return _Run(memory).steps(_numbered(steps, count()), {})


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A step, its number where it is an action, and what is within it where it is not."""

    step: Step
    number: int
    inside: tuple[tuple[_Numbered, ...], ...] = ()


def _numbered(steps: Sequence[Step], numbers: Iterator[int]) -> tuple[_Numbered, ...]:
    found = []
    for step in steps:
        match step:
            case Branch():
                bodies: tuple[Sequence[Step], ...] = (step.then, step.otherwise)
            case Repeat():
                bodies = (step.body,)
            case Sync():
                continue
            case _:
                found.append(_Numbered(step, next(numbers)))
                continue
        found.append(_Numbered(step, -1, tuple(_numbered(body, numbers) for body in bodies)))
    return tuple(found)


class _Run:
    def __init__(self, memory: AskedMemory) -> None:
        self._memory = memory

    def steps(self, steps: Sequence[_Numbered], iterations: Iterations) -> Iterator[Taken]:
        for item in steps:
            match item.step:
                case Branch(condition):
                    is_true = self._memory.scalar(condition, iterations)
                    yield from self.steps(item.inside[0 if is_true else 1], iterations)
                case Repeat():
                    yield from self._repeated(item.step, item.inside[0], iterations)
                case Sync():
                    pass
                case _:
                    yield Taken(item.number, item.step, iterations)

    def _repeated(
        self, step: Repeat, body: Sequence[_Numbered], iterations: Iterations
    ) -> Iterator[Taken]:
        until, number, most = step.condition, 0, self._most(step.count, iterations)
        while most is None or number < most:
            if until is not None and not self._memory.scalar(until, iterations):
                return
            yield from self.steps(body, {**iterations, step.loop: number})
            number += 1

    def _most(self, count: AnySize | Slice | None, iterations: Iterations) -> int | None:
        """How often a loop runs at most. Sizes are numbers."""
        if isinstance(count, Slice):
            return self._memory.scalar(count, iterations)
        return None if count is None else closed(count)
