"""Let the threads of a loop that a block reduces over join their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....tir.analysis.threads import WARP, joined_by, reduces_over
from ....tir.analysis.update import Update, read_update
from ....tir.buffer import Buffer, Load
from ....tir.conditions import all_of, conjuncts
from ....tir.errors import TargetError
from ....tir.expr import EQ, LT, TRUE, BitAnd, Expr, Select, ShiftRight, Var, floormod, index
from ....tir.func import PrimFunc
from ....tir.lowered import Exchange
from ....tir.stmt import (
    THREAD_AXES,
    Alloc,
    Block,
    For,
    ForKind,
    If,
    LetStmt,
    Role,
    Seq,
    Stmt,
    Store,
    seq,
)
from ....tir.visit import blocks, of_block, statements, stores, substitute, transform

LANES = THREAD_AXES[0]


@dataclass(frozen=True, slots=True)
class JoinThreads:
    """Replace each loop of threads that a block reduces over by one in which each thread of the
    block of threads takes its value, and then, in rounds, that of the thread half of the loop away,
    a quarter, and so on.

    S[i] = 0
    for t in bound(32): S[i] = S[i] + P[t]
    ->  for t in bound(32):
            S[i] = P[t]
            for round in range(5): S[i] = S[i] + exchange(S[i], 16 >> round)

    Where there are more threads than the loop has iterations, groups of neighbours do the same. A
    result that the threads share is stored by the first of them.
    Requires: stage NEST; the loop's body is the block, whose init stands before it. Ensures: stage
    NEST, where no block reduces over a loop of threads.
    Raises: TargetError where the threads along threadIdx.x are not whole warps, or the block does
    not stand so.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(_rooted(func, func.body))


def _rooted(func: PrimFunc, stmt: Stmt) -> Stmt:
    """The statements at the root, each with its own number of threads."""
    match stmt:
        case Seq():
            return seq(*(_rooted(func, child) for child in stmt.body))
        case Alloc():
            return Alloc(stmt.buffer, _rooted(func, stmt.body))
    loops = [node for node in statements(stmt) if isinstance(node, For)]
    joined = [loop for loop in loops if any(_joining(loop))]
    if not joined:
        return stmt
    threads = max((loop.extent for loop in loops if loop.axis == LANES), default=1)
    if threads % WARP:
        raise _parts_of_warps(func, joined[0], threads)
    made = transform(stmt, lambda node: _joined(node, threads) if isinstance(node, Seq) else node)
    for loop in (node for node in statements(made) if isinstance(node, For)):
        for block in _joining(loop):
            raise _not_alone(func, block, loop)
    return made


def _joining(loop: For) -> Iterator[Block]:
    """The blocks that reduce over a loop of threads."""
    if loop.is_of_threads:
        yield from (block for block in blocks(loop.body) if reduces_over(block, loop))


def _joined(stmt: Seq, threads: int) -> Stmt:
    """Statements of which the loops of threads that a block reduces over hold what is done there,
    with its initialisation.
    """
    parts: list[Stmt] = []
    for part in stmt.body:
        block = joined_by(part) if isinstance(part, For) else None
        init = _initialisation(block, parts) if block is not None else None
        if block is None or init is None:
            parts.append(part)
            continue
        assert isinstance(part, For)
        parts.remove(init)
        parts.append(_Join(part, block, init, threads).stmt())
    return seq(*parts)


def _initialisation(block: Block, before: Sequence[Stmt]) -> Block | None:
    """The INIT block of a block among the statements before its loop."""
    for stmt in before:
        if isinstance(stmt, Block) and stmt.role is Role.INIT and stmt.family == block.family:
            return stmt
    return None


class _Join:
    """What the threads of a loop do for one block."""

    def __init__(self, loop: For, block: Block, init: Block, threads: int) -> None:
        self.loop = loop
        self.block = block.name
        self.lane = Var(loop.var.name)
        self.threads = threads
        number = self.lane if threads == loop.extent else floormod(self.lane, index(loop.extent))
        bound = {loop.var: number}
        points = zip(block.iters, block.bindings, strict=True)
        values = {it.var: substitute(binding, bound) for it, binding in points}
        update = read_update(block)
        assert update is not None, "legality has read it"
        self.update: Update = update
        self.values = [substitute(value, values) for value in update.values]
        found = stores(block.body)
        self.places = [(s.buffer, tuple(substitute(i, values) for i in s.indices)) for s in found]
        self.empty = _initial(init, [buffer for buffer, _ in self.places])
        self.outside = init.predicate
        known = conjuncts(init.predicate)
        own = [c for c in conjuncts(block.predicate) if c not in known]
        self.counts = substitute(all_of(*own), bound)
        self.held = [
            Load(buffer, at) if buffer.is_private else _register(buffer)
            for buffer, at in self.places
        ]

    def stmt(self) -> Stmt:
        """The loop that takes the place of all."""
        begin = [
            _set(place, value if self.counts == TRUE else Select(self.counts, value, empty))
            for place, value, empty in zip(self.held, self.values, self.empty, strict=True)
        ]
        shared = [
            Store(buffer, at, held)
            for (buffer, at), held in zip(self.places, self.held, strict=True)
            if not buffer.is_private
        ]
        end = [If(LT(self.lane, index(1)), seq(*shared))] if shared else []
        body = seq(*begin, *self._rounds(), *end)
        for (buffer, _), held in zip(self.places, self.held, strict=True):
            body = body if held.buffer is buffer else Alloc(held.buffer, body)
        body = of_block(body, self.block)
        loop = For(self.lane, self.threads, ForKind.BOUND, body, axis=self.loop.axis)
        return loop if self.outside == TRUE else If(self.outside, loop)

    def _rounds(self) -> list[Stmt]:
        count = (self.loop.extent - 1).bit_length()
        if not count:
            return []
        turn = Var("turn")
        step = ShiftRight(index(self.loop.extent // 2), turn)
        others = [Var(f"{held.buffer.name}_other", held.dtype) for held in self.held]
        own, new = list[Expr](self.held), list[Expr](others)
        if self.update.reducer is None:  # the order of two values may matter: that of the lanes
            first = EQ(BitAnd(self.lane, step), index(0))
            pairs = list(zip(own, new, strict=True))
            own = [Select(first, a, b) for a, b in pairs]
            new = [Select(first, b, a) for a, b in pairs]
        given = {
            **dict(zip(self.update.own, own, strict=True)),
            **dict(zip(self.update.new, new, strict=True)),
        }
        results = [substitute(result, given) for result in self.update.results]
        names = [Var(f"{held.buffer.name}_new", held.dtype) for held in self.held]
        if len(results) == 1:
            body: Stmt = _set(self.held[0], results[0])
        else:
            body = seq(*(_set(held, name) for held, name in zip(self.held, names, strict=True)))
            for name, result in zip(reversed(names), reversed(results), strict=True):
                body = LetStmt(name, result, body)
        for other, held in zip(reversed(others), reversed(self.held), strict=True):
            body = LetStmt(other, Exchange(held, step), body)
        hint = (("unroll_hint", count),)
        return [For(turn, count, ForKind.SERIAL, body, annotations=hint)]


def _initial(init: Block, targets: Sequence[Buffer]) -> list[Expr]:
    """What an INIT block stores to each target."""
    values = {it.var: at for it, at in zip(init.iters, init.bindings, strict=True)}
    stored = {store.buffer: substitute(store.value, values) for store in stores(init.body)}
    return [stored[target] for target in targets]


def _register(like: Buffer) -> Load:
    return Load(Buffer(f"{like.name}_joined", like.type, (), "register"), ())


def _set(place: Load, value: Expr) -> Store:
    return Store(place.buffer, place.indices, value)


def _not_alone(func: PrimFunc, block: Block, loop: For) -> TargetError:
    what = f"block '{block.name}' of '{func.name}' reduces over loop '{loop.var.name}'"
    return TargetError(
        f"join_threads: {what} of threads; expected it alone in the loop, right behind its "
        "initialisation.",
        code="join-alone",
        hints=(f"leave what puts more there out, or bind another loop than '{loop.var.name}'.",),
    )


def _parts_of_warps(func: PrimFunc, loop: For, threads: int) -> TargetError:
    who = f"the threads of loop '{loop.var.name}' of '{func.name}'"
    return TargetError(
        f"join_threads: {who} join their values, but a block has {threads} threads along {LANES}; "
        f"expected whole warps of {WARP}.",
        code="join-warp",
        hints=(f"bind loops of {WARP} iterations to {LANES}, and others to {THREAD_AXES[1]}.",),
    )
