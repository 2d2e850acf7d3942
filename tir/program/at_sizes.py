"""A program at one choice of the sizes that a run decides: the same steps on arrays of these sizes.

It is the meaning of such a program: references and checks run this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.specialise import specialise
from ..dim import Dim
from ..func import PrimFunc
from ..sizes import Size, closed_shape, dims_in, is_closed
from .flow import with_actions
from .program import Action, Launch, Program, ProgramTensor
from .steps_at import action_at, steps_at, tensors_at


def program_at(program: Program, values: Mapping[Dim, int]) -> Program:
    """The program with numbers for these sizes; itself where there are none. Sizes that a run
    computes stay, unless they are given.

    Raises: IRError for a value out of bounds.
    """
    if not values:
        return program
    functions: dict[str, PrimFunc] = {}
    body = with_actions(
        steps_at(program.body, values), lambda step: _named(program, step, functions)
    )
    prepare = tuple(_named(program, launch, functions) for launch in program.prepare)
    return replace(
        program,
        inputs=tensors_at(program.inputs, values),
        outputs=tensors_at(program.outputs, values),
        functions=tuple(functions.values()),
        body=body,
        prepare=tuple(launch for launch in prepare if isinstance(launch, Launch)),
    )


def launch_at(program: Program, step: Launch, values: Mapping[Dim, int]) -> tuple[PrimFunc, Launch]:
    """A launch at these sizes, which are all that it takes, and its function there."""
    made = action_at(step, values)
    assert isinstance(made, Launch)
    func = program.function(step.function)
    chosen = zip(func.dims, closed_shape(made.sizes), strict=True)
    return specialise(func, dict(chosen)), made


def values_told(
    tensors: Sequence[ProgramTensor], shapes: Sequence[tuple[int, ...]]
) -> dict[Dim, int]:
    """The sizes that the shapes of some arrays tell; a dim that none tells has its least one."""
    found: dict[Dim, int] = {dim: dim.low for t in tensors for dim in dims_in(t.shape)}
    for tensor, shape in reversed(list(zip(tensors, shapes, strict=True))):
        for size, number in zip(tensor.shape, shape, strict=False):
            if isinstance(size, Size) and size.dim is not None:
                found[size.dim] = number
    return found


def _named(program: Program, step: Action, functions: dict[str, PrimFunc]) -> Action:
    """The step, its function at its sizes under a name of its own, one of `functions` then; as it
    is where it takes no sizes, or a run computes one of them.
    """
    if not isinstance(step, Launch):
        return step
    func = program.function(step.function)
    if not step.sizes or not is_closed(step.sizes):
        functions[func.name] = func
        return step
    name = "_".join((step.function, "at", *map(str, step.sizes)))  # `f` at 1, 2; `f_1` at 2
    if name not in functions:
        chosen = dict(zip(func.dims, closed_shape(step.sizes), strict=True))
        functions[name] = replace(specialise(func, chosen), name=name)
    return replace(step, function=name, sizes=())
