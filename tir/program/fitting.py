"""What a step reads and writes, once it is seen that a launch fits its function: its slices the
parameters, its sizes the dims.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..analysis.facts import fact_at
from ..dim import Dim
from ..errors import IRError, known_names
from ..sizes import at_most, interval, product_of
from .program import Action, Effects, Launch, launch_effects

if TYPE_CHECKING:
    from ..func import PrimFunc


def effects_of(functions: Mapping[str, PrimFunc], step: Action) -> Effects:
    """What a step reads and writes. Raises: IRError for a launch that does not fit its function."""
    if not isinstance(step, Launch):
        return step.effects
    func = functions.get(step.function)
    if func is None:
        raise IRError(
            f"program: there is no function '{step.function}'; there are "
            f"{known_names(step.function, tuple(functions))}.",
            code="program-function",
        )
    if len(func.parameters) != len(step.arguments):
        raise IRError(
            f"program: '{step.function}' takes {len(func.parameters)} slices; got "
            f"{len(step.arguments)}.",
            code="program-arguments",
        )
    _check_sizes(func, step)
    _check_arguments(func, step)
    return launch_effects(func.parameters, step)


def _check_sizes(func: PrimFunc, step: Launch) -> None:
    """The sizes are within the bounds of the dims, and what the function assumes of them holds."""
    if len(func.dims) != len(step.sizes):
        named = ", ".join(dim.name for dim in func.dims) or "none"
        got = ", ".join(map(str, step.sizes)) or "none"
        raise IRError(
            f"program: '{step.function}' takes the sizes {named}; got {got}.",
            code="program-sizes",
        )
    for dim, size in zip(func.dims, step.sizes, strict=True):
        low, high = interval(size)
        if not dim.low <= low <= high <= dim.high:
            raise IRError(
                f"program: '{step.function}' takes a size '{dim.name}' of {dim.low} to {dim.high}; "
                f"got {size}, which is {low} to {high}.",
                code="program-size-bounds",
            )
    values = dict(zip(func.dims, step.sizes, strict=True))
    for fact in func.facts:
        size = fact_at(fact, values)
        if at_most(0, size) is not True:
            raise IRError(
                f"program: '{step.function}' takes sizes of which {fact} is 0 or more; got "
                f"{', '.join(map(str, step.sizes))}, where it is {size}.",
                code="program-size-fact",
            )


def _check_arguments(func: PrimFunc, step: Launch) -> None:
    """Each slice has the type of its parameter, and as many elements."""
    values = dict(zip(func.dims, step.sizes, strict=True))
    for parameter, argument in zip(func.parameters, step.arguments, strict=True):
        extents = parameter.buffer.extents
        wanted = product_of(values[e] if isinstance(e, Dim) else e for e in extents)
        if parameter.dtype != argument.dtype or wanted != product_of(argument.shape):
            raise IRError(
                f"program: '{step.function}' takes '{parameter.name}' of {wanted} x "
                f"{parameter.dtype}; got {argument}.",
                code="program-argument",
            )
