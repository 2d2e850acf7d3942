"""Give each thread of a block its own part of what is kept in registers across loops of threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ....tir.analysis.bounds import form_bounds
from ....tir.analysis.linear import Linear, Ranges, expression, linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.threads import has_threads
from ....tir.buffer import Buffer, Load
from ....tir.errors import TargetError
from ....tir.expr import Expr, Var
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import THREAD_AXES, Alloc, For, If, Stmt, Store
from ....tir.text.printer import print_expr
from ....tir.visit import free_vars, substitute, transform, transform_statements
from ..vector.vector_body import negated

AXIS_VARIABLES: Mapping[str, Expr] = {axis: Var(axis) for axis in THREAD_AXES}
Term = tuple[Expr, int]
Threads = Mapping[Var, Expr]  # loops of threads, by the variables of their axes


@dataclass(frozen=True, slots=True)
class OwnStorage:
    """Shrink a thread's own buffer that stands around loops of threads to what one thread touches.

    C = alloc(float32[64, 64], "register"); for i in bound(16): for j in unrolled(4): C[i*4 + j, 0]
    ->   C = alloc(float32[4, 1], "register"); ... C[j, 0]

    That each element is of one thread alone the proof has shown (P5); then the part of an index
    that the thread decides can go. Where a condition leaves but one thread along an axis, an index
    may have its number in place of the variable.
    Requires: stage NEST without blocks. Ensures: indices of such buffers are free of the variables
    of loops of threads. Raises: TargetError where the part that the thread decides differs between
    accesses.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        def rule(node: Node) -> Node:
            if not isinstance(node, Alloc) or not node.buffer.is_private:
                return node
            return _shrunk(node) if has_threads(node.body) else node

        body = transform_statements(func.body, rule)
        return func if body is func.body else func.with_body(body)


def _shrunk(node: Alloc) -> Alloc:
    buffer = node.buffer
    found: list[tuple[_Index, ...]] = []

    def note(item: Load | Store, ranges: Ranges, threads: Threads) -> Load | Store:
        found.append(tuple(_Index.of(buffer, i, ranges, threads) for i in item.indices))
        return item

    _exchanged(node.body, buffer, note, {}, {})
    lows: list[int] = []
    shape: list[int] = []
    owners: list[frozenset[Term]] = []
    for dimension in range(len(buffer.shape)):
        parts = [indices[dimension] for indices in found]
        owner = max((part.thread for part in parts), key=len, default=frozenset[Term]())
        if any(part.missing(owner) is None for part in parts):
            raise _differs(buffer, dimension)
        spans = [form_bounds(part.without(owner), part.ranges) for part in parts]
        low, high = min(_end(a) for a, _ in spans), max(_end(b) for _, b in spans)
        owners.append(owner)
        lows.append(low)
        shape.append(high - low + 1)
    small = replace(buffer, shape=tuple(shape), dims=(), aligned=())

    def move(item: Load | Store, ranges: Ranges, threads: Threads) -> Load | Store:
        parts = [_Index.of(buffer, i, ranges, threads) for i in item.indices]
        rests = [part.without(owner) for part, owner in zip(parts, owners, strict=True)]
        moved = [replace(r, constant=r.constant - low) for r, low in zip(rests, lows, strict=True)]
        return replace(item, buffer=small, indices=tuple(map(expression, moved)))

    return Alloc(small, _exchanged(node.body, buffer, move, {}, {}))


def _exchanged(
    stmt: Stmt,
    buffer: Buffer,
    change: Callable[[Load | Store, Ranges, Threads], Load | Store],
    ranges: Ranges,
    threads: Threads,
) -> Stmt:
    """The statement with each access to a buffer changed, given the ranges of the loops there, as
    conditions around narrow them, and the loops of threads.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store) and node.buffer is buffer:
            return change(node, ranges, threads)
        return node

    match stmt:
        case For():
            ranges = {**ranges, stmt.var: (0, stmt.extent - 1)}
            if stmt.is_of_threads:
                threads = {**threads, stmt.var: AXIS_VARIABLES[stmt.axis]}
        case If():
            inside = narrowed(ranges, stmt.condition)
            outside = narrowed(ranges, negated(stmt.condition))
            then = _exchanged(stmt.then, buffer, change, inside, threads)
            orelse = stmt.orelse
            if orelse is not None:
                orelse = _exchanged(orelse, buffer, change, outside, threads)
            return If(transform(stmt.condition, rule), then, orelse)
        case Store():
            return transform(stmt, rule)

    def visit(child: Node) -> Node:
        if isinstance(child, Stmt):
            return _exchanged(child, buffer, change, ranges, threads)
        return transform(child, rule)

    return stmt.map_children(visit)


@dataclass(frozen=True, slots=True)
class _Index:
    """An index as the terms that the thread decides, in the variables of its axes, and the rest.

    ranges: of the loops where it stands; known: the numbers of threads that these leave but one of,
    by the variables of their axes.
    """

    thread: frozenset[Term]
    rest: Linear
    ranges: Ranges
    known: Mapping[Expr, int]

    @staticmethod
    def of(buffer: Buffer, index: Expr, ranges: Ranges, threads: Threads) -> _Index:
        """Raises: TargetError where a term mixes the thread with other loops."""
        form = linear(index)
        own = []
        rest = []
        for atom, factor in form.terms:
            variables = free_vars(atom)
            if variables <= set(threads) and variables:
                own.append((substitute(atom, threads), factor))
            elif variables & set(threads):
                raise _mixed(buffer, index)
            else:
                rest.append((atom, factor))
        known = {
            axis: low
            for var, axis in threads.items()
            if (low := ranges[var][0]) is not None and low == ranges[var][1]
        }
        return _Index(frozenset(own), Linear(tuple(rest), form.constant), ranges, known)

    def missing(self, owner: frozenset[Term]) -> int | None:
        """What those terms of `owner` amount to that this index does not show, since the number of
        the thread is known where it stands; None where it shows others, or they are not known.
        """
        if not self.thread <= owner:
            return None
        left = owner - self.thread
        if any(atom not in self.known for atom, _ in left):
            return None
        return sum(factor * self.known[atom] for atom, factor in left)

    def without(self, owner: frozenset[Term]) -> Linear:
        """The index less the terms of `owner`."""
        return replace(self.rest, constant=self.rest.constant - (self.missing(owner) or 0))


def _end(bound: int | None) -> int:
    assert bound is not None, "loops and constants alone make the index of a thread's own buffer"
    return bound


def _differs(buffer: Buffer, dimension: int) -> TargetError:
    return TargetError(
        f"registers: loops of threads deal out '{buffer.name}' in different ways along dimension "
        f"{dimension}; expected one way.",
        code="own-differs",
        hints=("split the loops of all blocks that touch it alike, and bind the same parts.",),
    )


def _mixed(buffer: Buffer, index: Expr) -> TargetError:
    return TargetError(
        f"registers: threads keep '{buffer.name}' at {print_expr(index)}, which mixes thread and "
        "serial loops; expected a sum of both.",
        code="own-mixed",
        hints=("stage it inside of the loops of threads, or keep it in scope 'shared'.",),
    )
