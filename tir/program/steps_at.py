"""Steps and arrays of a program at one choice of the sizes that a run decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from ..dim import Dim
from ..sizes import shape_with, substituted
from .program import (
    Action,
    Branch,
    Copy,
    KeepLargest,
    Launch,
    ProgramTensor,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
)


def steps_at(steps: Sequence[Step], values: Mapping[Dim, int]) -> tuple[Step, ...]:
    """The steps on slices of these sizes, and loops that run as often as these say; what else
    decides a size stays.
    """
    return tuple(_step_at(step, values) for step in steps)


def slice_at(item: Slice, values: Mapping[Dim, int]) -> Slice:
    """The slice at these sizes."""
    moves = tuple(replace(move, rows=substituted(move.rows, values)) for move in item.moves)
    return replace(item, shape=shape_with(item.shape, values), moves=moves)


def tensors_at(
    tensors: Sequence[ProgramTensor], values: Mapping[Dim, int]
) -> tuple[ProgramTensor, ...]:
    """The arrays of an interface at these sizes."""
    return tuple(replace(t, shape=shape_with(t.shape, values)) for t in tensors)


def action_at(step: Action, values: Mapping[Dim, int]) -> Action:
    """The step on slices of these sizes."""
    match step:
        case Launch():
            arguments = tuple(slice_at(item, values) for item in step.arguments)
            return replace(step, arguments=arguments, sizes=shape_with(step.sizes, values))
        case Copy() | KeepLargest():
            source, target = slice_at(step.source, values), slice_at(step.target, values)
            return replace(step, source=source, target=target)
        case WriteIteration():
            return replace(step, target=slice_at(step.target, values))
        case ReadSize():
            return replace(step, source=slice_at(step.source, values))
    assert_never(step)


def _step_at(step: Step, values: Mapping[Dim, int]) -> Step:
    match step:
        case Branch():
            return replace(
                step,
                condition=slice_at(step.condition, values),
                then=steps_at(step.then, values),
                otherwise=steps_at(step.otherwise, values),
            )
        case Repeat():
            count, until = step.count, step.condition
            if isinstance(count, Slice):
                count = slice_at(count, values)
            elif count is not None:
                count = substituted(count, values)
            return replace(
                step,
                count=count,
                condition=None if until is None else slice_at(until, values),
                body=steps_at(step.body, values),
            )
        case Sync():
            return step
    return action_at(step, values)
