"""Primitive merge: two loops that follow each other become one."""

from __future__ import annotations

from dataclasses import replace

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, For, Stmt, seq
from ...tir.visit import statements, substitute
from .. import dependence, legality, placement
from ..nest import Rewrite, loop_of, remove, replace_loop


def merge(func: PrimFunc, first: Var, second: Var) -> Rewrite:
    """Join two loops that follow each other, of equal extent, into one.

    for i in range(n): s;  for j in range(n): t   ->   for i in range(n): { s; t[j := i] }

    Requires: both are serial, and what both touch, one of them writing, they touch in the same
    iteration; storage of a thread in one meets no parallel loop in the other. The loop takes over
    the hints of the first. Returns the loop. Raises: ScheduleError.
    """
    one, two = loop_of(func, first), loop_of(func, second)
    for node in (one, two):
        legality.check_serial(func, node, "merge")
        legality.check_not_mirrored(func, node, "merge")
    dependence.check_siblings(func, one, two)
    for node, other in ((one, two), (two, one)):
        for held in (x.buffer for x in statements(node.body) if isinstance(x, Alloc)):
            if held.scope != "global":
                placement.check_no_parallel_inside(func, other, held.name, "merge")
    dependence.check_together(func, one, two)
    fused = Var(first.name)
    joined = For(
        fused,
        one.extent,
        one.kind,
        _joined(substitute(one.body, {first: fused}), substitute(two.body, {second: fused})),
        one.tail or two.tail,
        one.annotations,
    )
    left = remove(replace_loop(func, one, joined).body, two)
    assert left is not None
    forward: dict[Var, tuple[Var, ...]] = dict.fromkeys((first, second), (fused,))
    return Rewrite(func.with_body(left), (fused,), forward=forward)


def _joined(first: Stmt, second: Stmt) -> Stmt:
    """One statement after the other, below the storage that either has for an iteration."""
    for statement in (first, second):
        if isinstance(statement, Alloc):
            others = (statement.body, second) if statement is first else (first, statement.body)
            return replace(statement, body=_joined(*others))
    return seq(first, second)
