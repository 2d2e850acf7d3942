"""Keep in a register what an iteration of a loop stores and the next one loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from ....tir.analysis.linear import linear
from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.expr import And, Expr, Or, Select, Sub, Var, index
from ....tir.func import PrimFunc
from ....tir.lowered import Ramp
from ....tir.node import Node
from ....tir.stmt import Alloc, For, ForKind, LetStmt, Seq, Stmt, Store, seq
from ....tir.visit import exchange, free_vars, loads, substitute, transform

WHOLE = 32  # bits, from which on a variable in C holds an element as it is

Indices: TypeAlias = Sequence[Expr]
NodeT = TypeVar("NodeT", bound=Node)


@dataclass(frozen=True, slots=True)
class CarriedLoads:
    """Let a running value stay in a register: on its way through memory it takes several times as
    long as an addition.

    for i in range(n):                                   Y_last = Y[0]
        Y[i + 1] = Y[i] + X[i + 1]              ->       for i in range(n):
                                                             Y_last = Y_last + X[i + 1]
                                                             Y[i + 1] = Y_last

    Of straight-line code in a serial loop: where no other store of an iteration may set what one
    stores, and the next iteration is sure to load that before it stores again. What the first one
    loads is loaded in front of the loop.
    Requires: no loop is VECTORIZED or UNROLLED. Ensures: the same.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = transform(func.body, _carried)
        return func if body is func.body else func.with_body(body)


def _carried(node: Node) -> Node:
    if not isinstance(node, For) or node.kind is not ForKind.SERIAL or node.extent < 2:
        return node
    parts = tuple(_flat(node.body))
    if not all(isinstance(part, LetStmt | Store) for part in parts):
        return node
    listed = (_running(store, parts, node.var) for store in parts if isinstance(store, Store))
    found = [value for value in listed if value is not None]
    if not found:
        return node
    result: Stmt = replace(node, body=_Writer(found).write(node.body))
    for value in reversed(found):
        at = tuple(simplify(substitute(i, {node.var: index(0)})) for i in value.before)
        first = Load(value.store.buffer, at)
        result = Alloc(value.last, seq(Store(value.last, (), first), result))
    return result


def _flat(body: Stmt) -> Iterator[Stmt]:
    """The names and stores of straight-line code in their order, and whatever else there is."""
    if isinstance(body, Seq):
        for part in body.body:
            yield from _flat(part)
        return
    yield body
    if isinstance(body, LetStmt):
        yield from _flat(body.body)


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """A running value: its store, where the iteration before stored it, and its register."""

    store: Store
    before: tuple[Expr, ...]
    last: Buffer

    def is_loaded_by(self, node: Node) -> bool:
        """Whether a node loads what the iteration before stored."""
        if not isinstance(node, Load) or node.mask is not None:
            return False
        return node.buffer is self.store.buffer and _are_equal(node.indices, self.before)


def _running(store: Store, parts: Sequence[Stmt], var: Var) -> _Running | None:
    """What a store of a loop's body stores, where it is a running value."""
    buffer = store.buffer
    if store.mask is not None or buffer.scope == "register" or buffer.type.bits < WHOLE:
        return None
    used = frozenset[Var]().union(*map(free_vars, store.indices))
    named = {part.var for part in parts if isinstance(part, LetStmt)}
    if var not in used or used & named or any(loads(at) for at in store.indices):
        return None  # one place, or one that is another one each time
    others = [p for p in parts if isinstance(p, Store) and p.buffer is buffer and p is not store]
    if not all(_are_apart(store.indices, other.indices, var) for other in others):
        return None
    before = tuple(substitute(at, {var: Sub(var, index(1))}) for at in store.indices)
    kind = buffer.type.with_lanes(max((at.dtype.lanes for at in before), default=1))
    value = _Running(
        store, before, Buffer(f"{buffer.name}_last", kind, (), "register", buffer.origin)
    )
    earlier = parts[: parts.index(store) + 1]
    sure = (load for part in earlier for own in _evaluated(part) for load in _sure(own))
    return value if any(map(value.is_loaded_by, sure)) else None


def _evaluated(part: Stmt) -> Sequence[Node]:
    """The expressions of a name or a store."""
    return (part.value,) if isinstance(part, LetStmt) else part.children()


def _sure(node: Node) -> Iterator[Load]:
    """The loads that are evaluated whatever data are."""
    match node:
        case Select() if node.condition.dtype.lanes == 1:
            yield from _sure(node.condition)
            return
        case And() | Or() if node.dtype.lanes == 1:
            yield from _sure(node.a)
            return
        case Load():
            yield node
    for child in node.children():
        yield from _sure(child)


def _are_equal(one: Indices, other: Indices) -> bool:
    """Whether indices are the same, those of neighbours among them."""
    return all(map(_is_equal, one, other))


def _is_equal(one: Expr, other: Expr) -> bool:
    if isinstance(one, Ramp) and isinstance(other, Ramp):
        alike = (one.stride, one.lanes) == (other.stride, other.lanes)
        return alike and _is_equal(one.base, other.base)
    if one.dtype.lanes > 1 or other.dtype.lanes > 1:
        return False
    difference = linear(one) - linear(other)
    return not difference.terms and difference.constant == 0


def _are_apart(one: Indices, other: Indices, var: Var) -> bool:
    """Whether what any two iterations store is apart along an axis: the places differ there by a
    number, and do not move with the loop.
    """
    for a, b in zip(one, other, strict=True):
        if a.dtype.lanes > 1 or b.dtype.lanes > 1 or var in free_vars(a) | free_vars(b):
            continue
        difference = linear(a) - linear(b)
        if not difference.terms and difference.constant != 0:
            return True
    return False


class _Writer:
    """Writes the body of a loop anew; of the values that it has not stored yet, loads are of
    registers.
    """

    def __init__(self, found: Sequence[_Running]) -> None:
        self._open = list(found)

    def write(self, body: Stmt) -> Stmt:
        """The same statements in their order."""
        match body:
            case Seq():
                return seq(*[self.write(part) for part in body.body])
            case LetStmt(var, value, inner):
                own = self._read(value)
                return LetStmt(var, own, self.write(inner))
            case Store():
                return self._store(body)
        raise TypeError(f"a {type(body).__name__} stands in straight-line code")

    def _store(self, store: Store) -> Stmt:
        made = self._read(store)
        value = next((value for value in self._open if value.store is store), None)
        if value is None:
            return made
        self._open.remove(value)
        return seq(Store(value.last, (), made.value), replace(made, value=Load(value.last, ())))

    def _read(self, node: NodeT) -> NodeT:
        def rule(item: Node) -> Node:
            value = next((value for value in self._open if value.is_loaded_by(item)), None)
            return item if value is None else Load(value.last, ())

        return exchange(node, rule)
