"""What plain arithmetic shows of the iterations of a loop that run at once: that each keeps to a
share of a buffer of its own.

In each iteration the accesses to a buffer lie, along each axis, in an interval. Iterations whose
intervals along an axis touch, one by one, are of one class there; those of different classes never
meet. So where the classes along all axes together tell all iterations apart, as the quotient and
the remainder of a fused loop do, no two of them meet. Of a long loop without branches of its own it
is enough that along one axis all indices are c*i + r, with r in an interval narrower than c.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....tir.buffer import Buffer, Load
from ....tir.expr import Expr, Var
from ....tir.stmt import Alloc, For, If, Stmt, Store
from ....tir.visit import found_in, loads, statements, stores
from ..forms.affine import Affine, Undecided, interval, variable
from ..forms.condition import Cases, Constraint, condition, negated
from ..forms.statements import narrowed
from .spans import Interval, Spans

MOST_COUNTED = 4096  # iterations that are looked at one by one


@dataclass(frozen=True, slots=True)
class Use:
    """Elements that a loop's body touches in the iterations `during`."""

    indices: tuple[Expr, ...]
    during: Interval


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an index lies in the iterations `during`: at a form of the loop alone and a form of the
    loops around it, plus something from `low` to `high`.
    """

    own: Affine
    around: Affine
    low: int
    high: int
    during: Interval


def unshared(loop: For, around: frozenset[Var], spans: Spans) -> Iterator[Buffer]:
    """The buffers, written in a loop, of which it is not plain that different iterations touch
    different elements while those of the loops around it are the same.
    """
    own = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Alloc)}
    uses: dict[Buffer, set[Use]] = {
        store.buffer: set() for store in stores(loop.body) if store.buffer not in own
    }
    _collect(loop.body, loop, (0, loop.extent - 1), spans, uses)
    for buffer, found in uses.items():
        if not _keep_apart(loop, around, found, spans):
            yield buffer


def _collect(
    stmt: Stmt, loop: For, during: Interval, spans: Spans, uses: dict[Buffer, set[Use]]
) -> None:
    """Add what a statement touches, each with the iterations that branches on the loop leave."""
    if not any(isinstance(node, If) for node in statements(stmt)):
        _note((*loads(stmt), *stores(stmt)), during, uses)
        return
    if isinstance(stmt, If):
        _note(loads(stmt.condition), during, uses)
        then, orelse = _branches(stmt.condition, loop, during, spans)
        _collect(stmt.then, loop, then, spans, uses)
        if stmt.orelse is not None:
            _collect(stmt.orelse, loop, orelse, spans, uses)
        return
    for child in stmt.children():
        if isinstance(child, Stmt):
            _collect(child, loop, during, spans, uses)
        else:
            _note(found_in(child, Load), during, uses)


def _note(items: Iterable[Load | Store], during: Interval, uses: dict[Buffer, set[Use]]) -> None:
    for item in items:
        if item.buffer in uses:
            uses[item.buffer].add(Use(item.indices, during))


def _branches(chosen: Expr, loop: For, during: Interval, spans: Spans) -> tuple[Interval, Interval]:
    """The iterations in which a condition holds, and those in which it does not, or more."""
    try:
        holds = condition(chosen, spans.env, spans.ranges)
        fails = negated(holds, spans.ranges)
    except Undecided:
        return during, during
    return _during(holds, loop, during, spans), _during(fails, loop, during, spans)


def _during(where: Cases, loop: For, during: Interval, spans: Spans) -> Interval:
    """The iterations that are left where something of what else the condition mentions allows it:
    2*i + 1 < n leaves those with 2*i + 1 < 3 where no call has a larger n.
    """
    plain = tuple(tuple(p for c in case for p in _of_loop(c, loop, spans)) for case in where)
    return narrowed({loop.var: during}, plain)[loop.var]


def _of_loop(constraint: Constraint, loop: For, spans: Spans) -> Iterator[Constraint]:
    """What a constraint says of a loop's variable, whatever the other variables are."""
    factor = dict(constraint.form.terms).get(loop.var, 0)
    own = variable(loop.var).scaled(factor)
    rest = constraint.form - own
    if not factor or loop.var in rest.variables():
        return
    low, high = interval(rest, spans.ranges)
    yield Constraint(own.plus(high))
    if constraint.equality:
        yield Constraint(own.plus(low).scaled(-1))


def _keep_apart(loop: For, around: frozenset[Var], uses: Iterable[Use], spans: Spans) -> bool:
    listed = tuple(uses)
    columns: list[list[int]] = []
    for axis in range(len(listed[0].indices)):
        pairs = dict.fromkeys((use.indices[axis], use.during) for use in listed)
        places = _places(loop, around, pairs, spans)
        if places is None:
            continue
        if _is_stepped(loop, places):
            return True
        if loop.extent <= MOST_COUNTED:
            columns.append(_classes(loop, places))
    return bool(columns) and len(set(zip(*columns, strict=True))) == loop.extent


def _places(
    loop: For, around: frozenset[Var], pairs: Iterable[tuple[Expr, Interval]], spans: Spans
) -> list[_Place] | None:
    """Where the indices along an axis lie, those of one form as one; None where that cannot be
    told, or differs with the loops around.
    """
    found: dict[tuple[Affine, Interval], _Place] = {}
    outer: Affine | None = None
    for item, during in pairs:
        if during[0] > during[1]:
            continue
        try:
            part = _place(loop, around, spans.form(item), during, spans)
        except Undecided:
            return None
        if part is None or (outer is not None and part.around != outer):
            return None
        outer = part.around
        known = found.get((part.own, during))
        if known is not None:
            low, high = min(part.low, known.low), max(part.high, known.high)
            part = _Place(part.own, outer, low, high, during)
        found[part.own, during] = part
    return list(found.values())


def _place(
    loop: For, around: frozenset[Var], form: Affine, during: Interval, spans: Spans
) -> _Place | None:
    """None where a quotient is of the loop and of others."""
    own, outer, rest = [], [], []
    for atom, factor in form.terms:
        used = (atom,) if isinstance(atom, Var) else tuple(Affine(((atom, 1),)).variables())
        if all(var is loop.var for var in used):
            own.append((atom, factor))
        elif loop.var in used:
            return None
        elif around.issuperset(used):
            outer.append((atom, factor))
        else:
            rest.append((atom, factor))
    low, high = interval(Affine(tuple(rest), form.constant), spans.ranges)
    return _Place(Affine(tuple(own)), Affine(tuple(outer)), low, high, during)


def _is_stepped(loop: For, places: Sequence[_Place]) -> bool:
    """Whether there is one form, c*i, and what is added to it lies in less than c."""
    if len(places) != 1 or len(places[0].own.terms) != 1:
        return False
    ((atom, factor),) = places[0].own.terms
    return atom is loop.var and places[0].high - places[0].low < abs(factor)


def _classes(loop: For, places: Sequence[_Place]) -> list[int]:
    """The class of each iteration along an axis; of one that touches nothing, one of its own."""
    lows: list[int | None] = [None] * loop.extent
    highs = [0] * loop.extent
    for place in places:
        for step in range(max(0, place.during[0]), min(loop.extent - 1, place.during[1]) + 1):
            at = place.own.value({loop.var: step})
            known = lows[step]
            low, high = at + place.low, at + place.high
            lows[step] = low if known is None else min(known, low)
            highs[step] = high if known is None else max(highs[step], high)
    classes = [-1 - step for step in range(loop.extent)]
    touched = sorted((low, step) for step, low in enumerate(lows) if low is not None)
    number, end = 0, touched[0][0] - 1 if touched else 0
    for low, step in touched:
        number += low > end
        end = max(end, highs[step])
        classes[step] = number
    return classes
