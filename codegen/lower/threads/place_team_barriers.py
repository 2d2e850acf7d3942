"""Put barriers between what the threads of a block do: where one thread may touch what another one
has touched, one of them writing, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....tir.analysis.threads import Kept, has_threads, joined_by, kept_by_all
from ....tir.buffer import Buffer
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Barrier, Block, For, If, LetStmt, Prefetch, Seq, Stmt, Store, seq
from ....tir.visit import accesses, stores, substitute, transform
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
        body = _rooted(func.body, kept_by_all(func.body))
        return func if body == func.body else func.with_body(body)


def _rooted(stmt: Stmt, kept: Kept) -> Stmt:
    """The statements at the root, each with its barriers inside."""
    match stmt:
        case Seq():
            return seq(*(_rooted(child, kept) for child in stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _rooted(stmt.body, kept))
        case For() if has_threads(stmt):
            return _placed(_without(stmt), kept).stmt
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

    def conflicts_with(self, other: _Access) -> bool:
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
        return any(one.conflicts_with(other) for one in earlier for other in self.first)


def _placed(stmt: Stmt, kept: Kept) -> _Placed:
    match stmt:
        case Alloc():
            inner = _placed(stmt.body, kept)
            return replace(inner, stmt=Alloc(stmt.buffer, inner.stmt))
        case LetStmt():
            inner = _placed(stmt.body, kept)
            return replace(inner, stmt=replace(stmt, body=inner.stmt))
        case Seq():
            return _sequence(stmt, kept)
        case If():
            return _branch(stmt, kept)
        case For() if not stmt.is_of_threads and has_threads(stmt):
            return _loop(stmt, kept)
    mine = _touched(stmt, kept)
    return _Placed(stmt, mine, mine, False)


def _sequence(stmt: Seq, kept: Kept) -> _Placed:
    done: list[Stmt] = []
    first: frozenset[_Access] = frozenset()
    last: frozenset[_Access] = frozenset()
    parts = False
    for child in (_placed(child, kept) for child in stmt.body):
        if child.follows(last):
            done.append(Barrier())
            last, parts = frozenset(), True
        done.append(child.stmt)
        if not parts:
            first |= child.first
        last = child.last if child.parts else last | child.last
        parts = parts or child.parts
    return _Placed(seq(*done), first, last, parts)


def _branch(stmt: If, kept: Kept) -> _Placed:
    sides = [_placed(side, kept) for side in (stmt.then, stmt.orelse) if side is not None]
    orelse = sides[1].stmt if stmt.orelse is not None else None
    first = frozenset[_Access]().union(*(side.first for side in sides))
    last = frozenset[_Access]().union(*(side.last for side in sides))
    parts = len(sides) == 2 and all(side.parts for side in sides)
    return _Placed(If(stmt.condition, sides[0].stmt, orelse), first, last, parts)


def _loop(loop: For, kept: Kept) -> _Placed:
    """A serial loop: what ends an iteration comes before what begins the next one. Of blocks none
    comes before another one.
    """
    body = _placed(loop.body, kept)
    if loop.extent > 1 and not loop.is_of_blocks and body.follows(body.last):
        body = _Placed(_ended(body.stmt), body.first, frozenset(), True)
    return replace(body, stmt=replace(loop, body=body.stmt))


def _ended(stmt: Stmt) -> Stmt:
    """A body with a barrier at its end, inside of its allocations."""
    if isinstance(stmt, Alloc | LetStmt):
        return replace(stmt, body=_ended(stmt.body))
    return seq(stmt, Barrier())


def _touched(stmt: Stmt, kept: Kept) -> frozenset[_Access]:
    found: set[_Access] = set()
    _collect(stmt, (), kept, found)
    return frozenset(found)


def _collect(stmt: Stmt, loops: tuple[For, ...], kept: Kept, found: set[_Access]) -> None:
    if isinstance(stmt, Block):
        found.update(_accesses_of(stmt, loops, kept))
        return
    inside = (*loops, stmt) if isinstance(stmt, For) else loops
    for child in stmt.children():
        if isinstance(child, Stmt):
            _collect(child, inside, kept, found)


def _accesses_of(block: Block, loops: tuple[For, ...], kept: Kept) -> Iterator[_Access]:
    """What a block touches. The first of its threads stores what they join; any may read the
    parts.
    """
    targets = {store.buffer for store in stores(block.body)}
    alone = tuple(loop for loop in loops if joined_by(loop) is not block)
    apart, together = (
        {loop.axis for loop in around if loop.is_of_threads and loop.extent > 1}
        for around in (alone, loops)
    )
    together.update(*(kept.get(target, ()) for target in targets))
    values = {it.var: binding for it, binding in zip(block.iters, block.bindings, strict=True)}
    for access in accesses(block):
        if isinstance(access, Prefetch) or access.buffer.is_private:
            continue
        at = [substitute(index, values) for index in access.indices]
        write = isinstance(access, Store)
        of = (block.family, block.is_ordered)
        axes = frozenset(apart if access.buffer in targets else together)
        yield _Access(access.buffer, *of, write, axes, dealt(at, alone))


def _without(stmt: Stmt) -> Stmt:
    """A statement without the barriers in it."""

    def drop(node: Node) -> Node:
        if isinstance(node, Seq) and any(isinstance(x, Barrier) for x in node.body):
            return seq(*(x for x in node.body if not isinstance(x, Barrier)))
        return node

    return transform(stmt, drop)
