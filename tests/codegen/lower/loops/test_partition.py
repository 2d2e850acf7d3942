"""codegen/lower/loops/partition.py: loops are cut where predicates change: text and values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.loops.guard_dims import GuardDims
from tilewright.codegen.lower.loops.partition import Partition
from tilewright.codegen.lower.loops.place_init import PlaceInit
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.verify.verify import Stage, verify

from ....schedule.programs import (
    assert_same_values,
    chain,
    conv,
    matmul,
    matmul_relu,
    pool,
    running,
)


def cut(func: PrimFunc, steps: Callable[[Schedule], object]) -> str:
    """The text after the pass; its values are those of the function."""
    after = Partition()(PlaceInit()(Schedule(func).apply(steps).func))
    verify(after, Stage.NEST)
    assert_same_values(after, func, barriers=False)
    return print_stmt(after.body)


def rows(n: int) -> Callable[[str], Callable[[Schedule], object]]:
    def split(tail: str) -> Callable[[Schedule], object]:
        return lambda s: s.split(s.loops("Q")[0], (None, n), tail=tail)  # type: ignore[arg-type]

    return split


def only(text: str, block: str) -> str:
    """The lines of the nest that computes a block, without what stands before it."""
    return text[text.index("for ", text.index('block("P"')) :] if block == "Q" else text


def test_partition_gives_the_edge_a_nest_of_its_own() -> None:
    text = only(cut(chain(7, 2), rows(3)("partition")), "Q")
    assert text.splitlines()[:9] == [
        "for i_0 in range(2):",
        "    for i_1 in range(3):",
        "        for j in range(2):",
        '            with block("Q", vi=spatial(7, i_0 * 3 + i_1), vj=spatial(2, j)):',
        "                Q[vi, vj] = max(P[vi, vj], 0.0)",
        "for j in range(2):",
        '    with block("Q", vi=spatial(7, 6), vj=spatial(2, j)):',
        "        Q[6, vj] = max(P[6, vj], 0.0)",
        "for i in range(7):",
    ]


def test_guard_leaves_the_predicate_and_no_mark() -> None:
    text = only(cut(chain(7, 2), rows(3)("guard")), "Q")
    assert text.splitlines()[:5] == [
        "for i_0 in range(3):",
        "    for i_1 in range(3):",
        "        for j in range(2):",
        '            with block("Q", vi=spatial(7, i_0 * 3 + i_1), vj=spatial(2, j)):',
        "                where(i_0 * 3 + i_1 < 7)",
    ]


def test_mask_keeps_the_lanes_of_the_edge_under_a_predicate() -> None:
    def steps(sch: Schedule) -> None:
        _, lanes = sch.split(sch.loops("Q")[1], (None, 4), tail="mask")
        sch.vectorize(lanes)

    text = only(cut(chain(1, 6), steps), "Q")
    assert text.splitlines()[:6] == [
        "for j_1 in vectorized(4):",
        '    with block("Q", vi=spatial(1, 0), vj=spatial(6, j_1)):',
        "        Q[0, vj] = max(P[0, vj], 0.0)",
        "for j_1 in vectorized(4):",
        '    with block("Q", vi=spatial(1, 0), vj=spatial(6, j_1 + 4)):',
        "        where(j_1 < 2)",
    ]


def test_a_parallel_loop_is_not_cut_but_branches() -> None:
    def steps(sch: Schedule) -> None:
        outer, _ = sch.split(sch.loops("Q")[0], (None, 3), tail="partition")
        sch.parallel(outer)

    text = only(cut(chain(7, 2), steps), "Q")
    assert text.splitlines()[:2] == ["for i_0 in parallel(3):", "    if i_0 < 2:"]
    assert "    else:\n        for j in range(2):\n" in text


def test_a_reduction_loop_is_cut_at_its_guards() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        block, inner = sch.split(k, (None, 2), tail="partition")
        sch.reorder(block, i, j, inner)
        sch.stage("C", "C", i, "register")
        sch.reverse_compute_at("Y", i, at="last")

    text = cut(matmul_relu(2, 3, 7), steps)
    assert "where" not in text
    assert text.count("C_reg_in") == 2  # in the middle and in the last block
    assert text.count('block("Y"') == 1


def test_a_condition_that_one_iteration_leaves_open_is_decided_by_a_cut() -> None:
    x = te.placeholder((2, 11), "float32", name="X")
    k = te.reduce_axis(11, name="k")
    y = te.compute((2,), lambda i: te.sum(x[i, k], axis=k), name="Y")

    def steps(sch: Schedule) -> None:
        _, lane = sch.split(sch.loops("Y")[1], (None, 4), tail="mask")
        sch.rfactor("Y", lane)

    text = cut(te.func(x, y, name="sums"), steps)
    assert "if" not in text
    assert "where" not in text
    assert "for k_0 in range(2):" in text
    assert "for k_1 in range(3):" in text  # the third round stands alone


def test_floats_that_are_compared_cut_nothing() -> None:
    x = te.placeholder((3, 40), "float32", name="X")
    k = te.reduce_axis(40, name="k")
    one, none = te.const(1, "int32"), te.const(0, "int32")

    def some(i: Expr) -> Expr:
        return te.sum(te.select(x[i, k] > te.const(-np.inf, "float32"), one, none), axis=k)

    func = te.func(x, te.compute((3,), some, name="Y"), name="f")
    assert "for k in range(40)" in cut(func, lambda s: None)


def test_iterations_in_which_no_block_runs_are_left_out() -> None:
    text = only(cut(chain(5, 2), lambda s: s.split(s.loops("Q")[0], (3, 3), tail="mask")), "Q")
    heads = [line.strip() for line in text.splitlines() if "for i" in line]
    assert heads[:2] == ["for i_1 in range(3):", "for i_1 in range(2):"]
    assert text.count('block("Q"') == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tail", ["guard", "partition", "mask"])
@pytest.mark.parametrize("factors", [(None, 2), (None, 4), (2, None, 3), (4, 4), (None, 16)])
def test_every_way_to_cut_keeps_the_values(tail: str, factors: tuple[int | None, ...]) -> None:
    def steps(sch: Schedule) -> None:
        for loop in sch.loops("C"):
            sch.split(loop, factors, tail=tail)  # type: ignore[arg-type]

    cut(matmul(5, 7, 3), steps)


def test_tiles_of_a_convolution_with_edges_keep_the_values() -> None:
    def steps(sch: Schedule) -> None:
        n, h, v, o, c, r, s = sch.loops("conv")
        v0, v1 = sch.split(v, (None, 3), tail="partition")
        o0, o1 = sch.split(o, (None, 4), tail="mask")
        sch.reorder(n, h, o0, v0, c, r, s, v1, o1)
        sch.vectorize(o1)
        sch.compute_at("X_pad", v0)

    cut(conv(4, 5, 2, 6), steps)


def test_a_function_without_marks_or_guards_is_the_same() -> None:
    func = chain(3, 5)
    assert Partition()(func).body == func.body


def test_the_steps_of_a_scan_are_cut_behind_the_first_ones() -> None:
    def steps(sch: Schedule) -> None:
        sch.split(sch.loops("S")[0], (None, 2), tail="partition")

    text = cut(running(7, 3), steps)
    assert "select" not in text
    assert text.splitlines()[:10] == [
        "for j in range(3):",
        '    with block("S", vi=ordered(7, 0), vj=spatial(3, j)):',
        "        S[0, vj] = X[0, vj]",
        "for j in range(3):",
        '    with block("S", vi=ordered(7, 1), vj=spatial(3, j)):',
        "        S[1, vj] = S[0, vj] + X[1, vj]",
        "for i_0 in range(2):",
        "    for i_1 in range(2):",
        "        for j in range(3):",
        '            with block("S", vi=ordered(7, i_0 * 2 + i_1 + 2), vj=spatial(3, j)):',
    ]


def test_a_loop_is_cut_where_the_padding_inside_of_a_sum_begins_and_ends() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_inline("X_pad")
        _, h, v, *_ = sch.loops("Y")
        h0, h1 = sch.split(h, (None, 2), tail="partition")
        sch.reorder(h0, v, h1)

    text = cut(pool(8, 8, 3, stride=1, pad=1), steps)
    assert "select" not in text
    assert "where" not in text
    assert "for h_0 in range(2):\n    for h_1 in range(2):" in text  # between the first and last
    assert "\n    for v in range(6):\n        for h_1 in range(2):" in text


def test_the_last_copy_of_an_unrolled_loop_may_have_vectors_of_its_own_length() -> None:
    def steps(sch: Schedule) -> None:
        vectors, lanes = sch.split(sch.loops("Q")[1], (None, 8), tail="partition")
        sch.unroll(vectors)
        sch.vectorize(lanes)

    text = only(cut(chain(1, 19), steps), "Q")
    assert text.splitlines()[:7] == [
        "for j_0 in unrolled(2):",
        "    for j_1 in vectorized(8):",
        '        with block("Q", vi=spatial(1, 0), vj=spatial(19, j_0 * 8 + j_1)):',
        "            Q[0, vj] = max(P[0, vj], 0.0)",
        "for j_1 in vectorized(3):",
        '    with block("Q", vi=spatial(1, 0), vj=spatial(19, j_1 + 16)):',
        "        Q[0, vj] = max(P[0, vj], 0.0)",
    ]


def test_what_a_call_decides_cuts_no_loop() -> None:
    n = te.dim("n", 1, 10)
    x = te.placeholder((3, n), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    func = te.func(x, te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="S"), name="f")
    nest = str(Partition()(GuardDims()(PlaceInit()(func))))
    assert "for k in range(10):" in nest  # not from the size on that there always is
    assert nest.count('block("S"') == 1
