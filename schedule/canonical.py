"""The canonical form of a scheduled function: each block at the root, over its whole domain,
nothing folded.

It is what the proof compares a loop nest with, and what the NumPy evaluator computes block by
block.
"""

from __future__ import annotations

from dataclasses import replace

from ..tir.buffer import Buffer
from ..tir.errors import InternalError
from ..tir.expr import TRUE, Expr, Var
from ..tir.func import PrimFunc
from ..tir.stmt import Alloc, Block, For, ForKind, IterKind, Role, Stmt, seq
from ..tir.text.equal import equal
from ..tir.visit import accesses, fresh_copy, loads, replace_buffers, stores, substitute


def canonical_form(func: PrimFunc) -> PrimFunc:
    """The canonical form of a function at stage TENSOR or SCHEDULED.

    Its COMPUTE blocks stand at the root, producers before their readers and else in the order of
    the text, each family once, each over its whole domain in plain loops, with its initialisation
    inside. Staged buffers are replaced by the tensors whose elements they keep; COPY and INIT
    blocks are gone. Raises: InternalError when two blocks need each other.

        for i: {C_reg = alloc; C_init; for k: C; C_out}; Y   ->   for i, k: C; for i: Y
    """
    origins = {b: origin for b in func.allocations if (origin := origin_of(b)) is not b}
    inits = {b.family: b for b in func.blocks if b.role is Role.INIT}
    families: dict[str, Block] = {}
    for block in func.blocks:
        if block.role is Role.COMPUTE:
            families.setdefault(block.family or block.name, block)
    plain = {name: _plain(block, inits.get(name), origins) for name, block in families.items()}
    ordered = _producers_first(plain, func.name)
    body = seq(*(_over_domain(block) for block in ordered))
    outer = {p.buffer for p in func.parameters}
    used = (access.buffer for access in accesses(body))
    for buffer in reversed(dict.fromkeys(b for b in used if b not in outer)):
        body = Alloc(buffer, body)
    return func.with_body(fresh_copy(body))


def has_same_blocks(before: PrimFunc, after: PrimFunc) -> bool:
    """Whether two forms of one function have the same canonical form."""
    if _definitions(before) == _definitions(after):
        return True
    return equal(canonical_form(before), canonical_form(after))


def _definitions(func: PrimFunc) -> dict[str, tuple[object, ...]]:
    """What the blocks of a function compute; most steps leave it as it is."""
    return {b.name: (b.role, b.iters, b.body, b.init, b.counts) for b in func.blocks}


def origin_of(buffer: Buffer) -> Buffer:
    """The tensor whose elements a buffer keeps, through any number of stages; itself when it has
    none.
    """
    while buffer.origin is not None:
        buffer = buffer.origin
    return buffer


def _plain(block: Block, init: Block | None, origins: dict[Buffer, Buffer]) -> Block:
    """The block without what a schedule adds: predicate, marks, staged buffers, a placed
    initialisation.
    """
    inside: Stmt | None = block.init
    if inside is None and init is not None:
        spatial = [it.var for it in block.iters if it.kind is IterKind.SPATIAL]
        renamed: dict[Var, Expr] = {
            it.var: var for it, var in zip(init.iters, spatial, strict=True)
        }
        inside = substitute(init.body, renamed)
    name = block.family or block.name
    bare = replace(
        block,
        name=name,
        family=name,
        init=inside,
        predicate=TRUE,
        padded=False,
        recomputed=False,
        bindings=tuple(it.var for it in block.iters),
    )
    return replace_buffers(bare, origins)


def _over_domain(block: Block) -> Stmt:
    """The block below one plain loop for each of its iteration variables."""
    loops = tuple(Var(_loop_name(it.var.name)) for it in block.iters)
    nest: Stmt = replace(block, bindings=loops)
    for loop, it in zip(reversed(loops), reversed(block.iters), strict=True):
        nest = For(loop, it.extent, ForKind.SERIAL, nest)
    return nest


def _loop_name(iteration: str) -> str:
    """vi -> i, v0 -> i0"""
    rest = iteration.removeprefix("v")
    return rest if rest.isidentifier() else f"i{rest}"


def _producers_first(families: dict[str, Block], name: str) -> list[Block]:
    """The blocks in the order of the text, each after the blocks whose tensors it reads."""
    needs = {family: _needs(family, families) for family in families}
    ordered: dict[str, Block] = {}
    waiting = list(families)
    while waiting:
        ready = next((family for family in waiting if needs[family] <= ordered.keys()), None)
        if ready is None:
            raise InternalError(
                f"canonical form: blocks {', '.join(repr(f) for f in waiting)} of '{name}' read "
                "each other; expected producers and readers in some order.",
                code="canonical-cycle",
            )
        ordered[ready] = families[ready]
        waiting.remove(ready)
    return list(ordered.values())


def _needs(family: str, families: dict[str, Block]) -> set[str]:
    """The families whose tensors a block reads. Of several that write one buffer in place, those
    before it in the text.
    """
    order = list(families)
    needed: set[str] = set()
    for buffer in dict.fromkeys(load.buffer for load in loads(families[family].body)):
        writers = [f for f in order if any(s.buffer is buffer for s in stores(families[f].body))]
        before = [f for f in writers if order.index(f) < order.index(family)]
        needed |= set(before if before or family in writers else writers)
    return needed - {family}
