"""codegen/lower/loops/place_init.py: where the initialisation of a reduction goes: text and
values.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.codegen.lower.loops.place_init import PlaceInit
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt

from ....schedule.programs import assert_same_values, chain, conv, matmul, pool


def placed(func: PrimFunc, steps: Callable[[Schedule], object]) -> str:
    """The text after the pass; its values are those of the function."""
    after = PlaceInit()(Schedule(func).apply(steps).func)
    assert not any(block.init for block in after.blocks)
    assert_same_values(after, func)
    return print_stmt(after.body)


def test_it_stands_before_the_outermost_reduction_loop() -> None:
    assert placed(matmul(2, 3, 4), lambda s: None) == (
        "for i in range(2):\n"
        "    for j in range(3):\n"
        '        with block("C_init", vi=spatial(2, i), vj=spatial(3, j), init="C"):\n'
        "            C[vi, vj] = 0.0\n"
        "        for k in range(4):\n"
        '            with block("C", vi=spatial(2, i), vj=spatial(3, j), vk=reduce(4, k)):\n'
        "                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"
    )


def test_it_repeats_the_kept_loops_below_with_their_kinds_tails_and_guards() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        j0, j1 = sch.split(j, (None, 4), tail="mask")
        sch.reorder(k, i, j0, j1)
        sch.vectorize(j1)

    assert placed(matmul(2, 7, 4), steps).splitlines()[:6] == [
        "for i in range(2):",
        '    for j_0 in range(2, tail="mask"):',
        "        for j_1 in vectorized(4):",
        '            with block("C_init", vi=spatial(2, i), vj=spatial(7, j_0 * 4 + j_1), '
        'init="C"):',
        "                where(j_0 * 4 + j_1 < 7)",
        "                C[vi, vj] = 0.0",
    ]


def test_below_a_stage_it_runs_in_the_first_iteration_of_the_loops_outside() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        block, inner = sch.split(k, (None, 2), tail="partition")
        sch.reorder(block, i, inner, j)
        sch.stage("C", "C", i, "register")

    text = placed(matmul(2, 3, 5), steps)
    assert (
        "        for j in range(3):\n"
        '            with block("C_init", vi=spatial(2, i), vj=spatial(3, j), init="C"):\n'
        "                where(k_0 < 1)\n"
        "                C_reg[vi, vj] = 0.0\n"
        "        for k_1 in range(2):\n"
    ) in text


def test_what_the_schedule_placed_stays_where_it_is() -> None:
    sch = Schedule(matmul(2, 3, 4))
    sch.decompose_reduction("C", sch.loops("C")[0])
    assert PlaceInit()(sch.func) is sch.func


def test_nothing_to_place_gives_the_same_function() -> None:
    func = chain(2, 3)
    assert PlaceInit()(func) is func


@pytest.mark.parametrize("order", ["nhvocrs", "crsnhvo", "ncohrvs", "nhvcors"])
def test_every_order_of_a_convolution_is_initialised_once(order: str) -> None:
    def steps(sch: Schedule) -> None:
        named = dict(zip("nhvocrs", sch.loops("conv"), strict=True))
        sch.reorder(*(named[name] for name in order))

    placed(conv(4, 3, 2, 4), steps)


def test_a_maximum_starts_from_minus_infinity() -> None:
    assert 'Y[vn, vh, vv, vc] = float("-inf")' in placed(pool(5, 5, 3), lambda s: None)


def test_what_does_not_count_becomes_a_part_of_the_predicate_of_the_updates_alone() -> None:
    text = """
def f(X: float32[3, 4], Y: output(float32[3])):
    for i in range(3):
        for k in range(4):
            with block("Y", vi=spatial(3, i), vk=reduce(4, k)):
                counts(vk < vi)
                with init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + X[vi, vk]
"""
    assert (
        str(PlaceInit()(parse(text)))
        == """\
def f(X: float32[3, 4], Y: output(float32[3])):
    for i in range(3):
        with block("Y_init", vi=spatial(3, i), init="Y"):
            Y[vi] = 0.0
        for k in range(4):
            with block("Y", vi=spatial(3, i), vk=reduce(4, k)):
                where(k < i)
                Y[vi] = Y[vi] + X[vi, vk]"""
    )
