"""Scans of the tensor-expression language: te.state, te.scan.

    S = te.state((T, N), "float32", name="S")
    first = te.compute((1, N), lambda t, i: X[t, i], name="first")
    step = te.compute((T, N), lambda t, i: S[t - 1, i] + X[t, i], name="step")
    sums = te.scan(first, step, S)          # sums[t, i] = X[0, i] + ... + X[t, i]

One axis of the state is ordered: `first` gives its first steps, `step` each later one, and may read
earlier steps of the state. The result is one tensor, called as the state is, of one block whose
ordered variable runs through the steps:

    S[t, i] = first[t, i] where t < 1, else step[t, i] with S for the state

Only the order of the steps is fixed, and only as far as elements are read: a schedule may reorder,
share out and vectorise the other axes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from .bounds import bounds
from .buffer import Load
from .dim import Extent, most
from .dtype import DType
from .dtype import dtype as as_dtype
from .errors import IRError, IRTypeError
from .expr import Expr, Select, Var, index
from .linear import Interval
from .printer import print_expr
from .reduce import Reduce
from .te_checks import checked_shape
from .te_dim import check_stepped
from .tensor import Computation, Recurrence, Tensor
from .visit import loads, substitute


def state(shape: Sequence[Extent] | Extent, dtype: str | DType, *, name: str) -> Tensor:
    """What stands for the result of a te.scan in the step that computes it.

    Raises: IRError for an extent that is no integer of 0 or more, or an unknown type.
    """
    extents = checked_shape(shape, name)
    check_stepped(name, extents)
    return Tensor(name, as_dtype(dtype), tuple(map(most, extents)), state=True)


def scan(
    init: Tensor, update: Tensor, state: Tensor, *, axis: int = 0, reverse: bool = False
) -> Tensor:
    """The tensor whose first steps along `axis` are those of `init`, each later one as `update`
    computes it from earlier steps of `state`.

    init: of the shape of the state, but for its number of steps, which is 1 or more. update: a
    te.compute of the state's shape; the state is read nowhere else. reverse: the steps run from the
    last index to the first, so `init` gives the last ones and `update` reads later indices.
    Raises: IRError where shapes or types differ, or the update reads a step that is not an earlier
    one; IRTypeError for what is no state.
    """
    made = _Scan(init, update, state, _checked_axis(state, axis), reverse)
    _check_alike(made)
    element = _checked_update(made)
    _check_closed(made)
    axes = element.axes
    time = axes[made.axis]
    later = element.values[0]
    _check_earlier(made, later, time)
    begins = time < made.first if not reverse else index(made.steps - made.first) <= time
    value = Select(begins, _initial(made, axes), later)
    recurrence = Recurrence(state, time, reverse)
    computation = Computation((state.name,), state.shape, axes, (value,), recurrence)
    return Tensor(state.name, state.type, state.shape, computation=computation)


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """The arguments of a te.scan."""

    init: Tensor
    update: Tensor
    state: Tensor
    axis: int
    reverse: bool

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.state.shape[self.axis]

    @property
    def first(self) -> int:
        """How many of them the initial part gives."""
        return self.init.shape[self.axis]


def _checked_axis(state: object, axis: int) -> int:
    """The ordered axis, which is not negative. Raises: IRTypeError, IRError."""
    if not isinstance(state, Tensor) or not state.state:
        shown = f"'{state.name}'" if isinstance(state, Tensor) else repr(state)
        raise IRTypeError(
            f"te.scan: the state is {shown}; expected what te.state gives.",
            code="te-scan-state",
            hints=('S = te.state((T, N), "float32", name="S"), which the update reads.',),
        )
    rank = len(state.shape)
    place = operator.index(axis)
    if -rank <= place < rank:
        return place % rank
    raise IRError(
        f"te.scan: axis {place} of '{state.name}', which has {rank} axes; "
        f"expected {-rank} to {rank - 1}.",
        code="te-scan-axis",
    )


def _check_alike(made: _Scan) -> None:
    """Both parts have the type of the state, and its shape but for the steps of the initial one."""
    state, axis = made.state, made.axis
    for what, part in (("initial part", made.init), ("update", made.update)):
        check_stepped(part.name, part.extents)
        if part.type != state.type:
            raise IRError(
                f"te.scan: the {what} '{part.name}' is {part.type}; expected {state.type}, the "
                f"type of '{state.name}'.",
                code="te-scan-type",
                hints=(f'te.cast(x, "{state.type}") converts an element.',),
            )
    if made.update.shape != state.shape:
        raise IRError(
            f"te.scan: the update '{made.update.name}' has shape {made.update.shape}; expected "
            f"{state.shape}, the shape of '{state.name}'.",
            code="te-scan-update-shape",
            hints=("it says what every step is; the first ones are then taken from the init.",),
        )
    given, whole = made.init.shape, state.shape
    alike = len(given) == len(whole) and given[:axis] == whole[:axis]
    if not alike or given[axis + 1 :] != whole[axis + 1 :] or given[axis] < 1:
        wanted = ", ".join("1 or more" if n == axis else str(e) for n, e in enumerate(whole))
        raise IRError(
            f"te.scan: the initial part '{made.init.name}' has shape {given}; expected "
            f"({wanted}), steps of '{state.name}' along axis {axis}.",
            code="te-scan-init-shape",
        )


def _checked_update(made: _Scan) -> Computation:
    """What the update computes: one expression per element. Raises: IRError."""
    update, found = made.update, made.update.computation
    if found is not None and len(found.values) == 1 and found.recurrence is None:
        if not isinstance(found.values[0], Reduce):
            return found
        raise IRError(
            f"te.scan: the update '{update.name}' is a reduction; expected one expression per "
            "element.",
            code="te-scan-reduce",
            hints=("a reduction over what does not depend on the state is a te.compute before.",),
        )
    raise IRError(
        f"te.scan: the update '{update.name}' is no te.compute of one tensor; expected one that "
        f"reads '{made.state.name}'.",
        code="te-scan-update",
    )


def _check_closed(made: _Scan) -> None:
    """The update reads the state, and nothing else that leads here does. Raises: IRError."""
    state = made.state
    assert made.update.computation is not None
    read = made.update.computation.inputs
    if state not in read:
        raise IRError(
            f"te.scan: the update '{made.update.name}' does not read '{state.name}'; expected a "
            "recurrence.",
            code="te-scan-unread",
            hints=("a te.compute gives elements that do not depend on each other.",),
        )
    seen: set[Tensor] = set()
    waiting = [made.init, *(tensor for tensor in read if tensor is not state)]
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or tensor.computation is None:
            continue
        seen.add(tensor)
        waiting += tensor.computation.inputs
        if state in tensor.computation.inputs:
            raise IRError(
                f"te.scan: '{tensor.name}' reads state '{state.name}'; expected the update "
                f"'{made.update.name}' alone to read it.",
                code="te-scan-inside",
                hints=(f"write its expression into the element of '{made.update.name}'.",),
            )


def _check_earlier(made: _Scan, value: Expr, time: Var) -> None:
    """At each step after the first ones, every read of the state is of an earlier step that there
    is. Raises: IRError.
    """
    low, high = (0, made.steps - made.first - 1) if made.reverse else (made.first, made.steps - 1)
    assert made.update.computation is not None
    extents = zip(made.update.computation.axes, made.state.shape, strict=True)
    ranges: dict[Var, Interval] = {axis: (0, extent - 1) for axis, extent in extents}
    ranges[time] = (low, high)
    for load in loads(value) if low <= high else ():
        if load.buffer is not made.state:
            continue
        at = load.indices[made.axis]
        back = at - time if made.reverse else time - at
        from_end = made.steps - 1 - at if made.reverse else at
        nearest, least = bounds(back, ranges)[0], bounds(from_end, ranges)[0]
        if nearest is None or nearest < 1 or least is None or least < 0:
            raise _not_earlier(made, load, time, high if made.reverse else low, nearest)


def _not_earlier(made: _Scan, load: Load, time: Var, step: int, nearest: int | None) -> IRError:
    name, sign = time.name, "+" if made.reverse else "-"
    known = nearest is not None and nearest >= 1
    begins = f"{name} {'<=' if made.reverse else '>='} {step}"
    wanted = f"{name} {sign} 1" + (f" .. {name} {sign} {made.first}" if made.first > 1 else "")
    hint = f"an initial part of more steps lets the update reach further back than {made.first}."
    if not known:
        hint = f"'{made.state.name}' at {name} {sign} 1 is the step before."
    return IRError(
        f"te.scan: the update '{made.update.name}' reads step {print_expr(load.indices[made.axis])}"
        f" of '{made.state.name}' where it computes step {name}, for {begins}; expected {wanted}.",
        code="te-scan-earlier",
        hints=(hint,),
    )


def _initial(made: _Scan, axes: Sequence[Var]) -> Expr:
    """An element of the initial part: its expression, where it has one."""
    at: list[Expr] = list(axes)
    if made.reverse:
        at[made.axis] = axes[made.axis] - (made.steps - made.first)
    found = made.init.computation
    plain = found is not None and len(found.values) == 1 and found.recurrence is None
    if found is None or not plain or isinstance(found.values[0], Reduce):
        return made.init[tuple(at)]
    return substitute(found.values[0], dict(zip(found.axes, at, strict=True)))
