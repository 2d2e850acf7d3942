"""Blocks of several tensors through schedule, lowering and proof: argmax, log-sum-exp, pairs of
results; by value on every target, by proof and by replay. Errors planted in their nests are found
by the proof alone.
"""

# ruff: noqa: E501 (one line of a nest is one line)
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower, lower_to_nest
from tilewright.driver.build import build
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.verify.verify import Stage, verify

from ..isas import HERE
from .programs import assert_replays, refusals

pytestmark = pytest.mark.sampled(5)

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]
Steps = Callable[[Schedule], object]


def rows_argmax(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    best, at = te.compute((rows,), lambda i: te.argmax(x[i, k], axis=k), name=("best", "at"))
    return te.func(x, best, at, name="rows_argmax")


def columns_argmax(rows: int, columns: int, dtype: str = "int64") -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(rows, name="k")
    best, at = te.compute(
        (columns,), lambda j: te.argmax(x[k, j], axis=k, dtype=dtype), name=("best", "at")
    )
    return te.func(x, best, at, name="columns_argmax")


def joined(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    top = te.maximum(a[0], b[0])
    return top, a[1] * te.exp(a[0] - top) + b[1] * te.exp(b[0] - top)


def log_sum_exp(rows: int, columns: int, *, along: str) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    reduce = te.comm_reducer(joined, lambda m, s: (te.const(-1e30, m), 0), name="lse")
    one = te.const(1, "float32")
    kept, extent = (rows, columns) if along == "rows" else (columns, rows)
    k = te.reduce_axis(extent, name="k")

    def element(i: Expr) -> Expr:
        return reduce((x[i, k] if along == "rows" else x[k, i], one), axis=k)

    m, s = te.compute((kept,), element, name=("m", "s"))
    y = te.compute((kept,), lambda i: m[i] + te.log(s[i]), name="Y")
    return te.func(x, y, name="log_sum_exp")


def truths(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k, k2 = te.reduce_axis(rows, name="k"), te.reduce_axis(rows, name="k2")
    some = te.compute((columns,), lambda j: te.any(x[k, j] > 1.0, axis=k), name="some")
    every = te.compute((columns,), lambda j: te.all(x[k2, j] < 1.0, axis=k2), name="every")
    return te.func(x, some, every, name="truths")


def pairs(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    low, high = te.compute(
        (rows, columns), lambda i, j: (x[i, j] - 1, x[i, j] * 2), name=("low", "high")
    )
    y = te.compute((rows, columns), lambda i, j: low[i, j] * high[i, j], name="Y")
    return te.func(x, low, y, name="pairs")


def check(sch: Schedule, target: str) -> PrimFunc:
    """The schedule's values are kept down to lowered code, its nest is proved and its trace
    replays. Returns the nest.
    """
    machine = Target.parse(target)
    verify(sch.func, Stage.SCHEDULED)
    assert_replays(sch)
    contracted = contraction(sch.func, machine)
    nest = lower_to_nest(contracted)
    verify(nest, Stage.NEST)
    assert str(parse(str(nest))) == str(nest)
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-4, 5, b.shape).astype(b.type.numpy) for b in sch.original.inputs]
    expected = evaluate(sch.original, arrays)
    for func, checked in ((sch.func, True), (nest, True), (lower(nest, machine), False)):
        results = interpret(func, *arrays, checked=checked, barriers=checked and func is nest)
        for buffer, result in zip(func.outputs, results, strict=True):
            np.testing.assert_allclose(result, expected[buffer.name], rtol=4e-6, err_msg=str(func))
    canonical = canonical_form(contracted)
    assert prove(nest, canonical).status == "proved"
    assert prove(nest, canonical, shortcuts=False).status == "proved"
    return nest


RULES: dict[str, tuple[PrimFunc, str]] = {
    "argmax of rows": (rows_argmax(7, 21), "rows"),
    "argmax of columns": (columns_argmax(9, 37), "reduction"),
    "argmax of columns, narrow places": (columns_argmax(9, 37, "int32"), "reduction"),
    "log-sum-exp of rows": (log_sum_exp(5, 18, along="rows"), "rows"),
    "log-sum-exp of columns": (log_sum_exp(11, 35, along="columns"), "reduction"),
    "any and all": (truths(6, 19), "rows"),
    "pairs": (pairs(5, 23), "elementwise"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", RULES)
def test_rules_schedule_blocks_of_several_tensors(name: str, target: str) -> None:
    func, rule = RULES[name]
    assert rule_for(func).name == rule
    check(default_schedule(func, Target.parse(target)), target)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_of_columns_are_found_in_vectors(dtype: str) -> None:
    sch = default_schedule(columns_argmax(9, 64, dtype), Target.parse("c:avx512"))
    lanes = 16 if dtype == "int32" else 8
    text = str(lower(lower_to_nest(sch.func), Target.parse("c:avx512")))
    assert f"float32x{lanes}[()]" in text
    assert f"{dtype}x{lanes}[()]" in text


def parts(sch: Schedule) -> None:
    _, k = sch.loops("best")
    outer, _ = sch.split(k, (3, None))
    assert sch.rfactor("best", outer) == "best_rf"


def parts_of_sums(sch: Schedule) -> None:
    _, k = sch.loops("m")
    outer, _ = sch.split(k, (3, None))
    assert sch.rfactor("m", outer) == "m_rf"


def tile(sch: Schedule) -> None:
    j, k = sch.loops("best")
    j0, j1 = sch.split(j, (None, 16), tail="mask")
    k0, k1 = sch.split(k, (None, 4), tail="partition")
    sch.reorder(j0, k0, k1, j1)
    sch.vectorize(j1)
    sch.stage("best", "best", k0, "register")
    sch.stage("best", "at", j0, "register")
    sch.parallel(j0)


def placed(sch: Schedule) -> None:
    j, k = sch.loops("best")
    sch.reorder(k, j)
    sch.decompose_reduction("best", k)


def epilogue(sch: Schedule) -> None:
    i, k = sch.loops("m")
    i0, i1 = sch.split(i, (None, 4), tail="partition")
    k0, k1 = sch.split(k, (None, 6), tail="partition")
    sch.reorder(i0, k0, i1, k1)
    sch.stage("m", "m", i0, "thread")
    sch.stage("m", "s", i0, "thread")
    sch.reverse_compute_at("Y", k0, at="last")
    sch.parallel(i0)


def producer_below(sch: Schedule) -> None:
    sch.compute_at("m", sch.loops("Y")[0])


def pairs_below(sch: Schedule) -> None:
    i, _ = sch.loops("low")
    i0, _ = sch.split(i, (None, 2), tail="guard")
    sch.reverse_compute_at("Y", i0, at="each")
    sch.parallel(i0)


STEPS: dict[str, tuple[PrimFunc, Steps]] = {
    "rfactor of argmax": (rows_argmax(4, 12), parts),
    "rfactor of log-sum-exp": (log_sum_exp(4, 12, along="rows"), parts_of_sums),
    "staged at two loops": (columns_argmax(10, 40, "int32"), tile),
    "initialisation placed": (columns_argmax(5, 8), placed),
    "reader in the last block": (log_sum_exp(9, 17, along="rows"), epilogue),
    "compute_at": (log_sum_exp(4, 6, along="rows"), producer_below),
    "reverse_compute_at": (pairs(5, 6), pairs_below),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", STEPS)
def test_steps_take_blocks_of_several_tensors(name: str, target: str) -> None:
    func, steps = STEPS[name]
    check(Schedule(func, Target.parse(target)).apply(steps), target)


def test_rfactor_joins_the_parts_as_the_reducer_does() -> None:
    sch = Schedule(log_sum_exp(4, 12, along="rows")).apply(parts_of_sums)
    text = str(sch.func)
    assert (
        "                m[vi] = let(x0_2, m_rf[vk_0, vi], let(x1_2, s_rf[vk_0, vi], max(m[vi], x0_2)))"
        in text
    )
    assert "s_rf[vk_0, vi] = 0.0" in text


def test_what_takes_one_tensor_refuses_several(golden: Callable[[str, str], None]) -> None:
    cases: dict[str, tuple[PrimFunc, Steps]] = {
        "cache_write": (rows_argmax(4, 6), lambda s: s.cache_write("best")),
        "compute_inline": (pairs(4, 6), lambda s: s.compute_inline("low")),
    }
    golden("errors/several_tensors.txt", refusals(cases))


def test_rfactor_refuses_a_block_that_does_not_show_what_it_combines() -> None:
    text = """
def f(X: float32[4, 6], Y: output(float32[4])):
    for i in range(4):
        for k in range(6):
            with block("Y", vi=spatial(4, i), vk=reduce(6, k)):
                with init():
                    Y[vi] = 0.0
                Y[vi] = (Y[vi] + X[vi, vk]) + Y[vi] * X[vi, vk]
"""
    sch = Schedule(parse(text))
    with pytest.raises(ScheduleError) as refusal:
        sch.rfactor("Y", sch.loops("Y")[1])
    assert str(refusal.value).splitlines()[0] == (
        "ScheduleError: rfactor: block 'Y' does not show what it combines; expected a sum, "
        "product, minimum, maximum, any, all, or the Lets of a reducer around its values. "
        "[rfactor-update]"
    )


@pytest.mark.parametrize("target", TARGETS)
def test_over_no_points_all_accumulators_keep_their_identity(target: str) -> None:
    func = rows_argmax(3, 0)
    x = np.zeros((3, 0), np.float32)
    machine = Target.parse(target)
    nest = lower_to_nest(default_schedule(func, machine).func)
    for made in (func, nest, lower(nest, machine)):
        best, at = interpret(made, x)
        np.testing.assert_array_equal(best, np.full(3, -np.inf, np.float32))
        np.testing.assert_array_equal(at, np.full(3, np.iinfo(np.int64).max))


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("name", RULES)
def test_compiled_kernels_agree_with_numpy(name: str, target: str) -> None:
    func, _ = RULES[name]
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, func.inputs[0].shape).astype(np.float32)
    if "argmax" in func.name:
        x[2, 3] = x[2, 5] = np.nan
    wanted = evaluate(func, [x])
    found = build(func, target=target)(x)
    outputs = found if isinstance(found, tuple) else (found,)
    for buffer, result in zip(func.outputs, outputs, strict=True):
        np.testing.assert_allclose(result, wanted[buffer.name], rtol=4e-6)


# -- planted errors --------------------------------------------------------------------------------

NEST = """
def f(X: float32[4, 6], best: output(float32[4]), at: output(int64[4])):
    for i in range(4):
        with block("best_init", vi=spatial(4, i), init="best"):
            best[vi] = float("-inf")
            at[vi] = 9223372036854775807
        for k in range(6):
            with block("best", vi=spatial(4, i), vk=reduce(6, k)):
                best[vi] = let(x, X[vi, vk], let(j, vk, select(x < best[vi] or best[vi] == x and at[vi] < j, best[vi], x)))
                at[vi] = let(x, X[vi, vk], let(j, vk, select(x < best[vi] or best[vi] == x and at[vi] < j, at[vi], j)))
"""
BEST = "                best[vi] = let(x, X[vi, vk], let(j, vk, select(x < best[vi] or best[vi] == x and at[vi] < j, best[vi], x)))\n"
AT = "                at[vi] = let(x, X[vi, vk], let(j, vk, select(x < best[vi] or best[vi] == x and at[vi] < j, at[vi], j)))\n"
TWO = """
def f(X: float32[4, 6], lo: output(float32[4]), hi: output(float32[4])):
    for i in range(4):
        with block("lo_init", vi=spatial(4, i), init="lo"):
            lo[vi] = float("inf")
            hi[vi] = float("-inf")
        for k in range(6):
            with block("lo", vi=spatial(4, i), vk=reduce(6, k)):
                lo[vi] = let(x, X[vi, vk], let(y, X[vi, vk], min(lo[vi], x)))
                hi[vi] = let(x, X[vi, vk], let(y, X[vi, vk], max(hi[vi], y)))
"""


def canonical_of(text: str) -> PrimFunc:
    func = parse(text)
    return canonical_form(func)


def edited(text: str, *edits: tuple[str, str]) -> PrimFunc:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return parse(text)


PLANTED: dict[str, tuple[str, PrimFunc, str, str]] = {
    "swapped components": (
        TWO,
        edited(
            TWO,
            (
                "lo[vi] = let(x, X[vi, vk], let(y, X[vi, vk], min(lo[vi]",
                "hi[vi] = let(x, X[vi, vk], let(y, X[vi, vk], min(lo[vi]",
            ),
            (
                "hi[vi] = let(x, X[vi, vk], let(y, X[vi, vk], max(hi[vi]",
                "lo[vi] = let(x, X[vi, vk], let(y, X[vi, vk], max(hi[vi]",
            ),
        ),
        "P2",
        "block 'lo' needs",
    ),
    "a lost initialisation": (
        NEST,
        edited(NEST, ("            at[vi] = 9223372036854775807\n", "")),
        "P1",
        "point (vi=0) of block 'best' is never initialised",
    ),
    "another initial value": (
        NEST,
        edited(NEST, ("at[vi] = 9223372036854775807", "at[vi] = 0")),
        "P2",
        "in block 'best_init' 0 is stored",
    ),
    "the partner is updated before it is read": (
        NEST,
        edited(
            NEST,
            (
                AT,
                '            with block("best_at", vi=spatial(4, i), vk=reduce(6, k), family="best"):\n'
                + AT,
            ),
        ),
        "P3",
        "which block 'best' has updated at this very point",
    ),
    "a lost component": (
        NEST,
        edited(NEST, (AT, "")),
        "P1",
        "of block 'best' never runs",
    ),
    "a lost component that its partner reads": (
        NEST,
        edited(NEST, (BEST, "")),
        "P1",
        "of block 'best' never runs",
    ),
}


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_the_proof_alone_finds_a_planted_error(name: str, shortcuts: bool) -> None:
    right, wrong, found, text = PLANTED[name]
    canonical = canonical_of(right)
    assert prove(parse(right), canonical, shortcuts=shortcuts).status == "proved"
    verdict = prove(wrong, canonical, shortcuts=shortcuts)
    assert verdict.status == "refuted", str(verdict)
    assert any(f.property == found and text in str(f) for f in verdict.failures), str(verdict)


def planes_argmax() -> PrimFunc:
    """The largest elements along an axis, an output, and where they are; then what reads that."""
    x = te.placeholder((3, 4, 5), "float32", name="X")
    k = te.reduce_axis(5, name="k")
    best, at = te.compute(
        (3, 4), lambda i, j: te.argmax(x[i, j, k], axis=k, dtype="int32"), name=("best", "at")
    )
    y = te.compute((3, 4), lambda i, j: at[i, j] + 1, name="Y")
    return te.func(x, best, y, name="planes_argmax")


def test_one_box_is_no_part_of_tensors_of_several_forms() -> None:
    """The output best keeps its form, at takes the new order of the axes."""
    sch = Schedule(planes_argmax())
    sch.join_axes("best", ((1,), (0,), (2,)))
    with pytest.raises(ScheduleError) as caught:
        sch.reverse_compute_at("Y", sch.loops("best")[0])
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: reverse_compute_at: block 'best' stores 'best', 'at' in several forms; "
        "expected tensors that it stores at the same indices. [several-tensors]"
    )
    sch.rfactor("best", sch.loops("best")[2])
    with pytest.raises(ScheduleError) as caught:
        sch.compute_at("best_rf", sch.loops("best")[0])
    assert caught.value.code == "several-tensors"
