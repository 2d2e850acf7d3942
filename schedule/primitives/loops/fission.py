"""Primitive fission: one loop becomes two that share out its statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from ....tir.buffer import Buffer, Load
from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Alloc, Block, For, ForKind, Prefetch, Role, Seq, Stmt, Store, seq
from ....tir.visit import blocks, enclosing_path, statements, substitute, walk
from ...drawing import Arguments, ScheduleView, choose_block, choose_loop
from ...errors import Kind, refuse
from ...legality.blocks import check_holds
from ...legality.conflict import SEEN, conflict_notes, leaves_out
from ...legality.loops import check_not_mirrored, check_serial
from ...nest import (
    Rewrite,
    buffers_read,
    is_reduction,
    loop_of,
    loops_around,
    replace_loop,
    targets_of,
)
from ...proof.forms.nest import Access
from ...proof.relations.order import Order, common_loops
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, all_loops

_KEPT = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)  # kinds that both loops have


def fission(func: PrimFunc, loop: Var, block: str) -> Rewrite:
    """Cut a loop in two behind a block: what stands behind it runs in a loop of its own, after all
    iterations of what stands before.

    for i in range(n): { s; t }   ->   for i in range(n): s;  for i in range(n): t

    It takes `merge` back. A loop between the two statements and the loop is cut, too. Requires: the
    loops are serial, or of a kind, which both then have; what stands behind touches in no iteration
    what stands before touches in a later one, one of them writing; no storage of an iteration is
    used on both sides; what one reads of the other is a whole tensor where they stand at the root.
    Both loops have the hints of the one. Returns them. Raises: ScheduleError.
    """
    node, last = loop_of(func, loop), func.block(block)
    check_holds(func, node, last, "fission")
    cut = _cut_behind(node, last)
    _check_something_behind(func, node, last, cut)
    for each in cut.loops:
        check_serial(func, each, "fission", _KEPT)
        check_not_mirrored(func, each, "fission")
    _check_storage_apart(func, node, last, cut)
    _check_order(func, node, last, cut)
    _check_made_whole(func, node, cut)
    anew = {each.var: Var(each.var.name) for each in cut.loops}
    first, second = _halves(node, last, anew)
    assert second is not None
    return Rewrite(replace_loop(func, node, seq(first, second)), (loop, anew[loop]))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a loop is cut.

    loops: those from it inwards that hold statements of both sides, outermost first.
    before, behind: the blocks of each side.
    """

    loops: tuple[For, ...]
    before: tuple[Block, ...]
    behind: tuple[Block, ...]


def _cut_behind(node: For, last: Block) -> _Cut:
    """The cut of a loop behind a block."""
    loops: list[For] = []
    rest: list[Stmt] = []
    child: Stmt = last
    for outer in reversed(enclosing_path(node, last)):
        if isinstance(outer, Seq):
            rest += outer.body[_position(outer, child) + 1 :]
        elif isinstance(outer, For) and rest:
            loops.insert(0, outer)
        assert isinstance(outer, Stmt)
        child = outer
    behind = tuple(block for statement in rest for block in blocks(statement))
    before = tuple(b for b in blocks(node) if not any(b is other for other in behind))
    return _Cut(tuple(loops), before, behind)


def _halves(stmt: Stmt, last: Block, anew: dict[Var, Var]) -> tuple[Stmt, Stmt | None]:
    """A statement up to a block, and what is left of it; loops of the rest run over the variables
    `anew`.
    """
    if isinstance(stmt, Seq):
        at = next(n for n, child in enumerate(stmt.body) if _holds(child, last))
        first, second = _halves(stmt.body[at], last, anew)
        rest = (*(() if second is None else (second,)), *stmt.body[at + 1 :])
        return seq(*stmt.body[:at], first), seq(*rest) if rest else None
    if not isinstance(stmt, For | Alloc):
        return stmt, None
    first, second = _halves(stmt.body, last, anew)
    if second is None:
        return stmt, None
    if isinstance(stmt, Alloc):
        if _mentions(second, stmt.buffer):
            return first, replace(stmt, body=second)
        return replace(stmt, body=first), second
    var = anew[stmt.var]
    moved = substitute(second, {stmt.var: var})
    return replace(stmt, body=first), replace(stmt, var=var, body=moved)


def _position(around: Seq, child: Stmt) -> int:
    return next(n for n, statement in enumerate(around.body) if statement is child)


def _holds(stmt: Stmt, block: Block) -> bool:
    return any(node is block for node in statements(stmt))


def _mentions(stmt: Stmt, buffer: Buffer) -> bool:
    accesses = (node for node in walk(stmt) if isinstance(node, Load | Store | Prefetch))
    return any(node.buffer is buffer for node in accesses)


def _check_something_behind(func: PrimFunc, loop: For, last: Block, cut: _Cut) -> None:
    """A block stands behind the cut."""
    if cut.behind:
        return
    raise refuse(
        func,
        f"fission: nothing stands behind block '{last.name}' in loop '{loop.var.name}'.",
        code="fission-end",
        kind=Kind.ARGUMENT,
        hints=("name the last block that the first loop shall keep.",),
    )


def _check_storage_apart(func: PrimFunc, loop: For, last: Block, cut: _Cut) -> None:
    """No storage that begins anew in an iteration is used on both sides of the cut."""
    for node in enclosing_path(loop, last):
        if not isinstance(node, Alloc):
            continue
        sides = (any(_mentions(b, node.buffer) for b in side) for side in (cut.before, cut.behind))
        if not all(sides):
            continue
        raise refuse(
            func,
            f"fission: each iteration of loop '{loop.var.name}' has its own '{node.buffer.name}', "
            f"which is used before the cut behind block '{last.name}' and behind it.",
            code="fission-storage",
            kind=Kind.LIMIT,
            hints=("call fission before the step that made it (stage, set_scope, parallel).",),
        )


def _check_order(func: PrimFunc, loop: For, last: Block, cut: _Cut) -> None:
    """No iteration touches behind the cut what a later one touches before it, one of them
    writing.
    """
    outermost = len(loops_around(func, loop))

    def orders(two: Access, one: Access) -> Sequence[Order]:
        before = any(one.statement.block is block for block in cut.before)
        behind = any(two.statement.block is block for block in cut.behind)
        if not (before and behind) or _is_same_anyway(one, two):
            return ()
        shared = common_loops(two.statement, one.statement)
        return [Order(level, "<") for level in range(outermost, shared)]

    notes = conflict_notes(func, orders)
    if notes is None:
        return
    raise refuse(
        func,
        f"fission: what stands behind block '{last.name}' would run after all iterations of loop "
        f"'{loop.var.name}' though a later one depends on it{'' if notes else SEEN}.",
        code="fission-order",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=("choose a loop inside of the one that carries it.",),
    )


def _check_made_whole(func: PrimFunc, loop: For, cut: _Cut) -> None:
    """Where the loops become statements at the root, what the second one reads of the first has all
    of its elements: steps take a tensor that is made in another statement for a whole one.
    """
    if loops_around(func, loop):
        return
    read = {buffer for block in cut.behind for buffer in buffers_read(block)}
    for tensor in dict.fromkeys(target for block in cut.before for target in targets_of(block)):
        if tensor in read and leaves_out(func, tensor):
            raise refuse(
                func,
                f"fission: loop '{loop.var.name}' computes a part of '{tensor.name}', as far as "
                "its readers need it; expected all elements of what the second loop reads of the "
                "first.",
                code="fission-part",
                kind=Kind.LIMIT,
                hints=("choose a loop inside of it.",),
            )


def _is_same_anyway(one: Access, two: Access) -> bool:
    """Whether the order of a run before the cut and of one behind it does not matter: what is
    computed again is the same, and the updates of one reduction commute.
    """
    a, b = one.statement.block, two.statement.block
    if is_reduction(a) and is_reduction(b):
        commute = a.role is b.role is Role.COMPUTE and a.family == b.family
        return commute and not (a.is_ordered or a.recomputed)
    again = one.write and a.recomputed and not is_reduction(a)
    return again and (not two.write or b.recomputed)


def draw_fission(sch: ScheduleView, rng: Random) -> Arguments:
    """Any block in a loop, more often than not one with another one behind it."""
    names = sch.blocks()
    shared = [
        (loop, name)
        for number, name in enumerate(names)
        for loop in sch.loops(name)
        if any(loop in sch.loops(other) for other in names[number + 1 :])
    ]
    if shared and rng.random() < 0.9:
        loop, block = rng.choice(shared)
    else:
        block = choose_block(sch, rng)
        loop = choose_loop(sch, rng, block)
    return {"loop": loop, "block": block}


FISSION = Primitive(
    "fission",
    fission,
    {"loop": LOOP, "block": BLOCK},
    gives=all_loops,
    draw=draw_fission,
    weight=2,
)
