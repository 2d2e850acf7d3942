"""Scans of the tensor-expression language: te.state, te.scan.

    S = te.state((T, N), "float32", name="S")
    first = te.compute((1, N), lambda t, i: X[t, i], name="first")
    step = te.compute((T, N), lambda t, i: S[t - 1, i] + X[t, i], name="step")
    sums = te.scan(first, step, S)          # sums[t, i] = X[0, i] + ... + X[t, i]

One axis of the state is ordered: `first` gives its first steps, `step` each later one, and may read
earlier steps of the state. The result is one tensor, called as the state is, of one block whose
ordered variable runs through the steps:

    S[t, i] = first[t, i] where t < 1, else step[t, i] with S for the state

Several states of one shape go on together: each update may read earlier steps of all of them.

    C, H = te.scan((c0, h0), te.compute((T, N), cell, name=("c", "h")), (C, H))

They are tensors of one block, whose values are all computed before one is set.

Only the order of the steps is fixed, and only as far as elements are read: a schedule may reorder,
share out and vectorise the other axes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from ..analysis.bounds import bounds
from ..analysis.linear import Interval
from ..buffer import Load
from ..dim import Extent, most
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, IRTypeError
from ..expr import Expr, Select, Var, index
from ..text.printer import print_expr
from ..visit import loads, substitute
from .checks import checked_shape
from .dims import check_stepped
from .tensor import Computation, Recurrence, Tensor


def state(shape: Sequence[Extent] | Extent, dtype: str | DType, *, name: str) -> Tensor:
    """What stands for the result of a te.scan in the step that computes it.

    Raises: IRError for an extent that is no integer of 0 or more, or an unknown type.
    """
    extents = checked_shape(shape, name)
    check_stepped(name, extents)
    return Tensor(name, as_dtype(dtype), tuple(map(most, extents)), state=True)


@overload
def scan(
    init: Tensor, update: Tensor, state: Tensor, *, axis: int = 0, reverse: bool = False
) -> Tensor: ...


@overload
def scan(
    init: tuple[Tensor, ...],
    update: tuple[Tensor, ...],
    state: tuple[Tensor, ...],
    *,
    axis: int = 0,
    reverse: bool = False,
) -> tuple[Tensor, ...]: ...


def scan(
    init: Tensor | tuple[Tensor, ...],
    update: Tensor | tuple[Tensor, ...],
    state: Tensor | tuple[Tensor, ...],
    *,
    axis: int = 0,
    reverse: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """The tensor whose first steps along `axis` are those of `init`, each later one as `update`
    computes it from earlier steps of `state`; a tensor for each of several states of one shape,
    given as tuples, where each update may read earlier steps of all states.

    init: of the shape of the state, but for its number of steps, which is 1 or more. update: an
    output of a te.compute of the state's shape; the states are read nowhere else. reverse: the
    steps run from the last index to the first, so `init` gives the last ones and `update` reads
    later indices.
    Raises: IRError where numbers of parts, shapes or types differ, an update is a reduction, or
    reads a step that is not an earlier one; IRTypeError for what is no state.
    """
    states = _checked_states(state)
    place = _checked_axis(states[0], axis)
    inits, updates = _listed("init", init, states), _listed("update", update, states)
    _check_counts(inits, updates, states)
    parts = tuple(map(_Part, inits, updates, states))
    made = _Scan(parts, place, reverse)
    for part in parts:
        _check_alike(made, part)
    elements = [_checked_update(made, part) for part in parts]
    for part in parts:
        _check_closed(made, part)
    axes = elements[0].axes
    time = axes[place]
    values = []
    for part, element in zip(parts, elements, strict=True):
        same: dict[Var, Expr] = dict(zip(element.axes, axes, strict=True))
        later = substitute(element.values[part.update.output], same)
        _check_earlier(made, part, later, axes)
        begins = (
            time < made.first(part) if not reverse else index(made.steps - made.first(part)) <= time
        )
        values.append(Select(begins, _initial(made, part, axes), later))
    names = tuple(each.name for each in states)
    recurrence = Recurrence(states, time, reverse)
    computation = Computation(names, made.shape, axes, tuple(values), recurrence=recurrence)
    tensors = tuple(
        Tensor(each.name, each.type, each.shape, computation=computation, output=n)
        for n, each in enumerate(states)
    )
    return tensors[0] if isinstance(state, Tensor) else tensors


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What a te.scan says of one of its states."""

    init: Tensor
    update: Tensor
    state: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """The arguments of a te.scan."""

    parts: tuple[_Part, ...]
    axis: int
    reverse: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """That of each state."""
        return self.parts[0].state.shape

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.shape[self.axis]

    @property
    def states(self) -> tuple[Tensor, ...]:
        """The states, in the order of the call."""
        return tuple(part.state for part in self.parts)

    def first(self, part: _Part) -> int:
        """How many of them the initial part of a state gives."""
        return part.init.shape[self.axis]

    def listed(self) -> str:
        """The names of the states, each in quotes."""
        return " or ".join(f"'{state.name}'" for state in self.states)


def _listed(role: str, given: object, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors of a role, one or a tuple. Raises: IRTypeError."""
    listed = given if isinstance(given, tuple) else (given,)
    wrong = [item for item in listed if not isinstance(item, Tensor)]
    if wrong:
        first = states[0]
        steps = 'te.placeholder((1, ...), "float32", name="S0"): the steps before the first update'
        raise IRTypeError(
            f"te.scan: {role} is {wrong[0]!r}; expected a tensor for each state.",
            code="te-scan-tensor",
            hints=(
                f"init={steps}.",
                f"update=te.compute({first.shape}, lambda ...: ..., name=...), which reads "
                f"'{first.name}'.",
            )[role == "update" :][:1],
        )
    return listed


def _checked_states(given: object) -> tuple[Tensor, ...]:
    """The states: of one shape, each once. Raises: IRTypeError, IRError."""
    listed = given if isinstance(given, tuple) else (given,)
    states = tuple(item for item in listed if isinstance(item, Tensor) and item.state)
    if not listed or len(states) < len(listed):
        wrong = next((item for item in listed if item not in states), given)
        shown = f"'{wrong.name}'" if isinstance(wrong, Tensor) else repr(wrong)
        raise IRTypeError(
            f"te.scan: the state is {shown}; expected what te.state gives.",
            code="te-scan-state",
            hints=('S = te.state((T, N), "float32", name="S"), which the update reads.',),
        )
    twice = next((state for n, state in enumerate(states) if state in states[:n]), None)
    if twice is not None:
        raise IRError(
            f"te.scan: the states list '{twice.name}' twice; expected each state once.",
            code="te-scan-twice",
        )
    first = states[0]
    other = next((state for state in states if state.shape != first.shape), None)
    if other is not None:
        raise IRError(
            f"te.scan: state '{other.name}' has shape {other.shape}; expected {first.shape}, the "
            f"shape of '{first.name}'.",
            code="te-scan-shapes",
            hints=(
                "the states of a scan are set at the same points; where one has fewer elements, "
                "it repeats them.",
            ),
        )
    return states


def _check_counts(
    inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor]
) -> None:
    """There are an initial part and an update for each state. Raises: IRError."""
    if not len(inits) == len(updates) == len(states):
        raise IRError(
            f"te.scan: {len(inits)} initial parts and {len(updates)} updates for {len(states)} "
            "states; expected one of each for each state.",
            code="te-scan-parts",
            hints=("te.scan((first, second), (step, other), (S, T)) computes S and T.",),
        )


def _checked_axis(state: Tensor, axis: int) -> int:
    """The ordered axis, which is not negative. Raises: IRError."""
    rank = len(state.shape)
    place = operator.index(axis)
    if -rank <= place < rank:
        return place % rank
    raise IRError(
        f"te.scan: axis {place} of '{state.name}', which has {rank} axes; "
        f"expected {-rank} to {rank - 1}.",
        code="te-scan-axis",
    )


def _check_alike(made: _Scan, part: _Part) -> None:
    """Init and update have the type of the state, and its shape but for the steps of the init."""
    state, axis = part.state, made.axis
    for what, given in (("initial part", part.init), ("update", part.update)):
        check_stepped(given.name, given.extents)
        if given.type != state.type:
            raise IRError(
                f"te.scan: the {what} '{given.name}' is {given.type}; expected {state.type}, the "
                f"type of '{state.name}'.",
                code="te-scan-type",
                hints=(f'te.cast(x, "{state.type}") converts an element.',),
            )
    if part.update.shape != state.shape:
        raise IRError(
            f"te.scan: the update '{part.update.name}' has shape {part.update.shape}; expected "
            f"{state.shape}, the shape of '{state.name}'.",
            code="te-scan-update-shape",
            hints=("it says what every step is; the first ones are then taken from the init.",),
        )
    begun, whole = part.init.shape, state.shape
    alike = len(begun) == len(whole) and begun[:axis] == whole[:axis]
    if not alike or begun[axis + 1 :] != whole[axis + 1 :] or begun[axis] < 1:
        wanted = ", ".join("1 or more" if n == axis else str(e) for n, e in enumerate(whole))
        raise IRError(
            f"te.scan: the initial part '{part.init.name}' has shape {begun}; expected "
            f"({wanted}), steps of '{state.name}' along axis {axis}.",
            code="te-scan-init-shape",
        )


def _checked_update(made: _Scan, part: _Part) -> Computation:
    """What gives an update: an expression for each element. Raises: IRError."""
    update, found = part.update, part.update.computation
    if found is None or found.recurrence is not None:
        raise IRError(
            f"te.scan: the update '{update.name}' is no result of a te.compute; expected one that "
            f"reads {made.listed()}.",
            code="te-scan-update",
        )
    if found.reduction is not None:
        raise IRError(
            f"te.scan: the update '{update.name}' is a reduction; expected one expression per "
            "element.",
            code="te-scan-reduce",
            hints=("a reduction over what does not depend on the state is a te.compute before.",),
        )
    return found


def _check_closed(made: _Scan, part: _Part) -> None:
    """The update reads a state, and nothing else that leads here does. Raises: IRError."""
    read = _read(part.update)
    if not any(state in read for state in made.states):
        raise IRError(
            f"te.scan: the update '{part.update.name}' does not read {made.listed()}; expected a "
            "recurrence.",
            code="te-scan-unread",
            hints=("a te.compute gives elements that do not depend on each other.",),
        )
    seen: set[Tensor] = set()
    waiting = [part.init, *(tensor for tensor in read if tensor not in made.states)]
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or tensor.computation is None:
            continue
        seen.add(tensor)
        waiting += tensor.computation.inputs
        state = next((state for state in made.states if state in tensor.computation.inputs), None)
        if state is not None:
            raise IRError(
                f"te.scan: '{tensor.name}' reads state '{state.name}'; expected the update "
                f"'{part.update.name}' alone to read it.",
                code="te-scan-inside",
                hints=(f"write its expression into the element of '{part.update.name}'.",),
            )


def _read(update: Tensor) -> tuple[Tensor, ...]:
    """The tensors that the value of an update reads."""
    assert update.computation is not None
    read = (load.buffer for load in loads(update.computation.values[update.output]))
    return tuple(tensor for tensor in read if isinstance(tensor, Tensor))


def _check_earlier(made: _Scan, part: _Part, value: Expr, axes: Sequence[Var]) -> None:
    """At each step after the first ones, every read of a state is of an earlier step that there is.

    Raises: IRError.
    """
    first, time = made.first(part), axes[made.axis]
    low, high = (0, made.steps - first - 1) if made.reverse else (first, made.steps - 1)
    extents = zip(axes, made.shape, strict=True)
    ranges: dict[Var, Interval] = {axis: (0, extent - 1) for axis, extent in extents}
    ranges[time] = (low, high)
    for load in loads(value) if low <= high else ():
        if load.buffer not in made.states:
            continue
        at = load.indices[made.axis]
        back = at - time if made.reverse else time - at
        from_end = made.steps - 1 - at if made.reverse else at
        nearest, least = bounds(back, ranges)[0], bounds(from_end, ranges)[0]
        if nearest is None or nearest < 1 or least is None or least < 0:
            raise _not_earlier(made, part, load, time, nearest)


def _not_earlier(made: _Scan, part: _Part, load: Load, time: Var, nearest: int | None) -> IRError:
    name, sign, first = time.name, "+" if made.reverse else "-", made.first(part)
    known = nearest is not None and nearest >= 1
    begins = f"{name} <= {made.steps - first - 1}" if made.reverse else f"{name} >= {first}"
    wanted = f"{name} {sign} 1" + (f" .. {name} {sign} {first}" if first > 1 else "")
    hint = f"an initial part of more steps lets the update reach further back than {first}."
    if not known:
        hint = f"'{load.buffer.name}' at {name} {sign} 1 is the step before."
    return IRError(
        f"te.scan: the update '{part.update.name}' reads step {print_expr(load.indices[made.axis])}"
        f" of '{load.buffer.name}' where it computes step {name}, for {begins}; expected {wanted}.",
        code="te-scan-earlier",
        hints=(hint,),
    )


def _initial(made: _Scan, part: _Part, axes: Sequence[Var]) -> Expr:
    """An element of an initial part: its expression, where it has one."""
    at: list[Expr] = list(axes)
    if made.reverse:
        at[made.axis] = axes[made.axis] - (made.steps - made.first(part))
    found = part.init.computation
    if found is None or found.recurrence is not None or found.reduction is not None:
        return part.init[tuple(at)]
    return substitute(found.values[part.init.output], dict(zip(found.axes, at, strict=True)))
