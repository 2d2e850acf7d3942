"""How far rounding may take each element of a scatter: updates are combined one after the other,
each result rounded to the tensor's type.

Of a sum each partial sum counts, by what its terms come to without signs; of a product each step is
a roundoff of the whole, and any error where a partial product may leave the type. An update that
stands there, a maximum and a minimum are as far off as what they are of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..buffer import Buffer
from ..dtype import DType
from ..scatter import Combining, ScatterFunction, scattered
from ..stmt import Extern
from .roundings import NotFollowed, least_normal, roundoff

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def scatter_errors(
    call: Extern, values: Mapping[Buffer, Array], errors: Mapping[Buffer, Array]
) -> Array | None:
    """The errors of the result of a scatter, in units; None where it is exact.

    values: of every tensor, in float64. errors: of those that are not exact.
    Raises: NotFollowed for a product of what has errors, and for a C function.
    """
    function = call.function
    if not isinstance(function, ScatterFunction):
        raise NotFollowed(call.outputs[0].name)
    begun, updates, *places = (values[buffer] for buffer in call.inputs)
    x = np.broadcast_to(begun, call.outputs[0].shape)
    kind = call.outputs[0].type
    found = [errors.get(buffer) for buffer in call.inputs[:2]]
    given: Array | None = None
    if any(error is not None for error in found):
        if function.combining == "mul":
            raise NotFollowed(call.outputs[0].name)
        pairs = zip(found, (x, updates), strict=True)
        own = [np.broadcast_to(0.0 if e is None else e, value.shape) for e, value in pairs]
        how = function if function.combining in ("none", "add") else _by("max", function)
        given = scattered(how, own[0], own[1], places)
    if not kind.is_float or function.combining not in ("add", "mul"):
        return given
    made = _of_steps(function, kind, x, updates, places)
    return made if given is None else np.add(made, given)


def _by(how: Combining, function: ScatterFunction) -> ScatterFunction:
    return replace(function, combining=how)


def _of_steps(
    function: ScatterFunction, kind: DType, x: Array, updates: Array, places: Sequence[Array]
) -> Array:
    """The errors of the roundings alone."""

    def of(change: Callable[[Array], Array]) -> Array:
        return scattered(function, change(x), change(updates), places)

    ones = np.ones(updates.shape)
    steps = scattered(_by("add", function), np.zeros(x.shape), ones, places)
    made = roundoff(of(np.abs), kind, np.multiply(steps, 0.5))
    if function.combining == "add":
        return made
    most = roundoff(of(lambda value: np.maximum(np.abs(value), 1.0)), kind)
    least = of(lambda value: np.minimum(np.abs(value), 1.0))
    small = np.less(least, least_normal(kind))
    outside = np.logical_or(small, np.logical_not(np.isfinite(most)))
    return np.where(np.logical_and(outside, np.greater(steps, 0)), np.inf, made)
