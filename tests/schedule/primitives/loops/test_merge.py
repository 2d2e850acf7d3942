"""schedule/primitives/loops/merge.py and schedule/legality/dependence.py: merge: text, values,
proof, refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import (
    blur,
    body_of,
    chain,
    matmul_relu,
    moments,
    parts_of_a_sum,
    refusals,
    scheduled,
)

AVX512 = Target.parse("c:avx512")


def merged(one: str, two: str, depth: int) -> Callable[[Schedule], object]:
    """Merge the outermost `depth` loops of two blocks."""

    def steps(sch: Schedule) -> None:
        for level in range(depth):
            sch.merge(sch.loops(one)[level], sch.loops(two)[level])

    return steps


def test_two_reductions_read_their_input_in_one_loop() -> None:
    sch = scheduled(moments(3, 5), merged("S", "Q", 2))
    assert body_of(sch).splitlines()[:10] == [
        "for i in range(3):",
        "    for k in range(5):",
        '        with block("S", vi=spatial(3, i), vk=reduce(5, k)):',
        "            with init():",
        "                S[vi] = 0.0",
        "            S[vi] = S[vi] + X[vi, vk]",
        '        with block("Q", vi=spatial(3, i), vt=reduce(5, k)):',
        "            with init():",
        "                Q[vi] = 0.0",
        "            Q[vi] = Q[vi] + X[vi, vt] * X[vi, vt]",
    ]
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_reader_at_the_same_element_joins_its_producer() -> None:
    sch = scheduled(chain(3, 5), lambda s: (merged("P", "Q", 2)(s), merged("Q", "Y", 2)(s)))
    assert len({loop for name in sch.blocks() for loop in sch.loops(name)}) == 2
    assert tw.prove(sch, AVX512).status == "proved"


def stairs(n: int, m: int) -> PrimFunc:
    """Two tensors of two lengths, the second from the first elements of X."""
    x = te.placeholder((max(n, m),), "float32", name="X")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="P")
    q = te.compute((m,), lambda i: x[i] + 1.0, name="Q")
    return te.func(x, p, q, name="stairs")


@pytest.mark.parametrize(("n", "m"), [(5, 3), (3, 5)])
def test_the_shorter_loop_runs_in_the_first_iterations_of_the_longer_one(n: int, m: int) -> None:
    sch = scheduled(stairs(n, m), merged("P", "Q", 1))
    lines = body_of(sch).splitlines()
    assert lines[0] == "for i in range(5):"
    short = lines.index(f'    with block("{"Q" if m < n else "P"}", vi=spatial(3, i)):')
    assert lines[short + 1] == "        where(i < 3)"
    assert body_of(sch).count("where") == 1
    assert tw.prove(sch, AVX512).status == "proved"


def test_a_reduction_may_be_the_shorter_loop() -> None:
    x = te.placeholder((3, 7), "float32", name="X")
    k, t = te.reduce_axis(5, name="k"), te.reduce_axis(7, name="t")
    s = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="S")
    q = te.compute((3,), lambda i: te.sum(x[i, t] * x[i, t], axis=t), name="Q")
    sch = scheduled(te.func(x, s, q, name="sums"), merged("S", "Q", 2))
    assert "where(k < 5)" in body_of(sch)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_two_loops_of_one_kind_become_one_of_that_kind(kind: str) -> None:
    def before(sch: Schedule) -> None:
        for name in ("P", "Q"):
            getattr(sch, kind)(sch.loops(name)[0])
        merged("P", "Q", 1)(sch)

    def after(sch: Schedule) -> None:
        merged("P", "Q", 1)(sch)
        getattr(sch, kind)(sch.loops("P")[0])

    sch = scheduled(stairs(6, 4), before)
    assert body_of(sch) == body_of(Schedule(stairs(6, 4)).apply(after))
    assert tw.prove(sch, AVX512).status == "proved"


def test_storage_of_either_loop_stays_that_of_an_iteration() -> None:
    def steps(sch: Schedule) -> None:
        for name in ("S", "Q"):
            sch.stage(name, name, sch.loops(name)[0], "register")
        sch.merge(sch.loops("S")[0], sch.loops("Q")[0])

    assert tw.prove(scheduled(moments(3, 5), steps), AVX512).status == "proved"


def test_the_parts_of_a_loop_may_be_merged_again() -> None:
    def steps(sch: Schedule) -> None:
        sch.merge(*sch.loop_partition(sch.loops("Y")[1], (3,)))

    scheduled(chain(2, 6), steps)


def test_the_parts_of_a_sum_may_be_merged_though_they_add_to_the_same_elements() -> None:
    def steps(sch: Schedule) -> None:
        sch.merge(*sch.loop_partition(sch.loops("S")[1], (3,)))

    sch = scheduled(moments(2, 6), steps)
    assert tw.prove(sch, AVX512).status == "proved"


def test_terms_of_a_sum_may_be_added_in_any_iteration_after_its_initialisation() -> None:
    def steps(sch: Schedule) -> None:
        _, one, two = parts_of_a_sum(sch, "S")
        i, _ = sch.split(sch.loops(one)[0], (None, 2))
        sch.merge(i, sch.loops(two)[0])

    sch = scheduled(moments(4, 6), steps)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.isa
@pytest.mark.needs_cc
def test_the_merged_loops_compute_both_tensors_in_c() -> None:
    sch = Schedule(moments(5, 33)).apply(merged("S", "Q", 2))
    sch.parallel(sch.loops("S")[0])
    x = np.random.default_rng(0).standard_normal((5, 33), dtype=np.float32)
    sums, squares, _ = tw.build(sch)(x)
    np.testing.assert_allclose(sums, x.sum(1), atol=1e-5)
    np.testing.assert_allclose(squares, (x * x).sum(1), atol=1e-5)


def mirrored(n: int) -> PrimFunc:
    """Y[i] = P[n - 1 - i]: a reader that goes the other way."""
    x = te.placeholder((n,), "float32", name="X")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((n,), lambda i: p[n - 1 - i], name="Y")
    return te.func(x, y, name="mirrored")


def shifted(n: int) -> PrimFunc:
    """Y[i] = P[i - 1], and 0 first: a reader that lags behind."""
    x = te.placeholder((n,), "float32", name="X")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((n,), lambda i: te.select(i > 0, p[i - 1], 0.0), name="Y")
    return te.func(x, y, name="shifted")


def _beside_storage_of_a_thread(sch: Schedule) -> None:
    sch.stage("Y", "X", sch.loops("Y")[0], "thread")
    sch.parallel(sch.loops("Q")[1])
    sch.merge(sch.loops("Q")[0], sch.loops("Y")[0])


def _of_two_kinds(sch: Schedule) -> None:
    sch.parallel(sch.loops("P")[0])
    sch.merge(sch.loops("P")[0], sch.loops("Q")[0])


def _with_what_rolls(sch: Schedule) -> None:
    (i, *_) = sch.loops("Y")
    sch.compute_at("R", i)
    first = sch.rolling_buffer("R", i)
    sch.merge(sch.loops(first)[0], sch.loops("Y")[0])


def _terms_before_the_initialisation(sch: Schedule) -> None:
    one, two, _ = parts_of_a_sum(sch, "S")
    i, _ = sch.split(sch.loops(two)[0], (None, 2))
    sch.merge(sch.loops(one)[0], i)


def _terms_behind_the_initialisation(sch: Schedule) -> None:
    """A legal order, but not under each reordering of the loop."""
    one, two, _ = parts_of_a_sum(sch, "S")
    i, _ = sch.split(sch.loops(one)[0], (None, 2))
    sch.merge(i, sch.loops(two)[0])


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "stage-parallel": (chain(1, 4), _beside_storage_of_a_thread),
    "loop-kind: two kinds": (chain(2, 4), _of_two_kinds),
    "merge-carries": (shifted(3), merged("P", "Y", 1)),
    "merge-carries: what rolls, with what stands in front": (blur(4, 4), _with_what_rolls),
    "merge-carries: terms behind the initialisation": (
        moments(4, 6),
        _terms_behind_the_initialisation,
    ),
    "merge-siblings: not next to each other": (chain(2, 3), merged("P", "Y", 1)),
    "merge-siblings: the other way round": (chain(2, 3), merged("Q", "P", 1)),
    "merge-siblings: one inside the other": (
        chain(3, 3),
        lambda s: s.merge(*s.loops("P")),
    ),
    "merge-order: a later iteration": (mirrored(4), merged("P", "Y", 1)),
    "merge-order: a reduction is not complete": (
        matmul_relu(3, 3, 3),
        lambda s: (s.reorder(*reversed(s.loops("C"))), s.merge(s.loops("C")[0], s.loops("Y")[0])),
    ),
    "merge-order: terms before the initialisation": (
        moments(4, 6),
        _terms_before_the_initialisation,
    ),
    "merge-order: a shared row": (
        blur(4, 4),
        lambda s: (
            s.loop_partition(s.loops("R")[0], (4,)),
            s.reorder(*reversed(s.loops("R_part1"))),
            s.merge(s.loops("R_part1")[0], s.loops("Y")[0]),
        ),
    ),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_merge.txt", refusals(CASES))
