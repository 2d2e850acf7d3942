"""A program at one choice of the sizes that a run decides: the same steps on arrays of these sizes.

It is the meaning of such a program: references and checks run this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.specialise import specialise
from ..dim import Dim
from ..func import PrimFunc
from ..sizes import Size, dims_in
from .flow import with_actions
from .program import Action, Launch, Program, ProgramTensor
from .steps_at import steps_at, tensors_at


def program_at(program: Program, values: Mapping[Dim, int]) -> Program:
    """The program with numbers for all sizes; itself where no run decides any.

    Raises: IRError for a value out of bounds.
    """
    if not program.dims:
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
    """The step, its function at its sizes under a name of its own, one of `functions` then."""
    if not isinstance(step, Launch):
        return step
    name = "_".join((step.function, *map(str, step.sizes)))
    if name not in functions:
        func = program.function(step.function)
        chosen = {dim: n for dim, n in zip(func.dims, step.sizes, strict=True) if type(n) is int}
        functions[name] = replace(specialise(func, chosen), name=name)
    return replace(step, function=name, sizes=())
