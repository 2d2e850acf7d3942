"""Primitives that change the shape of a loop nest: split, fuse, reorder, add_unit_loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from ....tir.expr import Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.stmt import For, ForKind, IterKind, Stmt, Tail
from ....tir.visit import blocks, enclosing_path, replace_stmt, substitute
from ...drawing import Arguments, ScheduleView, choose_any_loop, choose_nest, draw_block
from ...errors import Kind, ScheduleError, refuse
from ...legality import dependence, recurrence
from ...legality.loops import check_not_mirrored, check_serial, runs_over
from ...nest import Rewrite, guarded, loop_of, replace_loop
from ..parameters import BLOCK, LOOP, LOOPS, PLAIN
from ..primitive import Primitive, all_loops, nothing, one_loop

TailName = Literal["guard", "partition", "mask"]
TAILS = ("guard", "partition", "mask")
_INHERITED = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)


def split(
    func: PrimFunc, loop: Var, factors: Sequence[int | None], tail: TailName = "guard"
) -> Rewrite:
    """Split one loop into nested loops whose extents are `factors`; one factor may be None
    (inferred).

    for i in range(n): s   ->   for i_0 in range(a): for i_1 in range(b): s[i := i_0*b + i_1]

    Where a*b > n the blocks below run only for i_0*b + i_1 < n, and the loops are marked with
    `tail`: how a late pass cuts the incomplete iteration. The innermost loop takes over the hints.
    A parallel loop leaves a parallel outermost one: iterations that share nothing may be taken
    several at a time; a vectorized or unrolled one, an innermost one of its kind. Requires: no loop
    of a grid or of an instruction; the factors cover the extent. Raises: ScheduleError.
    """
    _check_tail(tail)
    node = loop_of(func, loop)
    check_serial(func, node, "split", _INHERITED)
    check_not_mirrored(func, node, "split")
    extents = _check_factors(func, node, factors)
    variables = [Var(f"{loop.name}_{n}") for n in range(len(extents))]
    value: Expr = index(0)
    for variable, extent in zip(variables, extents, strict=True):
        value = value * extent + variable
    body: Stmt = substitute(node.body, {loop: value})
    exact = math.prod(extents) == node.extent
    if not exact:
        body = guarded(body, value < node.extent)
    for position in reversed(range(len(extents))):
        inner = position == len(extents) - 1
        mark = node.tail if exact else None if inner else Tail(tail)
        hints = node.annotations if inner else ()
        heir = position == 0 if node.kind is ForKind.PARALLEL else inner
        kind = node.kind if heir else ForKind.SERIAL
        body = For(variables[position], extents[position], kind, body, mark, hints)
    return Rewrite(
        replace_loop(func, node, body), tuple(variables), forward={loop: tuple(variables)}
    )


def _check_tail(tail: str) -> None:
    """There is such a way to cut an incomplete last iteration."""
    if tail not in TAILS:
        raise ScheduleError(
            f"split: tail is {tail!r}; expected one of {', '.join(map(repr, TAILS))}.",
            code="split-tail",
        )


def fuse(func: PrimFunc, loops: Sequence[Var]) -> Rewrite:
    """Join loops, each directly inside the one before it, into one.

    for i in range(n): for j in range(m): s   ->   for i_j in range(n*m): s[i := i_j // m, j := i_j
    % m]

    The loop takes over the hints of the innermost one.
    Requires: the loops are serial and directly nested; no block reduces over one and keeps another.
    Raises: ScheduleError.
    """
    nodes = [loop_of(func, loop) for loop in loops]
    for node in nodes:
        check_serial(func, node, "fuse")
        check_not_mirrored(func, node, "fuse")
    _check_directly_nested(func, nodes)
    _check_unmixed(func, nodes)
    extent = math.prod(node.extent for node in nodes)
    fused = Var("_".join(loop.name for loop in loops))
    values: dict[Var, Expr] = {}
    step = extent
    for node in nodes:
        step //= max(1, node.extent)
        value: Expr = fused // step if step > 1 else fused
        values[node.var] = value if node is nodes[0] else value % max(1, node.extent)
    body = substitute(nodes[-1].body, values)
    mark = next((node.tail for node in nodes if node.tail), None)
    new = For(fused, extent, ForKind.SERIAL, body, mark, nodes[-1].annotations)
    return Rewrite(
        replace_loop(func, nodes[0], new), (fused,), forward=dict.fromkeys(loops, (fused,))
    )


def reorder(func: PrimFunc, loops: Sequence[Var]) -> Rewrite:
    """Put loops of one chain into the given order; loops between them that are not named keep their
    places.

    for i: for j: s   ->   for j: for i: s

    te is pure and reductions commute, so every order has one meaning, in which the steps of a scan
    find those that they read, and what reads a tensor finds it complete. Requires: nothing but
    loops stands between the outermost and the innermost of them; a parallel loop stays outermost, a
    vectorized one innermost. Raises: ScheduleError.
    """
    nodes = [loop_of(func, loop) for loop in loops]
    if not nodes:
        return Rewrite(func)
    for node in nodes:
        check_not_mirrored(func, node, "reorder")
    chain = _check_chain(func, nodes)
    ordered = iter(nodes)
    result = [next(ordered) if node in nodes else node for node in chain]
    _check_kinds_in_order(func, result)
    body = chain[-1].body
    for node in reversed(result):
        body = replace(node, body=body)
    changed = replace_loop(func, chain[0], body)
    moved = blocks(chain[-1].body)
    recurrence.check_order(func, changed, moved, "reorder")
    dependence.check_read_complete(func, changed, moved, "reorder")
    return Rewrite(changed)


def add_unit_loop(func: PrimFunc, block: str) -> Rewrite:
    """Put a loop of one iteration right around a block.

    with block("C"): s   ->   for C_unit in range(1): with block("C"): s

    It gives a block without loops (a single element) one that a step may name. Returns the loop.
    """
    inner = func.block(block)
    variable = Var(f"{block}_unit")
    around = For(variable, 1, ForKind.SERIAL, inner)
    return Rewrite(func.with_body(replace_stmt(func.body, inner, around)), (variable,))


def _check_factors(func: PrimFunc, loop: For, factors: Sequence[int | None]) -> tuple[int, ...]:
    """The factors cover the extent; at most one is None. Returns the extents of the new loops."""
    known = [factor for factor in factors if factor is not None]
    shown = ", ".join(map(str, factors))
    numbers = all(type(factor) is int and factor >= 1 for factor in known)
    if not factors or not numbers or len(factors) - len(known) > 1:
        raise refuse(
            func,
            f"split: factors ({shown}) of loop '{loop.var.name}'; expected positive integers, "
            "at most one None.",
            code="split-factors",
            kind=Kind.ARGUMENT,
        )
    product = math.prod(known)
    if len(known) < len(factors):
        missing = -(-loop.extent // product)
        return tuple(missing if factor is None else factor for factor in factors)
    if product < loop.extent:
        formula = " * ".join(map(str, known))
        raise refuse(
            func,
            f"split: factors ({shown}) do not cover loop '{loop.var.name}': "
            f"{formula} = {product}, extent {loop.extent}.",
            code="split-cover",
            kind=Kind.ARGUMENT,
            hints=(f"leave one factor None to have it inferred: factors=(None, {known[-1]}).",),
        )
    return tuple(known)


def _check_directly_nested(func: PrimFunc, loops: Sequence[For]) -> None:
    """Each loop is the whole body of the one before it."""
    if not loops:
        raise refuse(
            func,
            "fuse: no loop is named; expected one or more.",
            code="fuse-none",
            kind=Kind.ARGUMENT,
            hints=("i_j = sch.fuse(i, j)",),
        )
    for outer, inner in itertools.pairwise(loops):
        if outer.body is not inner:
            same = outer.var.name == inner.var.name
            first, second = (f" of '{blocks(x)[0].name}'" if same else "" for x in (outer, inner))
            raise refuse(
                func,
                f"fuse: loop '{inner.var.name}'{second} is not directly inside loop "
                f"'{outer.var.name}'{first}.",
                code="fuse-nested",
                kind=Kind.LIMIT,
                hints=("name the loops from the outermost inwards; reorder brings them together.",),
            )


def _check_unmixed(func: PrimFunc, loops: Sequence[For]) -> None:
    """No block reduces over one of the loops to fuse and keeps another: a loop's first and last
    iterations stay those of the reduction.
    """
    for block in blocks(loops[0]):
        reduced = [x for x in loops if runs_over(block, x.var, IterKind.REDUCE)]
        kept = [x for x in loops if runs_over(block, x.var, IterKind.SPATIAL)]
        if reduced and kept:
            raise refuse(
                func,
                f"fuse: block '{block.name}' reduces over loop '{reduced[0].var.name}' and not "
                f"over loop '{kept[0].var.name}'; expected loops over kept axes, or over reduced "
                "ones.",
                code="fuse-mixed",
                kind=Kind.LIMIT,
                hints=("fuse the kept loops and the reduced ones apart.",),
            )


def _check_chain(func: PrimFunc, loops: Sequence[For]) -> list[For]:
    """The loops lie on one chain of loops with nothing beside them. Returns the chain, outermost
    first.
    """
    names = [loop.var.name for loop in loops]
    if len(set(names)) < len(names) and len({loop.var for loop in loops}) < len(loops):
        raise refuse(
            func,
            f"reorder: a loop is named twice: {', '.join(names)}; expected each loop once.",
            code="reorder-twice",
            kind=Kind.ARGUMENT,
        )
    depth = {loop.var: len(enclosing_path(func.body, loop)) for loop in loops}
    outer = min(loops, key=lambda loop: depth[loop.var])
    missing = {loop.var for loop in loops}
    chain: list[For] = []
    node = outer
    while True:
        chain.append(node)
        missing.discard(node.var)
        if not missing:
            return chain
        if not isinstance(node.body, For):
            break
        node = node.body
    stray = next(loop for loop in loops if loop.var in missing)
    raise refuse(
        func,
        f"reorder: loop '{stray.var.name}' is not on one chain with loop '{outer.var.name}': "
        f"loop '{node.var.name}' holds other statements.",
        code="reorder-chain",
        kind=Kind.LIMIT,
        hints=(
            "reorder before the step that put another statement there (stage, compute_at, "
            "prefetch).",
        ),
    )


def _check_kinds_in_order(func: PrimFunc, chain: Sequence[For]) -> None:
    """In a chain of loops, outermost first, no loop of several iterations stands outside of a
    parallel one, and none inside of a vectorized one.
    """
    for outer, inner in itertools.combinations(chain, 2):
        outermost = inner.kind is ForKind.PARALLEL or (
            inner.is_of_blocks and not outer.is_of_blocks
        )
        parallel = outermost and outer.extent != 1
        if parallel or outer.kind is ForKind.VECTORIZED:
            kind, place = (inner.kind.value, inner) if parallel else ("vectorized", outer)
            raise refuse(
                func,
                f"reorder: loop '{outer.var.name}' would stand outside of loop '{inner.var.name}'; "
                f"expected {kind} loop '{place.var.name}' to stay "
                f"{'outermost' if parallel else 'innermost'}.",
                code="reorder-kind",
                kind=Kind.LIMIT,
                hints=(f"reorder before the step that made '{place.var.name}' {kind}.",),
            )


def draw_split(sch: ScheduleView, rng: Random) -> Arguments:
    """Any loop into two or three, one of them of inferred extent."""
    loop = choose_any_loop(sch, rng)
    factors: list[int | None] = [rng.choice((1, 2, 2, 3, 4, 4, 5, 8))]
    if rng.random() < 0.3:
        factors.append(rng.randint(1, 4))
    factors.insert(rng.choice((0, 0, len(factors))), None)
    return {"loop": loop, "factors": tuple(factors), "tail": rng.choice(TAILS)}


def draw_fuse(sch: ScheduleView, rng: Random) -> Arguments:
    """Two or three loops of a nest, each inside the one before it."""
    loops = choose_nest(sch, rng, least=2)
    start = rng.randrange(len(loops) - 1)
    return {"loops": loops[start : start + rng.randint(2, 3)]}


def draw_reorder(sch: ScheduleView, rng: Random) -> Arguments:
    """Two or more loops of a nest, in any order."""
    loops = choose_nest(sch, rng, least=2)
    return {"loops": tuple(rng.sample(loops, rng.randint(2, len(loops))))}


SPLIT = Primitive(
    "split",
    split,
    {"loop": LOOP, "factors": PLAIN, "tail": PLAIN},
    gives=all_loops,
    draw=draw_split,
    weight=4,
)
FUSE = Primitive("fuse", fuse, {"loops": LOOPS}, gives=one_loop, draw=draw_fuse)
REORDER = Primitive(
    "reorder", reorder, {"loops": LOOPS}, gives=nothing, draw=draw_reorder, weight=2
)
ADD_UNIT_LOOP = Primitive(
    "add_unit_loop", add_unit_loop, {"block": BLOCK}, gives=one_loop, draw=draw_block
)
