"""Finding things in a loop nest: the loop of a variable, the loops around a block, who reads and
writes a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..tir.analysis.linear import Interval, Linear, linear
from ..tir.buffer import Buffer
from ..tir.conditions import all_of
from ..tir.dim import Dim
from ..tir.expr import Expr, Var, index
from ..tir.func import PrimFunc
from ..tir.node import Node
from ..tir.stmt import Alloc, Block, For, Prefetch, Role, Seq, Stmt, seq
from ..tir.visit import (
    below_allocations,
    blocks,
    enclosing_path,
    free_vars,
    loads,
    loops_below,
    replace_stmt,
    statements,
    stores,
    substitute,
)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a primitive gives back.

    func: the new function.
    loops, blocks: what the step made and hands to the user, in a fixed order.
    forward: loops that are gone, each with the loops that stand in its place.
    renamed: blocks that go on under another name, old name -> new name.
    """

    func: PrimFunc
    loops: tuple[Var, ...] = ()
    blocks: tuple[str, ...] = ()
    forward: dict[Var, tuple[Var, ...]] | None = None
    renamed: dict[str, str] | None = None


def loop_of(func: PrimFunc, var: Var) -> For:
    """The loop that binds `var`; a schedule's references have been resolved, so it exists."""
    return next(loop for loop in loops_below(func.body) if loop.var is var)


def loops_around(func: PrimFunc, target: Stmt) -> tuple[For, ...]:
    """The loops around a statement, outermost first."""
    path = enclosing_path(below_allocations(func.body), target)
    return tuple(node for node in path if isinstance(node, For))


def ranges_of(loops: tuple[For, ...]) -> dict[Var, Interval]:
    """The interval of each loop's variable."""
    return {loop.var: (0, loop.extent - 1) for loop in loops}


def open_loops(stmt: Stmt) -> frozenset[Var]:
    """The loops around the blocks in a statement of which a call decides how far they run."""
    return frozenset(
        var
        for block in blocks(stmt)
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if it.dim is not None
        for var in free_vars(binding)
    )


def dim_of_loop(stmt: Stmt, var: Var) -> Dim | None:
    """The dim that ends a loop, each of whose iterations is a point of an axis; None for others."""
    once = {loop.var: index(0) for loop in loops_below(stmt) if loop.extent == 1}
    counted = [
        (it.dim, linear(substitute(binding, once)) == Linear(((var, 1),), 0))
        for block in blocks(stmt)
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if var in free_vars(binding)
    ]
    found = {dim for dim, _ in counted if dim is not None}
    return found.pop() if len(found) == 1 and all(alone for _, alone in counted) else None


def replace_loop(func: PrimFunc, loop: For, new: Stmt) -> PrimFunc:
    """The function with one loop replaced."""
    return func.with_body(replace_stmt(func.body, loop, new))


def map_blocks(stmt: Stmt, change: Callable[[Block], Stmt]) -> Stmt:
    """The statement with `change` applied to every block."""

    def visit(node: Node) -> Node:
        if isinstance(node, Block):
            return change(node)
        return node.map_children(visit) if isinstance(node, Stmt) else node

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


def guarded(stmt: Stmt, condition: Expr) -> Stmt:
    """The statement, whose blocks run only where a condition on loops holds."""
    return map_blocks(
        stmt, lambda block: replace(block, predicate=all_of(block.predicate, condition))
    )


def bound(block: Block, expr: Expr) -> Expr:
    """An expression of the block's iteration variables as one of the loops around it."""
    return substitute(
        expr, {it.var: value for it, value in zip(block.iters, block.bindings, strict=True)}
    )


def write_indices(block: Block, buffer: Buffer) -> list[tuple[Expr, ...]]:
    """The indices, in iteration variables, of each store of the block to `buffer`."""
    return [store.indices for store in stores(block.body) if store.buffer is buffer]


def read_indices(block: Block, buffer: Buffer) -> list[tuple[Expr, ...]]:
    """The indices, in iteration variables, of each load of `buffer` in the block's body."""
    return [load.indices for load in loads(block.body) if load.buffer is buffer]


def writes(block: Block, buffer: Buffer) -> bool:
    """Whether the block stores to `buffer`."""
    return buffer in [store.buffer for store in stores(block.body)]


def reads(block: Block, buffer: Buffer) -> bool:
    """Whether the block loads from `buffer` (a reduction reads its own accumulator)."""
    return any(load.buffer is buffer for load in loads(block.body))


def target_of(block: Block) -> Buffer:
    """The buffer that the block stores to; the first where there are several."""
    return stores(block.body)[0].buffer


def targets_of(block: Block) -> tuple[Buffer, ...]:
    """The buffers that the block stores to."""
    return tuple(store.buffer for store in stores(block.body))


def readers(func: PrimFunc, buffer: Buffer) -> tuple[Block, ...]:
    """The blocks that read `buffer` and do not write it: its consumers."""
    return tuple(b for b in func.blocks if reads(b, buffer) and not writes(b, buffer))


def writers(func: PrimFunc, buffer: Buffer) -> tuple[Block, ...]:
    """The blocks that write `buffer`."""
    return tuple(b for b in func.blocks if writes(b, buffer))


def fixed_tensors(func: PrimFunc) -> set[Buffer]:
    """The constants of a function, and what it computes from them alone: once, when it is built."""
    fixed = set(func.constants)
    for block in func.blocks:
        if {load.buffer for load in loads(block.body)} <= fixed | set(targets_of(block)):
            fixed.update(targets_of(block))
    return fixed


def root_statement(func: PrimFunc, target: Stmt) -> Stmt:
    """The statement at the root of the function that holds `target`."""
    path = (*enclosing_path(func.body, target), target)
    return next(
        node for node in path if isinstance(node, Stmt) and not isinstance(node, Alloc | Seq)
    )


def remove(stmt: Stmt, gone: Stmt) -> Stmt | None:
    """The statement without `gone` (found by identity) and without the loops that it leaves empty;
    None when nothing is left.
    """
    if stmt is gone:
        return None
    if isinstance(stmt, Seq):
        kept = [left for child in stmt.body if (left := remove(child, gone)) is not None]
        same = len(kept) == len(stmt.body) and all(
            a is b for a, b in zip(kept, stmt.body, strict=True)
        )
        return stmt if same else seq(*kept) if kept else None
    if isinstance(stmt, For | Alloc):
        body = remove(stmt.body, gone)
        return stmt if body is stmt.body else None if body is None else replace(stmt, body=body)
    return stmt


def insert_beside(func: PrimFunc, anchor: Stmt, new: Stmt, *, after: bool) -> PrimFunc:
    """The function with `new` right before or after `anchor` (found by identity)."""
    return func.with_body(
        replace_stmt(func.body, anchor, seq(anchor, new) if after else seq(new, anchor))
    )


def without_allocation(stmt: Stmt, buffer: Buffer) -> Stmt:
    """The statement without the allocation of a buffer."""

    def drop(node: Node) -> Node:
        if isinstance(node, Alloc) and node.buffer is buffer:
            return node.body
        return node.map_children(drop) if isinstance(node, Stmt) else node

    result = drop(stmt)
    assert isinstance(result, Stmt)
    return result


def without_prefetches(stmt: Stmt, buffer: Buffer) -> Stmt:
    """The statement without the prefetches of a buffer, which is about to change its place."""
    for node in tuple(statements(stmt)):
        if isinstance(node, Prefetch) and node.buffer is buffer:
            left = remove(stmt, node)
            assert left is not None
            stmt = left
    return stmt


def allocate_below(func: PrimFunc, loop: Var, buffer: Buffer) -> PrimFunc:
    """The function with a buffer's storage moved below a loop: each iteration has its own."""
    changed = func.with_body(without_prefetches(without_allocation(func.body, buffer), buffer))
    node = loop_of(changed, loop)
    return replace_loop(changed, node, replace(node, body=Alloc(buffer, node.body)))


def unique_name(func: PrimFunc, name: str) -> str:
    """`name`, or name_1, name_2, ... so that it names no block and no buffer of the function."""
    taken = {block.name for block in func.blocks} | {b.name for b in func.allocations}
    taken |= {p.name for p in func.parameters}
    candidate, count = name, 0
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def is_reduction(block: Block) -> bool:
    """Whether the block has reduction variables."""
    return any(it.kind.value == "reduce" for it in block.iters)


def copies_of(func: PrimFunc, staged: Buffer) -> tuple[Block, ...]:
    """The copies into and out of a staged buffer."""
    return tuple(
        b
        for b in func.blocks
        if b.role is Role.COPY
        and (writes(b, staged) or any(x.buffer is staged for x in loads(b.body)))
    )


def buffers_read(block: Block) -> tuple[Buffer, ...]:
    """The buffers that the block loads, in order, without those that it stores."""
    own = targets_of(block)
    return tuple(dict.fromkeys(x.buffer for x in loads(block.body) if x.buffer not in own))
