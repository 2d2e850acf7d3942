"""Primitive stage: keep the part of a tensor that a loop's body touches in a closer scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ....tir.analysis.linear import Ranges
from ....tir.analysis.regions import region
from ....tir.analysis.simplify import provable
from ....tir.buffer import Buffer, Load
from ....tir.conditions import all_of
from ....tir.expr import TRUE, Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.initialise import mirrored
from ....tir.stmt import (
    Alloc,
    Block,
    For,
    ForKind,
    Role,
    Stmt,
    Store,
    elements_of,
    seq,
)
from ....tir.visit import blocks, loops_below, replace_buffers, walk
from ...drawing import Arguments, ScheduleView, choose_loop, names_read
from ...errors import Kind, refuse
from ...legality import completeness, dependence, recurrence
from ...legality.blocks import check_holds, check_predicate, check_role, check_whole
from ...legality.loops import check_no_parallel_inside, check_not_vectorized, reduction_loops
from ...legality.tensors import check_allocated_outside
from ...nest import (
    Rewrite,
    bound,
    is_reduction,
    loop_of,
    loops_around,
    ranges_of,
    read_indices,
    readers,
    reads,
    replace_loop,
    target_of,
    unique_name,
    write_indices,
    writers,
    writes,
)
from ..parameters import BLOCK, LOOP, PLAIN, TENSOR
from ..primitive import Primitive, all_loops
from .scope import Scope, check_scope

SUFFIX = {"register": "reg", "thread": "local"}


def stage(func: PrimFunc, block: str, buffer: Buffer, loop: Var, scope: Scope) -> Rewrite:
    """Keep what `block` reads and writes of `buffer` below `loop` in `scope`.

    for i: body[C]   ->   for i: C_reg = alloc; C_reg = C where a reduction goes on; body[C_reg]; C
    = C_reg

    The copies of a tensor that is written repeat the block's own spatial loops below `loop`, with
    their tails and kinds, so a register tile has constant indices; those of a tensor that is only
    read run over the box that is read, or, where that may hold what another staged buffer alone
    keeps, repeat the loops of the copy that reads it. The copy in is guarded: it runs where a
    reduction loop further out is past its first iteration, and not at all where there is none
    (always, where the initialisation has been placed outside). The copy out is left out in the last
    iteration when nobody outside reads the result. Requires: a tensor that is only read is complete
    before the nest (a copy may read it, too, and so a copy of a copy be made), and all of the box
    is stored there; one that is written is computed by the block. Raises: ScheduleError.
    """
    check_scope("stage", scope, tuple(SUFFIX))
    node = loop_of(func, loop)
    inner = func.block(block)
    check_holds(func, node, inner, "stage")
    if inner.role is not Role.COPY or writes(inner, buffer):
        check_role(func, inner, "stage")
    _check_part_alone(func, inner, node, "stage")
    _check_accesses(func, inner, buffer, "stage")
    check_not_vectorized(func, node, "stage")
    check_allocated_outside(func, node, buffer, "stage")
    check_no_parallel_inside(func, node, buffer.name, "stage")
    name = unique_name(func, f"{buffer.name}_{SUFFIX[scope]}")
    staged = replace(buffer, name=name, scope=scope, origin=buffer, aligned=())
    if writes(inner, buffer):
        recurrence.check_no_recurrence(func, inner, "stage")
        dependence.check_reads_own(func, node, "stage", buffer)
        before, after = _written(func, inner, buffer, staged, node)
        made: tuple[Var, ...] = ()
    else:
        completeness.check_only_read(func, inner, buffer, node)
        before, made = _read(func, inner, buffer, staged, node)
        after = None
    body = replace_buffers(node.body, {buffer: staged})
    new = Alloc(staged, seq(*(s for s in (before, body, after) if s is not None)))
    changed = replace_loop(func, node, replace(node, body=new))
    names = tuple(b.name for s in (before, after) if s is not None for b in blocks(s))
    if not writes(inner, buffer):
        completeness.check_stored(func, changed, names[0], buffer)
    return Rewrite(changed, made, names)


def _written(
    func: PrimFunc, block: Block, buffer: Buffer, staged: Buffer, node: For
) -> tuple[Stmt | None, Stmt | None]:
    """The copies in and out of a tensor that the block writes."""
    open_loops = reduction_loops(func, block, node)
    _check_goes_on_in_order(func, buffer, open_loops)
    inside = [x for x in loops_around(func, block) if x in loops_below(node.body)]
    check_predicate(func, block, inside, "stage", node.var.name)
    placed = [b for b in writers(func, buffer) if b.role is Role.INIT and b not in blocks(node)]
    steps: Expr = index(0)
    for loop in open_loops:
        steps = steps + loop.var
    last = sum(loop.extent - 1 for loop in open_loops)
    outside = [
        b
        for b in readers(func, buffer)
        if b not in blocks(node) and not dependence.ever_apart(func, block, b, buffer)
    ]
    needed = bool(outside) or buffer in func.outputs
    before = None
    if placed:
        before = copy_nest(func, block, buffer, staged, node, into=True, guard=TRUE)
    elif open_loops:
        before = copy_nest(func, block, buffer, staged, node, into=True, guard=index(0) < steps)
    after = None
    if needed:
        after = copy_nest(func, block, buffer, staged, node, into=False, guard=TRUE)
    elif open_loops:
        after = copy_nest(func, block, buffer, staged, node, into=False, guard=steps < last)
    return before, after


def _check_goes_on_in_order(func: PrimFunc, buffer: Buffer, open_loops: Sequence[For]) -> None:
    """No iterations that may run at once copy the elements of one sum in and out: those of a
    parallel loop whose mask leaves only one with terms would still copy.
    """
    for loop in open_loops:
        if loop.kind is ForKind.PARALLEL and loop.extent > 1:
            raise refuse(
                func,
                f"stage: all iterations of parallel loop '{loop.var.name}' would copy "
                f"'{buffer.name}', which goes on from one to the next.",
                code="stage-parallel",
                kind=Kind.LIMIT,
                hints=("stage before the loop is split.",),
            )


def copy_nest(
    func: PrimFunc,
    block: Block,
    buffer: Buffer,
    staged: Buffer,
    node: For,
    *,
    into: bool,
    guard: Expr,
) -> Stmt:
    """A COPY block between `buffer` and `staged`, below copies of the block's spatial loops inside
    `node`.
    """
    indices = (write_indices if writes(block, buffer) else read_indices)(block, buffer)[0]
    iters = elements_of(buffer, [Var(f"v{axis}") for axis in range(len(buffer.shape))])
    element = tuple(it.var for it in iters)
    source, target = (buffer, staged) if into else (staged, buffer)
    copy = Block(
        unique_name(func, f"{staged.name}_{'in' if into else 'out'}"),
        iters,
        tuple(bound(block, item) for item in indices),
        Store(target, element, Load(source, element)),
        predicate=guard,
        role=Role.COPY,
        family=buffer.name,
        recomputed=block.recomputed,
    )
    inside = loops_below(node.body)
    return mirrored(block, [x for x in loops_around(func, block) if x in inside], copy)


def _read(
    func: PrimFunc, block: Block, buffer: Buffer, staged: Buffer, node: For
) -> tuple[Stmt, tuple[Var, ...]]:
    """The copy of a tensor that is only read: loops over the box that the loop's body reads, or
    those of the copy that reads it, where not all of the box may be stored.
    """
    if _is_copied_in_part(func, block, buffer, node):
        below = [x for x in loops_around(func, block) if x in loops_below(node.body)]
        check_predicate(func, block, below, "stage", node.var.name)
        exact = copy_nest(func, block, buffer, staged, node, into=True, guard=TRUE)
        return exact, tuple(loop.var for loop in loops_below(exact))
    around = (*loops_around(func, node), node)
    still = ranges_of(around)
    moving = ranges_of(loops_below(node.body))
    accesses = [
        tuple(bound(reader, item) for item in access)
        for reader in blocks(node)
        for access in read_indices(reader, buffer)
    ]
    box = region(accesses, moving, still, buffer.shape)
    variables = tuple(Var(f"{buffer.name}_{axis}") for axis in range(len(box)))
    iters = elements_of(buffer, [Var(f"v{axis}") for axis in range(len(buffer.shape))])
    element = tuple(it.var for it in iters)
    bindings = tuple(span.low + v for span, v in zip(box, variables, strict=True))
    inside = {**still, **{v: (0, s.extent - 1) for s, v in zip(box, variables, strict=True)}}
    copy = Block(
        unique_name(func, f"{staged.name}_in"),
        iters,
        bindings,
        Store(staged, element, Load(buffer, element)),
        predicate=within(bindings, buffer.shape, inside),
        role=Role.COPY,
        family=buffer.name,
    )
    nest: Stmt = copy
    for variable, span in zip(reversed(variables), reversed(box), strict=True):
        nest = For(variable, span.extent, ForKind.SERIAL, nest)
    return nest, variables


def _is_copied_in_part(func: PrimFunc, block: Block, buffer: Buffer, node: For) -> bool:
    """Whether a tensor, part of which stays in a staged buffer, is read by a copy alone below a
    loop.
    """
    alone = all(other is block for other in blocks(node) if reads(other, buffer))
    return alone and block.role is Role.COPY and bool(completeness.kept_in_stages(func, buffer))


def within(bindings: tuple[Expr, ...], extents: tuple[int, ...], ranges: Ranges) -> Expr:
    """The condition that each binding lies in 0 .. extent-1, without what the ranges decide."""
    conditions = []
    for binding, extent in zip(bindings, extents, strict=True):
        conditions += [c for c in (binding >= 0, binding < extent) if not provable(c, ranges)]
    return all_of(*conditions)


def _check_accesses(func: PrimFunc, block: Block, buffer: Buffer, primitive: str) -> None:
    """The block reads or writes the buffer."""
    if not reads(block, buffer) and not writes(block, buffer):
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' does not access '{buffer.name}'.",
            code="block-access",
            kind=Kind.ARGUMENT,
            hints=(f"it accesses {', '.join(sorted(repr(n) for n in _accessed_names(block)))}.",),
        )


def _accessed_names(block: Block) -> set[str]:
    """The names of the buffers that a block touches."""
    return {node.name for node in walk(block.body) if isinstance(node, Buffer)}


def _check_part_alone(func: PrimFunc, block: Block, loop: For, primitive: str) -> None:
    """No other part of the block's tensor is computed below the loop, or goes on with the block's
    accumulators.
    """
    parts = [b for b in func.blocks if b.role is block.role and b.family == block.family]
    together = any(part is not block and part in blocks(loop) for part in parts)
    if together or (is_reduction(block) and any(part.init is None for part in parts)):
        check_whole(func, block, primitive)


def draw_stage(sch: ScheduleView, rng: Random) -> Arguments:
    """A buffer that a block reads or writes, below any loop around it."""
    block = rng.choice(sch.func.blocks)
    near = [*names_read(sch, block), target_of(block).name]
    return {
        "block": block.name,
        "buffer": rng.choice(near),
        "loop": choose_loop(sch, rng, block.name),
        "scope": rng.choice(("register", "thread", "thread")),
    }


STAGE = Primitive(
    "stage",
    stage,
    {"block": BLOCK, "buffer": TENSOR, "loop": LOOP, "scope": PLAIN},
    gives=all_loops,
    draw=draw_stage,
    weight=4,
)
