"""Name what straight-line code loads more than once, so that it is loaded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TypeVar

from ....tir.analysis.linear import linear
from ....tir.buffer import Buffer, Load
from ....tir.expr import And, Const, Expr, FloorMod, Let, Or, Select, Var
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Reinterpret
from ....tir.node import Node
from ....tir.stmt import LetStmt, Prefetch, Seq, Stmt, Store, seq
from ....tir.visit import found_in, loads, transform_statements, walk

NodeT = TypeVar("NodeT", bound=Node)


@dataclass(frozen=True, slots=True)
class CommonLoads:
    """Name equal loads, broadcasts and masks of consecutive stores, each just before its first use.

    C_0 = fma(broadcast(A[k], 16), B[r], C_0)              b: float32x16 = B[r]
    C_1 = fma(broadcast(A[k + 9], 16), B[r], C_1)    ->    C_0 = fma(broadcast(A[k], 16), b, C_0)
                                                           C_1 = fma(broadcast(A[k + 9], 16), b,
                                                           C_1)

    A load ends with the next store to its buffer that may set its element. What a scalar Select,
    And or Or may skip is not loaded early.
    Requires: no loop is VECTORIZED or UNROLLED. Ensures: the same, with LetStmts.
    """

    max_names: int = 64

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform_statements(func.body, self._runs))

    def _runs(self, node: Node) -> Node:
        if not isinstance(node, Stmt) or isinstance(node, Store):
            return node
        if not isinstance(node, Seq):
            return node.map_children(lambda c: self._run([c]) if isinstance(c, Store) else c)
        parts: list[Stmt] = []
        run: list[Store | Prefetch] = []
        for stmt in node.body:
            if isinstance(stmt, Store | Prefetch):
                run.append(stmt)
                continue
            parts += [self._run(run), stmt] if run else [stmt]
            run = []
        if run:
            parts.append(self._run(run))
        return node if tuple(parts) == node.body else seq(*parts)

    def _run(self, run: Sequence[Store | Prefetch]) -> Stmt:
        """The stores with their common values named. The same statements where nothing is
        common.
        """
        groups = _groups(run)
        chosen = [group for group in groups if group.uses > 1]
        if not chosen:
            return seq(*run)
        if len(chosen) > self.max_names:
            chosen = sorted(chosen, key=lambda group: -group.uses)[: self.max_names]
        chosen.sort(key=lambda group: group.first)
        return seq(*_named(run, chosen))


@dataclass(slots=True)
class _Group:
    """One value, used by the statements `first` .. `last` without a store to its buffer in
    between.
    """

    value: Expr
    first: int
    last: int
    uses: int
    var: Var
    read: tuple[Load, ...]  # what a store ends it with


def _groups(run: Sequence[Store | Prefetch]) -> list[_Group]:
    """The values of a run, those inside others first."""
    open_groups: dict[Expr, _Group] = {}
    read_here: set[Buffer] = set()  # all that was read by a group
    found: list[_Group] = []
    for position, stmt in enumerate(run):
        if isinstance(stmt, Prefetch):
            continue
        for value in _values(stmt):
            group = open_groups.get(value)
            if group is None:
                read = tuple(loads(value))
                var = Var(_name(value), value.dtype)
                group = open_groups[value] = _Group(value, position, position, 0, var, read)
                found.append(group)
                read_here |= {load.buffer for load in read}
            group.last = position
            group.uses += 1
        if stmt.buffer in read_here:
            ended = partial(_may_set, stmt)
            open_groups = {v: g for v, g in open_groups.items() if not any(map(ended, g.read))}
    return found


def _may_set(store: Store, load: Load) -> bool:
    """Whether a store may set an element that was loaded: not one that is apart in some dimension,
    as that of another step of a recurrence is.
    """
    pairs = zip(store.indices, load.indices, strict=True)
    return store.buffer is load.buffer and not any(starmap(_are_apart, pairs))


def _are_apart(a: Expr, b: Expr) -> bool:
    """Whether two indices differ, by themselves or modulo a number."""
    if a.dtype.lanes > 1 or b.dtype.lanes > 1:
        return False
    match a, b:
        case FloorMod(one, Const(size)), FloorMod(other, Const(same)) if size == same:
            inside = linear(one) - linear(other)
            return not inside.terms and inside.constant % int(size) != 0
    apart = linear(a) - linear(b)
    return not apart.terms and apart.constant != 0


def _values(stmt: Store) -> Iterator[Expr]:
    """The loads, broadcasts and masks that the statement is sure to evaluate, inner ones first."""
    bound = {node.var for node in found_in(stmt, Let)}
    listed = (*stmt.indices, stmt.value, *(() if stmt.mask is None else (stmt.mask,)))
    for part in listed:
        for value in _sure(part):
            if not bound or bound.isdisjoint(walk(value)):
                yield value


def _sure(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Select() if expr.condition.dtype.lanes == 1:
            yield from _sure(expr.condition)
            return
        case And() | Or() if expr.dtype.lanes == 1:
            yield from _sure(expr.a)
            return
        case Broadcast(Const()):
            return
        case Reinterpret(Load() as load) if expr.dtype.lanes != load.dtype.lanes:
            yield expr  # the bits of a load of elements that no variable holds
            return
        case Broadcast(Reinterpret(Load() as load)):
            for index in load.indices:
                yield from _sure(index)
            yield expr
            return
        case Broadcast(value) if not value.dtype.is_bool and not value.dtype.is_integer:
            if isinstance(value, Load):
                for index in value.indices:
                    yield from _sure(index)
            else:
                yield from _sure(value)
            yield expr
            return
    for child in expr.children():
        if isinstance(child, Expr):
            yield from _sure(child)
    if (isinstance(expr, Load) and expr.buffer.scope != "register") or _is_nameable_mask(expr):
        yield expr


def _is_nameable_mask(mask: Expr) -> bool:
    return (
        mask.dtype.is_bool and mask.dtype.lanes > 1 and not isinstance(mask, Var | Broadcast | Let)
    )


def _name(value: Expr) -> str:
    inner = value
    while isinstance(inner, Broadcast | Reinterpret):
        inner = inner.value
    if isinstance(inner, Load):
        return inner.buffer.name
    return "on" if value.dtype.is_bool else "all"


def _named(run: Sequence[Store | Prefetch], groups: Sequence[_Group]) -> list[Stmt]:
    """Put each group's LetStmt before its first statement; its scope ends where all overlapping
    ones end.
    """
    ends: dict[int, int] = {}  # first statement of a scope -> its last
    start = end = -1
    for group in groups:
        if group.first > end:
            start, end = group.first, group.last
        end = max(end, group.last)
        ends[start] = end
    parts: list[Stmt] = []
    position = 0
    for start, end in ends.items():
        parts += run[position:start]
        parts.append(_scope(run, [g for g in groups if start <= g.first <= end], start, end))
        position = end + 1
    return [*parts, *run[position:]]


def _scope(run: Sequence[Store | Prefetch], groups: Sequence[_Group], start: int, end: int) -> Stmt:
    rewritten: list[tuple[list[tuple[Var, Expr]], Stmt]] = []
    active: dict[Expr, Var] = {}
    for position in range(start, end + 1):
        lets: list[tuple[Var, Expr]] = []
        for group in groups:
            if group.last < position and active.get(group.value) is group.var:
                del active[group.value]
            if group.first == position:
                lets.append((group.var, _replace(group.value, active)))
                active[group.value] = group.var
        rewritten.append((lets, _replace(run[position], active)))
    rest: list[Stmt] = []
    for lets, stmt in reversed(rewritten):
        rest.insert(0, stmt)
        for var, value in reversed(lets):
            rest = [LetStmt(var, value, seq(*rest))]
    return seq(*rest)


def _replace(node: NodeT, values: dict[Expr, Var]) -> NodeT:
    """The tree with each expression in `values`, outermost first, replaced by its variable.

    `node` itself stays: a statement, or a value that is about to be named.
    """

    def visit(item: Node) -> Node:
        if isinstance(item, Expr) and item in values:
            return values[item]
        return item if _takes_bits_of_some(item) else item.map_children(visit)

    return node if _takes_bits_of_some(node) else node.map_children(visit)


def _takes_bits_of_some(node: Node) -> bool:
    """Whether it is the bits of some of the elements of a load: code is written for those that are
    left out, so the mask must be known where they are read.
    """
    match node:
        case Reinterpret(Load(mask=Expr()) as load):
            return node.dtype.lanes != load.dtype.lanes
    return False
