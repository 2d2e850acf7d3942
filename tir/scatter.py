"""Stores whose places data decide: one step of a function of tensors, with a meaning of its own.

`y = scatter(x, updates, *places)` is x, into which the updates are written one after the other, in
row-major order: update u goes to the element of y with u's indices, where those of `span` axes from
`axis` on give way to what the places say for u, one integer for each axis of y that takes theirs.
An update stands there instead of what was there, or is combined with it and rounded to the tensor's
type. So the last update of an element counts, and a sum of floats has one order. A place outside of
its axis is moved to the nearest one inside: callers check theirs before. An x of one element stands
for as many as there are.

    y = x;  for k, j: y[p[k], q[k], j] = y[p[k], q[k], j] + updates[k, j]      axis 0, two places
    y = x;  for i, k: y[i, p[i, k]] = updates[i, k]                            axis 1

A schedule does not look into one, as into no Extern; lowering makes loops of it, which are proved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np

from .buffer import Buffer
from .errors import IRError

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Combining = Literal["none", "add", "mul", "max", "min"]

COMBININGS: dict[str, Combining] = {name: name for name in get_args(Combining)}
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_PREFIX, _AXIS, _SPAN = "tw_scatter_", "_at_", "_to_"


@dataclass(frozen=True, slots=True)
class ScatterFunction:
    """How updates are written: combined how, and which of their axes give way to places."""

    combining: Combining
    axis: int
    span: int = 1

    @property
    def symbol(self) -> str:
        """What the text of a function calls it: everything there is to know of it."""
        return f"{_PREFIX}{self.combining}{_AXIS}{self.axis}" + (
            f"{_SPAN}{self.axis + self.span}" if self.span > 1 else ""
        )

    @property
    def words(self) -> str:
        """What a block does that is one."""
        how = "" if self.combining == "none" else f" by '{self.combining}'"
        return f"scatters{how} along axis {self.axis}"

    @property
    def part(self) -> str:
        """What it takes one after the other."""
        return "update"

    @property
    def digest(self) -> str:
        """What tells it from others, as that of a C function does."""
        return hashlib.sha256(self.symbol.encode("utf-8")).hexdigest()[:16]

    def compute(
        self, inputs: Sequence[Array], outputs: Sequence[tuple[Buffer, np.dtype[np.generic]]]
    ) -> list[Array]:
        """The result for x, the updates and their places, in the type beside the one output."""
        x, updates, *places = inputs
        ((y, dtype),) = outputs
        whole = np.broadcast_to(x.astype(dtype), y.shape)
        return [scattered(self, whole, updates.astype(dtype), places)]


def scattered(
    function: ScatterFunction, x: Array, updates: Array, places: Sequence[Array]
) -> Array:
    """A copy of x with the updates, in their order; places: an array for each axis of x that they
    are along, of the first axes of `updates`.
    """
    first = function.axis
    plain = np.indices(updates.shape, sparse=True)
    along = [
        np.clip(place.astype(np.int64), 0, max(0, x.shape[first + n] - 1)).reshape(
            place.shape + (1,) * (updates.ndim - place.ndim)
        )
        for n, place in enumerate(places)
    ]
    at = (*plain[:first], *along, *plain[first + function.span :])
    result = np.array(x)
    if updates.size:
        _write(function, result, at, updates)
    return result


def _write(function: ScatterFunction, result: Array, at: tuple[Array, ...], updates: Array) -> None:
    with np.errstate(all="ignore"):
        if function.combining == "none":
            result[at] = updates
        else:
            # NumPy's types know no tuple of places
            UFUNCS[function.combining].at(result, cast(int, at), updates)


def scatter_named(symbol: str) -> ScatterFunction | None:
    """The one whose symbol it is; None where it is that of a C function."""
    if not symbol.startswith(_PREFIX):
        return None
    name, _, axes = symbol.removeprefix(_PREFIX).partition(_AXIS)
    first, _, end = axes.partition(_SPAN)
    numbers = [n for n in (first, end or first) if n.isascii() and n.isdigit()]
    span = int(numbers[1]) - int(numbers[0]) if end and len(numbers) == 2 else 1
    if name not in COMBININGS or len(numbers) < 2 or span < 1:
        raise IRError(
            f"parse: '{symbol}' is no way to scatter; expected one of {', '.join(COMBININGS)}, and "
            "an axis.",
            code="parse-scatter",
            hints=(f"{ScatterFunction('add', 0).symbol} adds along the first axis.",),
        )
    return ScatterFunction(COMBININGS[name], int(first), span)


def scatter_problem(
    function: ScatterFunction, inputs: Sequence[Buffer], outputs: Sequence[Buffer]
) -> str | None:
    """What is wrong with the tensors of a scatter; None for nothing."""
    if len(inputs) < 3 or len(outputs) != 1:
        return f"{len(inputs)} inputs and {len(outputs)} outputs; expected x, updates and places"
    x, updates, *places = inputs
    axis, span, (y,) = function.axis, function.span, outputs
    if x.shape not in (y.shape, ()) or not x.type == y.type == updates.type:
        return f"'{y.name}' is {y}, and '{x.name}' {x}; expected one type and shape"
    first = places[0].shape
    ranks = len(updates.shape) - span + len(places) == len(y.shape)
    fits = ranks and span > 0 and 0 <= axis <= len(first) - span
    alike = all(p.shape == first and p.type.is_integer for p in places)
    if not fits or not alike or updates.shape[: len(first)] != first:
        return f"'{places[0].name}' is no place for each of '{updates.name}' along axis {axis}"
    own = (*y.shape[:axis], *y.shape[axis + len(places) :])
    given = (*updates.shape[:axis], *updates.shape[axis + span :])
    if any(wants > has for wants, has in zip(given, own, strict=True)):
        return f"'{updates.name}' {given} is larger than '{y.name}' {own} beside axis {axis}"
    if 0 in y.shape and 0 not in updates.shape:
        return f"'{updates.name}' has elements, and '{y.name}' none"
    return None
