"""Primitive merge: two loops that follow each other become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ....tir.expr import Var
from ....tir.func import PrimFunc
from ....tir.stmt import Alloc, For, ForKind, Stmt, seq
from ....tir.visit import statements, substitute
from ...drawing import Arguments, ScheduleView, choose_any_loop
from ...legality import dependence
from ...legality.loops import (
    check_independent,
    check_no_parallel_inside,
    check_not_mirrored,
    check_serial,
)
from ...nest import Rewrite, allocate_below, guarded, loop_of, remove, replace_loop
from ..parameters import LOOP_PAIR
from ..primitive import Primitive, one_loop

_SHARED = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)  # kinds that two loops may share


def merge(func: PrimFunc, loops: Sequence[Var]) -> Rewrite:
    """Join two loops that follow each other into one, as long as the longer one.

    for i in range(n): s;  for j in range(m): t
    ->  for i in range(max(n, m)): { s if i < n; t[j := i] if i < m }

    Requires: both are serial, or of one kind, which the loop keeps; what both touch, one of them
    writing, they touch in the same iteration, but for what both add to one sum; no iteration reads
    what another one writes of a tensor all of whose parts the loop then holds; storage of a thread
    in one meets no parallel loop in the other. The loop takes over the hints of the first. Returns
    the loop. Raises: ScheduleError.
    """
    first, second = loops
    one, two = loop_of(func, first), loop_of(func, second)
    shared = _SHARED if one.kind is two.kind else ()
    for node in (one, two):
        check_serial(func, node, "merge", shared)
        check_not_mirrored(func, node, "merge")
    dependence.check_siblings(func, one, two)
    for node, other in ((one, two), (two, one)):
        for held in (x.buffer for x in statements(node.body) if isinstance(x, Alloc)):
            if held.scope != "global":
                check_no_parallel_inside(func, other, held.name, "merge")
    dependence.check_together(func, one, two)
    fused = Var(first.name)
    extent = max(one.extent, two.extent)
    bodies = []
    for node in (one, two):
        body: Stmt = substitute(node.body, {node.var: fused})
        bodies.append(guarded(body, fused < node.extent) if node.extent < extent else body)
    mark = one.tail or two.tail
    joined = For(fused, extent, one.kind, _joined(*bodies), mark, one.annotations)
    left = remove(replace_loop(func, one, joined).body, two)
    assert left is not None
    changed = func.with_body(left)
    dependence.check_parts_together(func, changed, loop_of(changed, fused))
    if one.kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
        node = loop_of(changed, fused)
        for tensor in check_independent(changed, node, "merge"):
            changed = allocate_below(changed, fused, tensor)
        dependence.check_reads_own(changed, node, "merge")
    forward: dict[Var, tuple[Var, ...]] = dict.fromkeys((first, second), (fused,))
    return Rewrite(changed, (fused,), forward=forward)


def _joined(first: Stmt, second: Stmt) -> Stmt:
    """One statement after the other, below the storage that either has for an iteration."""
    for statement in (first, second):
        if isinstance(statement, Alloc):
            others = (statement.body, second) if statement is first else (first, statement.body)
            return replace(statement, body=_joined(*others))
    return seq(first, second)


def draw_merge(sch: ScheduleView, rng: Random) -> Arguments:
    """The outermost loops of nests that follow each other, more often than not."""
    outer = [sch.loops(name)[0] for name in sch.blocks() if sch.loops(name)]
    outer = list(dict.fromkeys(outer))
    if len(outer) > 1 and rng.random() < 0.8:
        start = rng.randrange(len(outer) - 1)
        return {"loops": tuple(outer[start : start + 2])}
    return {"loops": (choose_any_loop(sch, rng), choose_any_loop(sch, rng))}


MERGE = Primitive("merge", merge, {"loops": LOOP_PAIR}, gives=one_loop, draw=draw_merge, weight=2)
