"""schedule/primitives/loops/fission.py: text, values, proof, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal

from ...programs import (
    blur,
    body_of,
    chain,
    matmul_relu,
    moments,
    refusals,
    running,
    scheduled,
    wave,
)

AVX512 = Target.parse("c:avx512")
Steps = Callable[[Schedule], object]


def merged(sch: Schedule) -> None:
    """The sum and the sum of squares of `moments` in one nest."""
    for level in range(2):
        sch.merge(sch.loops("S")[level], sch.loops("Q")[level])


def after(*steps: Steps) -> Steps:
    def taken(sch: Schedule) -> None:
        for step in steps:
            step(sch)

    return taken


def cut(block: str, depth: int = 0) -> Steps:
    return lambda sch: sch.fission(sch.loops(block)[depth], block)


def test_a_loop_is_cut_with_the_loops_between_it_and_the_statements() -> None:
    sch = scheduled(moments(3, 5), after(merged, cut("S")))
    assert body_of(sch).splitlines()[:12] == [
        "for i in range(3):",
        "    for k in range(5):",
        '        with block("S", vi=spatial(3, i), vk=reduce(5, k)):',
        "            with init():",
        "                S[vi] = 0.0",
        "            S[vi] = S[vi] + X[vi, vk]",
        "for i in range(3):",
        "    for k in range(5):",
        '        with block("Q", vi=spatial(3, i), vt=reduce(5, k)):',
        "            with init():",
        "                Q[vi] = 0.0",
        "            Q[vi] = Q[vi] + X[vi, vt] * X[vi, vt]",
    ]
    assert sch.steps[-1] == 'i, i = fission(i, "S")'
    assert tw.prove(sch, AVX512).status == "proved"


def test_an_inner_loop_is_cut_inside_of_the_outer_one() -> None:
    sch = scheduled(moments(3, 5), after(merged, cut("S", 1)))
    lines = body_of(sch).splitlines()
    assert (lines[0], lines.count("    for k in range(5):"), lines.count("for i in range(3):")) == (
        "for i in range(3):",
        2,
        2,  # the other one is that of D
    )
    assert tw.prove(sch, AVX512).status == "proved"


def test_it_takes_back_a_merge_and_gives_both_loops() -> None:
    def steps(sch: Schedule) -> None:
        merged(sch)
        loops = sch.fission(sch.loops("S")[0], "S")
        assert loops == (sch.loops("S")[0], sch.loops("Q")[0])

    sch = scheduled(moments(3, 5), steps)
    assert equal(sch.func, sch.original)


@pytest.mark.parametrize("kind", ["parallel", "unroll"])
def test_both_loops_are_of_the_kind_of_the_one(kind: str) -> None:
    def steps(sch: Schedule) -> None:
        merged(sch)
        getattr(sch, kind)(sch.loops("S")[0])
        cut("S")(sch)

    def kinds_after(sch: Schedule) -> None:
        after(merged, cut("S"))(sch)
        getattr(sch, kind)(sch.loops("S")[0])
        getattr(sch, kind)(sch.loops("Q")[0])

    sch = scheduled(moments(3, 5), steps)
    assert body_of(sch) == body_of(scheduled(moments(3, 5), kinds_after))
    assert tw.prove(sch, AVX512).status == "proved"


def initialised_apart(sch: Schedule) -> None:
    """The initialisation in a nest of its own, which vectors fill."""
    i, j, k = sch.loops("C")
    sch.decompose_reduction("C", k)
    _, second = sch.fission(j, "C_init")
    sch.reorder(k, second)
    for name in ("C_init", "C"):
        sch.vectorize(sch.loops(name)[-1])
    sch.parallel(i)


def test_an_initialisation_leaves_the_loop_of_its_sum() -> None:
    sch = scheduled(matmul_relu(3, 8, 5), initialised_apart)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_both_loops_compute_in_c() -> None:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(s, dtype=np.float32) for s in ((6, 8), (8, 32), (32,)))
    kernel = tw.build(Schedule(matmul_relu(6, 32, 8)).apply(initialised_apart))
    np.testing.assert_allclose(kernel(a, b, bias), np.maximum(a @ b + bias, 0), atol=1e-5)


def moved(sch: Schedule) -> None:
    """The rows of the first tensor in the loop that reads them: some are computed three times."""
    sch.compute_at("R", sch.loops("Y")[0])


def test_what_is_computed_again_is_complete_before_its_reader_begins() -> None:
    sch = scheduled(blur(5, 6), after(moved, cut("R")))
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_window_that_rolls_may_run_ahead_of_its_reader() -> None:
    def steps(sch: Schedule) -> None:
        moved(sch)
        sch.rolling_buffer("R", sch.loops("Y")[0])
        cut("R")(sch)

    assert tw.prove(scheduled(blur(5, 6), steps), AVX512).status == "proved"


def test_storage_that_one_side_uses_goes_with_it() -> None:
    def steps(sch: Schedule) -> None:
        merged(sch)
        sch.stage("Q", "Q", sch.loops("Q")[0], "register")
        cut("S")(sch)

    lines = body_of(scheduled(moments(3, 5), steps)).splitlines()
    assert [line for line in lines if "alloc" in line or line.startswith("for")] == [
        "for i in range(3):",
        "for i in range(3):",
        '    Q_reg = alloc(float32[3], "register", origin=Q)',
        "for i in range(3):",
    ]


def test_a_loop_of_three_statements_is_cut_twice() -> None:
    def steps(sch: Schedule) -> None:
        for one, two in (("P", "Q"), ("Q", "Y")):
            for level in range(2):
                sch.merge(sch.loops(one)[level], sch.loops(two)[level])
        cut("Q")(sch)
        cut("P")(sch)

    sch = scheduled(chain(3, 5), steps)
    assert equal(sch.func, sch.original)


def in_two_parts(sch: Schedule) -> None:
    """The elements of a step of the recurrence in two loops, side by side."""
    sch.loop_partition(sch.loops("S")[1], (2,))


def test_parts_of_a_recurrence_that_read_themselves_alone_go_apart() -> None:
    sch = scheduled(running(4, 5), after(in_two_parts, cut("S")))
    assert tw.prove(sch, AVX512).status == "proved"


def every_second(n: int) -> PrimFunc:
    """Y[i] = P[2 i]: a reader of half of the elements."""
    x = te.placeholder((2 * n,), "float32", name="X")
    p = te.compute((2 * n,), lambda i: x[i] * 2.0, name="P")
    return te.func(x, te.compute((n,), lambda i: p[2 * i], name="Y"), name="every_second")


def _half(sch: Schedule) -> None:
    sch.compute_at("P", sch.loops("Y")[0])
    cut("P")(sch)


def test_a_part_of_a_tensor_stays_in_the_statement_of_its_reader() -> None:
    def steps(sch: Schedule) -> None:
        outer, inner = sch.split(sch.loops("Y")[0], (2, None))
        sch.compute_at("P", inner)
        sch.fission(inner, "P")
        assert not sch.attempt(lambda s: s.fission(outer, "P"))

    assert tw.prove(scheduled(every_second(6), steps), AVX512).status == "proved"


def _private(sch: Schedule) -> None:
    moved(sch)
    sch.parallel(sch.loops("Y")[0])
    cut("R")(sch)


def _bound(sch: Schedule) -> None:
    merged(sch)
    sch.bind(sch.loops("S")[0], "blockIdx.x")
    cut("S")(sch)


def _staged(sch: Schedule) -> None:
    """The copy out repeats the loop that is cut."""
    i, j, k = sch.loops("C")
    sch.decompose_reduction("C", k)
    sch.stage("C", "C", i, "register")
    sch.fission(j, "C_init")


def _inner_bound(sch: Schedule) -> None:
    """The second of the loops that are cut is bound to a grid."""
    for level in range(2):
        sch.merge(sch.loops("P")[level], sch.loops("Q")[level])
    sch.bind(sch.loops("P")[1], "threadIdx.x")
    cut("P")(sch)


def _below_one_iteration(sch: Schedule) -> None:
    """The steps of the recurrence, which depend on each other, are in the second loop."""
    in_two_parts(sch)
    sch.split(sch.loops("S")[0], (1, None))
    cut("S")(sch)


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "fission-end": (moments(2, 3), after(merged, cut("Q"))),
    "fission-part": (every_second(3), _half),
    "fission-storage": (blur(3, 4), _private),
    "fission-order": (wave(4, 5), after(in_two_parts, cut("S"))),
    "fission-order: an inner loop carries it": (wave(4, 5), _below_one_iteration),
    "stage-mirrored": (matmul_relu(2, 3, 4), _staged),
    "block-outside": (moments(2, 3), lambda s: s.fission(s.loops("S")[0], "Q")),
    "loop-kind": (moments(2, 3), _bound),
    "loop-kind: an inner loop": (chain(2, 3), _inner_bound),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_fission.txt", refusals(CASES))
