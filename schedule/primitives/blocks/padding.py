"""Primitive decompose_padding: compute the border of a padded tensor apart from its interior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ....tir.analysis.linear import linear
from ....tir.analysis.narrow import narrowed
from ....tir.analysis.simplify import simplify
from ....tir.expr import Const, Expr, Select, Var, is_const
from ....tir.func import PrimFunc
from ....tir.stmt import Block, For, ForKind, IterVar, Stmt, seq
from ....tir.visit import free_vars, fresh_copy, replace_stmt, stores
from ...drawing import Arguments, NothingToTry, ScheduleView
from ...errors import Kind, refuse
from ...legality.blocks import check_holds, check_pointwise, check_role
from ...nest import Rewrite, loop_of, unique_name
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, all_blocks

Box = dict[Var, tuple[int, int]]
_KEPT = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)


def decompose_padding(func: PrimFunc, block: str, loop: Var) -> Rewrite:
    """Fill the border of a padded tensor in blocks of their own, right before `loop`; the block
    itself goes on over the interior.

    for i in range(n + 2): P[i] = select(1 <= i and i < n + 1, X[i - 1], 0)
    ->  for i in range(1): P[i] = 0;  for i in range(1): P[n + 1 + i] = 0
        for i in range(n): P[i + 1] = X[i]

    Each axis of `loop` and of the loops inside it is cut where the condition changes: into a slab
    before, one after and the rest. The blocks are one family, so each keeps the whole expression,
    of which lowering leaves the side that holds there; a condition on an axis further out stays.
    The block may be such a part itself, its loops of any kind that iterations keep one by one: each
    element is still made once, by an iteration of its own, where it was.
    Requires: select(inside, x, constant) per element, loops over one piece of an axis each, and a
    condition that is a box. Returns the blocks of the border. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    whole = func.block(block)
    check_holds(func, node, whole, "decompose_padding")
    inside = _check_padding(func, whole)
    check_role(func, whole, "decompose_padding")
    chain, axes, own = _check_plain(func, whole, node)
    slabs, rest = _check_box(func, whole, inside, axes, own)
    fills: list[Stmt] = []
    names: list[str] = []
    for number, slab in enumerate(slabs):
        names.append(unique_name(func, f"{block}_fill{number}"))
        fills.append(fresh_copy(_over(replace(whole, name=names[-1]), chain, axes, slab)))
    interior = _over(whole, chain, axes, rest)
    changed = func.with_body(replace_stmt(func.body, node, seq(*fills, interior)))
    return Rewrite(changed, blocks=tuple(names))


def _check_padding(func: PrimFunc, block: Block) -> Expr:
    """The block stores select(inside, x, constant) at each element. Returns the condition."""
    value = stores(block.body)[0].value
    if isinstance(value, Select) and isinstance(value.on_false, Const):
        check_pointwise(func, block, "decompose_padding")
        return value.condition
    raise refuse(
        func,
        f"decompose_padding: block '{block.name}' does not pad; expected one "
        "select(inside, x, constant) per element.",
        code="padding-block",
        kind=Kind.ARGUMENT,
    )


def _check_plain(
    func: PrimFunc, block: Block, node: For
) -> tuple[tuple[For, ...], tuple[IterVar, ...], Box]:
    """The block stands below `node` with nothing but loops between, each over one piece of an axis.
    Returns the loops, their axes and the pieces.
    """
    chain: list[For] = []
    axes: list[IterVar] = []
    box: Box = {}
    starts = _starts(block)
    inner: Stmt = node
    while isinstance(inner, For) and inner.var in starts and inner.kind in _KEPT:
        axis, low = starts[inner.var]
        chain.append(inner)
        axes.append(axis)
        box[axis.var] = (low, low + inner.extent - 1)
        inner = inner.body
    if inner is block and not free_vars(block.predicate) & {x.var for x in chain}:
        return tuple(chain), tuple(axes), box
    raise refuse(
        func,
        f"decompose_padding: block '{block.name}' does not stand below loop '{node.var.name}' in "
        "loops over one piece of an axis each.",
        code="padding-loops",
        kind=Kind.LIMIT,
        hints=("call decompose_padding before split, fuse and stage.",),
    )


def _starts(block: Block) -> dict[Var, tuple[IterVar, int]]:
    """The loops that run over one axis of the block alone, one by one, and where they start."""
    found: dict[Var, tuple[IterVar, int]] = {}
    for it, binding in zip(block.iters, block.bindings, strict=True):
        form = linear(binding)
        if len(form.terms) == 1:
            ((loop, step),) = form.terms
            if isinstance(loop, Var) and step == 1:
                found[loop] = (it, form.constant)
    return found


def _check_box(
    func: PrimFunc, block: Block, inside: Expr, axes: Sequence[IterVar], own: Box
) -> tuple[list[Box], Box]:
    """The condition is a box of the axes, and cuts one of them in the block's own piece. Returns
    the slabs of the border, disjoint, and the rest.
    """
    everywhere: Box = {it.var: (0, it.extent - 1) for it in block.iters} | own
    found = narrowed(everywhere, inside)
    slabs: list[Box] = []
    rest: Box = dict(everywhere)
    for axis in axes:
        low, high = found[axis.var]
        assert low is not None
        assert high is not None
        first, last = everywhere[axis.var]
        if low > first:
            slabs.append({**rest, axis.var: (first, low - 1)})
        if high < last:
            slabs.append({**rest, axis.var: (high + 1, last)})
        rest[axis.var] = (max(first, low), min(high, last))
    left = simplify(inside, rest)
    known = all(is_const(simplify(inside, slab), 0) for slab in slabs)
    some = all(low <= high for low, high in rest.values())
    is_box = known and not free_vars(left) & {axis.var for axis in axes}
    if slabs and some and is_box:
        return slabs, rest
    names = ", ".join(f"'{axis.var.name}'" for axis in axes)
    raise refuse(
        func,
        f"decompose_padding: the condition of block '{block.name}' does not cut a box out of "
        f"what it computes of {names}, the axes at and inside the loop.",
        code="padding-box",
        kind=Kind.ARGUMENT if is_box else Kind.LIMIT,
        hints=("choose a loop around those over the padded axes.",),
    )


def _over(block: Block, chain: Sequence[For], axes: Sequence[IterVar], box: Box) -> Stmt:
    """The block over a box of its axes, below loops like those of `chain`."""
    bindings = dict(zip(block.iters, block.bindings, strict=True))
    extents = []
    for loop, axis in zip(chain, axes, strict=True):
        low, high = box[axis.var]
        bindings[axis] = loop.var + low if low else loop.var
        extents.append(high - low + 1)
    nest: Stmt = replace(block, bindings=tuple(bindings.values()))
    for loop, extent in zip(reversed(chain), reversed(extents), strict=True):
        nest = replace(loop, extent=extent, body=nest)
    return nest


def draw_decompose_padding(sch: ScheduleView, rng: Random) -> Arguments:
    """A block that chooses between two values, and the outermost of its loops or any other."""
    padded = [
        block.name
        for block in sch.func.blocks
        if isinstance(stores(block.body)[0].value, Select) and sch.loops(block.name)
    ]
    if not padded:
        raise NothingToTry
    block = rng.choice(padded)
    loops = sch.loops(block)
    return {"block": block, "loop": loops[0] if rng.random() < 0.5 else rng.choice(loops)}


DECOMPOSE_PADDING = Primitive(
    "decompose_padding",
    decompose_padding,
    {"block": BLOCK, "loop": LOOP},
    gives=all_blocks,
    draw=draw_decompose_padding,
    weight=14,
)
