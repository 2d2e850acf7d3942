"""Put barriers between what the threads of a block do: where one thread may touch what another one
has touched, one of them writing, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...tir.buffer import Buffer
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.stmt import Alloc, Barrier, Block, For, If, LetStmt, Prefetch, Seq, Stmt, Store, seq
from ...tir.visit import accesses, statements, substitute, transform
from .thread_owner import Dealt, dealt


@dataclass(frozen=True, slots=True)
class PlaceTeamBarriers:
    """Place the barriers inside of the nests of a grid anew.

    for k: { copy(S); sum(S) }   ->   for k: { copy(S); barrier(); sum(S); barrier() }

    Requires: stage NEST. Ensures: stage NEST; outside of loops of threads, in nests that have some,
    a barrier stands between two statements, or at the end of a serial loop's body, exactly where no
    other one parts them and one writes, for another block, a buffer that the other touches, and the
    indices do not show that each element is of one thread. Buffers of a thread's own need none.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        body = _rooted(func.body)
        return func if body == func.body else func.with_body(body)


def _rooted(stmt: Stmt) -> Stmt:
    """The statements at the root, each with its barriers inside."""
    match stmt:
        case Seq():
            return seq(*map(_rooted, stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _rooted(stmt.body))
        case For() if _has_threads(stmt):
            return _placed(_without(stmt)).stmt
    return stmt


@dataclass(frozen=True, slots=True)
class _Access:
    """A buffer that threads share, and who touches it.

    family: of the block; ordered: a recurrence, which also reads what other points have set. axes:
    along which threads are told apart; dealt: what the index says of them.
    """

    buffer: Buffer
    family: str
    ordered: bool
    write: bool
    axes: frozenset[str]
    dealt: frozenset[Dealt]

    def clashes(self, other: _Access) -> bool:
        """Whether different threads may touch one element, one of them writing.

        The points of a family that set, or accumulate into, one element are of one thread: loops of
        threads run over its axes alone.
        """
        if self.buffer is not other.buffer or not (self.write or other.write):
            return False
        if self.family == other.family and not (self.ordered or other.ordered):
            return False
        return not self.axes | other.axes <= {item.axis for item in self.dealt & other.dealt}


@dataclass(frozen=True, slots=True)
class _Placed:
    """A statement with its barriers: what it touches before the first and behind the last one;
    both are all that it touches where there is none.
    """

    stmt: Stmt
    first: frozenset[_Access]
    last: frozenset[_Access]
    parts: bool  # whether a barrier always runs in it

    def follows(self, earlier: frozenset[_Access]) -> bool:
        """Whether a barrier must stand between what was done earlier and the statement."""
        return any(one.clashes(other) for one in earlier for other in self.first)


def _placed(stmt: Stmt) -> _Placed:
    match stmt:
        case Alloc():
            inner = _placed(stmt.body)
            return replace(inner, stmt=Alloc(stmt.buffer, inner.stmt))
        case LetStmt():
            inner = _placed(stmt.body)
            return replace(inner, stmt=replace(stmt, body=inner.stmt))
        case Seq():
            return _sequence(stmt)
        case If():
            return _branch(stmt)
        case For() if not stmt.is_of_threads and _has_threads(stmt):
            return _loop(stmt)
    mine = _touched(stmt)
    return _Placed(stmt, mine, mine, False)


def _sequence(stmt: Seq) -> _Placed:
    done: list[Stmt] = []
    first: frozenset[_Access] = frozenset()
    last: frozenset[_Access] = frozenset()
    parts = False
    for child in map(_placed, stmt.body):
        if child.follows(last):
            done.append(Barrier())
            last, parts = frozenset(), True
        done.append(child.stmt)
        if not parts:
            first |= child.first
        last = child.last if child.parts else last | child.last
        parts = parts or child.parts
    return _Placed(seq(*done), first, last, parts)


def _branch(stmt: If) -> _Placed:
    sides = [_placed(side) for side in (stmt.then, stmt.orelse) if side is not None]
    orelse = sides[1].stmt if stmt.orelse is not None else None
    first = frozenset[_Access]().union(*(side.first for side in sides))
    last = frozenset[_Access]().union(*(side.last for side in sides))
    parts = len(sides) == 2 and all(side.parts for side in sides)
    return _Placed(If(stmt.condition, sides[0].stmt, orelse), first, last, parts)


def _loop(loop: For) -> _Placed:
    """A serial loop: what ends an iteration comes before what begins the next one. Of blocks none
    comes before another one.
    """
    body = _placed(loop.body)
    if loop.extent > 1 and not loop.is_of_blocks and body.follows(body.last):
        body = _Placed(_ended(body.stmt), body.first, frozenset(), True)
    return replace(body, stmt=replace(loop, body=body.stmt))


def _ended(stmt: Stmt) -> Stmt:
    """A body with a barrier at its end, inside of its allocations."""
    if isinstance(stmt, Alloc | LetStmt):
        return replace(stmt, body=_ended(stmt.body))
    return seq(stmt, Barrier())


def _has_threads(stmt: Stmt) -> bool:
    return any(isinstance(node, For) and node.is_of_threads for node in statements(stmt))


def _touched(stmt: Stmt) -> frozenset[_Access]:
    found: set[_Access] = set()
    _collect(stmt, (), found)
    return frozenset(found)


def _collect(stmt: Stmt, loops: tuple[For, ...], found: set[_Access]) -> None:
    if isinstance(stmt, Block):
        found.update(_accesses_of(stmt, loops))
        return
    inside = (*loops, stmt) if isinstance(stmt, For) else loops
    for child in stmt.children():
        if isinstance(child, Stmt):
            _collect(child, inside, found)


def _accesses_of(block: Block, loops: tuple[For, ...]) -> Iterator[_Access]:
    axes = frozenset(loop.axis for loop in loops if loop.is_of_threads and loop.extent > 1)
    values = {it.var: binding for it, binding in zip(block.iters, block.bindings, strict=True)}
    for access in accesses(block):
        if isinstance(access, Prefetch) or access.buffer.is_private:
            continue
        at = [substitute(index, values) for index in access.indices]
        write = isinstance(access, Store)
        of = (block.family, block.is_ordered)
        yield _Access(access.buffer, *of, write, axes, dealt(at, loops))


def _without(stmt: Stmt) -> Stmt:
    """A statement without the barriers in it."""

    def drop(node: Node) -> Node:
        if isinstance(node, Seq) and any(isinstance(x, Barrier) for x in node.body):
            return seq(*(x for x in node.body if not isinstance(x, Barrier)))
        return node

    return transform(stmt, drop)
