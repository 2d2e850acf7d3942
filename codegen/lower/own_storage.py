"""Give each thread of a block its own part of what is kept in registers across loops of threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...tir.bounds import form_bounds
from ...tir.buffer import Buffer, Load
from ...tir.errors import TargetError
from ...tir.expr import Expr, Var
from ...tir.func import PrimFunc
from ...tir.linear import Linear, expression, linear
from ...tir.node import Node
from ...tir.printer import print_expr
from ...tir.stmt import THREAD_AXES, Alloc, For, Prefetch, Store
from ...tir.visit import accesses, free_vars, statements, substitute, transform

AXIS_VARIABLES: Mapping[str, Expr] = {axis: Var(axis) for axis in THREAD_AXES}


@dataclass(frozen=True, slots=True)
class OwnStorage:
    """Shrink a thread's own buffer that stands around loops of threads to what one thread touches.

    C = alloc(float32[64, 64], "register"); for i in bound(16): for j in unrolled(4): C[i*4 + j, 0]
    ->   C = alloc(float32[4, 1], "register"); ... C[j, 0]

    That each element is of one thread alone the proof has shown (P5); then the part of an index
    that the thread decides can go.
    Requires: stage NEST without blocks. Ensures: indices of such buffers are free of the variables
    of loops of threads. Raises: TargetError where the part that the thread decides differs between
    accesses.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        def rule(node: Node) -> Node:
            if not isinstance(node, Alloc) or not node.buffer.is_private:
                return node
            loops = [x for x in statements(node.body) if isinstance(x, For) and x.is_of_threads]
            return _shrunk(node) if loops else node

        body = transform(func.body, rule)
        return func if body is func.body else func.with_body(body)


def _shrunk(node: Alloc) -> Alloc:
    buffer = node.buffer
    loops = [x for x in statements(node.body) if isinstance(x, For)]
    ranges = {x.var: (0, x.extent - 1) for x in loops}
    threads = {x.var: AXIS_VARIABLES[x.axis] for x in loops if x.is_of_threads}
    found = [x for x in accesses(node.body) if x.buffer is buffer and not isinstance(x, Prefetch)]
    lows: list[int] = []
    shape: list[int] = []
    for dimension in range(len(buffer.shape)):
        parts = [_Index.of(buffer, access.indices[dimension], threads) for access in found]
        if len({part.thread for part in parts}) > 1:
            raise _differs(buffer, dimension)
        spans = [form_bounds(part.rest, ranges) for part in parts]
        low, high = min(_end(a) for a, _ in spans), max(_end(b) for _, b in spans)
        lows.append(low)
        shape.append(high - low + 1)
    small = replace(buffer, shape=tuple(shape), aligned=())

    def rule(item: Node) -> Node:
        if not isinstance(item, Load | Store) or item.buffer is not buffer:
            return item
        rests = [_Index.of(buffer, index, threads).rest for index in item.indices]
        moved = [replace(r, constant=r.constant - low) for r, low in zip(rests, lows, strict=True)]
        return replace(item, buffer=small, indices=tuple(map(expression, moved)))

    return Alloc(small, transform(node.body, rule))


@dataclass(frozen=True, slots=True)
class _Index:
    """An index as the terms that the thread decides, in the variables of its axes, and the rest."""

    thread: frozenset[tuple[Expr, int]]
    rest: Linear

    @staticmethod
    def of(buffer: Buffer, index: Expr, threads: Mapping[Var, Expr]) -> _Index:
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
        return _Index(frozenset(own), Linear(tuple(rest), form.constant))


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
        hints=("stage it inside of the loops of threads, or keep it in scope 'team'.",),
    )
