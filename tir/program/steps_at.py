"""Steps and arrays of a program at one choice of the sizes that a run decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..dim import Dim
from ..sizes import shape_with
from .flow import with_actions
from .program import Action, Copy, Launch, ProgramTensor, Slice, Step


def steps_at(steps: Sequence[Step], values: Mapping[Dim, int]) -> tuple[Step, ...]:
    """The steps on slices of these sizes; what else decides a size stays."""
    return with_actions(steps, lambda step: action_at(step, values))


def slice_at(item: Slice, values: Mapping[Dim, int]) -> Slice:
    """The slice at these sizes."""
    return replace(item, shape=shape_with(item.shape, values))


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
        case Copy():
            return Copy(slice_at(step.source, values), slice_at(step.target, values))
    return step
