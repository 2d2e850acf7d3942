"""Conditions of a reduction are tested tile by tile: text, values, the work that is left, proof."""

# ruff: noqa: E501 (one line of a nest is one line)
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr, Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import Alloc, Block, For, If, Role, Seq, Stmt
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.work.work import operations

pytestmark = pytest.mark.sampled(5)

Condition = Callable[[Expr, Expr], Expr]


def masked_product(n: int, columns: int, where: Condition) -> PrimFunc:
    """O[i, j] = the sum of P[i, k] * V[k, j] over the k that count for i"""
    p = te.placeholder((n, n), "float32", name="P")
    v = te.placeholder((n, columns), "float32", name="V")
    k = te.reduce_axis(n, name="k")
    o = te.compute(
        (n, columns), lambda i, j: te.sum(p[i, k] * v[k, j], axis=k, where=where(i, k)), name="O"
    )
    return te.func(p, v, o, name="masked_product")


def causal(i: Expr, k: Expr) -> Expr:
    return k <= i


def band(i: Expr, k: Expr) -> Expr:
    return te.all_of(k <= i, i - 5 < k)


def tiled(sch: Schedule) -> None:
    i, j, k = sch.loops("O")
    i0, i1 = sch.split(i, (None, 4), tail="mask")
    k0, k1 = sch.split(k, (None, 4), tail="partition")
    sch.reorder(i0, k0, i1, k1, j)
    sch.vectorize(j)


def in_registers(sch: Schedule) -> None:
    i, j, k = sch.loops("O")
    i0, i1 = sch.split(i, (None, 4), tail="partition")
    k0, k1 = sch.split(k, (None, 4), tail="partition")
    sch.reorder(i0, k0, k1, i1, j)
    sch.vectorize(j)
    sch.unroll(i1)
    sch.stage("O", "O", i0, "register")
    sch.parallel(i0)


def plain(sch: Schedule) -> None:
    _, j, k = sch.loops("O")
    sch.reorder(k, j)


def placed(sch: Schedule) -> None:
    tiled(sch)
    sch.decompose_reduction("O", sch.loops("O")[1])


STEPS: dict[str, Callable[[Schedule], None]] = {
    "tiled": tiled,
    "in registers": in_registers,
    "plain": plain,
    "initialisation placed": placed,
}
WHERE: dict[str, Condition] = {
    "causal": causal,
    "band": band,
    "strictly below": lambda i, k: k < i,
    "beyond": lambda i, k: i + 3 < k,
    "every other": lambda i, k: te.eq((i + k) % 2, 0),
    "rows": lambda i, k: te.all_of(i < 5, k <= i),
    "none": lambda i, k: k < i - 100,
}


def nest_of(sch: Schedule, target: Target) -> tuple[PrimFunc, PrimFunc]:
    contracted = contraction(sch.func, target)
    return lower_to_nest(contracted), canonical_form(contracted)


def test_tiles_above_the_diagonal_are_skipped_and_those_below_run_without_a_test() -> None:
    sch = Schedule(masked_product(8, 8, causal)).apply(tiled)
    nest, _ = nest_of(sch, Target.parse("c:avx2"))
    assert str(nest).partition('init="O"')[2].partition("\n")[2].partition("\n")[2] == (
        "        for k_0 in range(2):\n"
        "            if k_0 * 4 - i_0 * 4 <= (-3):\n"
        "                for i_1 in range(4):\n"
        "                    for k_1 in range(4):\n"
        "                        for j in vectorized(8):\n"
        '                            with block("O", vi=spatial(8, i_0 * 4 + i_1), vj=spatial(8, j), vk=reduce(8, k_0 * 4 + k_1)):\n'
        "                                O[vi, vj] = fma(P[vi, vk], V[vk, vj], O[vi, vj])\n"
        "            else:\n"
        "                if k_0 * 4 - i_0 * 4 <= 3:\n"
        "                    for i_1 in range(4):\n"
        "                        for k_1 in range(4):\n"
        "                            if k_0 * 4 + k_1 - i_0 * 4 - i_1 <= 0:\n"
        "                                for j in vectorized(8):\n"
        '                                    with block("O", vi=spatial(8, i_0 * 4 + i_1), vj=spatial(8, j), vk=reduce(8, k_0 * 4 + k_1)):\n'
        "                                        O[vi, vj] = fma(P[vi, vk], V[vk, vj], O[vi, vj])"
    )


def visited(stmt: Stmt, values: Mapping[Var, int], seen: dict[str, int]) -> None:
    """Count the iterations of the loops, by name, and the points of the updates."""

    def holds(condition: Expr) -> bool:
        return bool(evaluate_expr(condition, {v: np.asarray(n) for v, n in values.items()}))

    match stmt:
        case For():
            for value in range(stmt.extent):
                seen[stmt.var.name] = seen.get(stmt.var.name, 0) + 1
                visited(stmt.body, {**values, stmt.var: value}, seen)
        case Seq():
            for child in stmt.body:
                visited(child, values, seen)
        case Alloc():
            visited(stmt.body, values, seen)
        case If():
            if holds(stmt.condition):
                visited(stmt.then, values, seen)
            elif stmt.orelse is not None:
                visited(stmt.orelse, values, seen)
        case Block() if stmt.role is Role.COMPUTE and holds(stmt.predicate):
            seen["points"] = seen.get("points", 0) + 1


def test_only_the_tiles_that_hold_a_point_are_run() -> None:
    func = masked_product(16, 1, causal)
    assert operations(func) == 2 * 16 * 17 // 2
    nest, _ = nest_of(Schedule(func).apply(in_registers), Target.parse("c:avx2"))
    seen: dict[str, int] = {}
    visited(nest.body, {}, seen)
    assert seen["points"] == 16 * 17 // 2
    assert seen["k_0"] == 4 * 4
    assert seen["k_1"] == 10 * 4  # of 16 tiles the 6 above the diagonal are not entered


@pytest.mark.parametrize("target", ["c:scalar", "c:avx2", "c:avx512"])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", WHERE)
def test_the_meaning_is_kept_and_proved(name: str, steps: str, target: str) -> None:
    machine = Target.parse(target)
    sch = Schedule(masked_product(11, 9, WHERE[name]), machine).apply(STEPS[steps])
    agrees(sch, machine)


@pytest.mark.parametrize("target", ["c:scalar", "c:avx2", "c:avx512"])
@pytest.mark.parametrize("name", WHERE)
def test_rules_schedule_what_is_left_out(name: str, target: str) -> None:
    machine = Target.parse(target)
    agrees(default_schedule(masked_product(13, 20, WHERE[name]), machine), machine)


def agrees(sch: Schedule, machine: Target) -> None:
    nest, canonical = nest_of(sch, machine)
    verify(nest, Stage.NEST)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, b.shape).astype(np.float32) for b in sch.original.inputs]
    wanted = evaluate(sch.original, arrays)["O"]
    for func, checked in ((sch.func, True), (nest, True), (lower(nest, machine), False)):
        (found,) = interpret(func, *arrays, checked=checked, barriers=checked and func is nest)
        np.testing.assert_array_equal(found, wanted)
    assert str(Schedule.replay(sch.original, sch.trace)) == str(sch)
    verdict = prove(nest, canonical)
    assert verdict.status == "proved", str(verdict)


NEST = """
def f(X: float32[8, 8], Y: output(float32[8])):
    for i0 in range(2):
        for i1 in range(4):
            with block("Y_init", vi=spatial(8, i0 * 4 + i1), init="Y"):
                Y[vi] = 0.0
        for k0 in range(2):
            if k0 * 4 + 3 <= i0 * 4:
                for i1 in range(4):
                    for k1 in range(4):
                        with block("Y", vi=spatial(8, i0 * 4 + i1), vk=reduce(8, k0 * 4 + k1)):
                            Y[vi] = Y[vi] + X[vi, vk]
            else:
                if k0 * 4 <= i0 * 4 + 3:
                    for i1 in range(4):
                        for k1 in range(4):
                            with block("Y", vi=spatial(8, i0 * 4 + i1), vk=reduce(8, k0 * 4 + k1)):
                                where(k0 * 4 + k1 <= i0 * 4 + i1)
                                Y[vi] = Y[vi] + X[vi, vk]
"""
CANONICAL = """
def f(X: float32[8, 8], Y: output(float32[8])):
    for i in range(8):
        for k in range(8):
            with block("Y", vi=spatial(8, i), vk=reduce(8, k)):
                counts(vk <= vi)
                with init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + X[vi, vk]
"""
PLANTED = {
    "a tile too few": (("if k0 * 4 <= i0 * 4 + 3", "if k0 * 4 <= i0 * 4 - 1"), "never runs"),
    "a tile too many": (
        ("if k0 * 4 + 3 <= i0 * 4:", "if k0 * 4 <= i0 * 4:"),
        "which does not count",
    ),
    "a lost test": (
        ("                                where(k0 * 4 + k1 <= i0 * 4 + i1)\n", ""),
        "which does not count",
    ),
    "another test": (("where(k0 * 4 + k1 <= i0", "where(k0 * 4 + k1 < i0"), "never runs"),
}


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_the_proof_finds_a_wrong_guard(name: str, shortcuts: bool) -> None:
    (old, new), text = PLANTED[name]
    canonical = parse(CANONICAL)
    assert old in NEST
    assert prove(parse(NEST), canonical, shortcuts=shortcuts).status == "proved"
    verdict = prove(parse(NEST.replace(old, new, 1)), canonical, shortcuts=shortcuts)
    assert verdict.status == "refuted"
    assert text in str(verdict)
