"""schedule/primitives/loops/loops.py: split, fuse, reorder: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...programs import body_of, matmul, matmul_relu, refusals, scheduled


def double(n: int) -> PrimFunc:
    """B = 2 A."""
    a = te.placeholder((n,), "float32", name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    return te.func(a, b, name="double")


def split(sch: Schedule, *factors: int | None, tail: str = "guard") -> None:
    sch.split(sch.loops("B")[0], factors, tail=tail)  # type: ignore[arg-type]


KINDS: tuple[tuple[str, int], ...] = (("parallel", 0), ("vectorize", -1), ("unroll", -1))


# -- split -----------------------------------------------------------------------------------------


def test_split_makes_nested_loops_whose_digits_are_the_old_index() -> None:
    sch = scheduled(double(12), lambda s: split(s, 3, None))
    assert body_of(sch) == (
        "for i_0 in range(3):\n"
        "    for i_1 in range(4):\n"
        '        with block("B", vi=spatial(12, i_0 * 4 + i_1)):\n'
        "            B[vi] = A[vi] * 2.0"
    )


@pytest.mark.parametrize("tail", ["guard", "partition", "mask"])
def test_split_guards_and_marks_when_the_factors_do_not_divide(tail: str) -> None:
    sch = scheduled(double(13), lambda s: split(s, None, 4, tail=tail))
    assert body_of(sch) == (
        f'for i_0 in range(4, tail="{tail}"):\n'
        "    for i_1 in range(4):\n"
        '        with block("B", vi=spatial(13, i_0 * 4 + i_1)):\n'
        "            where(i_0 * 4 + i_1 < 13)\n"
        "            B[vi] = A[vi] * 2.0"
    )


@pytest.mark.parametrize(("kind", "heir"), KINDS)
@pytest.mark.parametrize("factors", [(None, 4), (3, None), (2, None, 3)])
def test_a_part_of_a_loop_takes_over_its_kind(
    kind: str, heir: int, factors: tuple[int | None, ...]
) -> None:
    def before(sch: Schedule) -> None:
        getattr(sch, kind)(sch.loops("B")[0])
        split(sch, *factors, tail="mask")

    def after(sch: Schedule) -> None:
        split(sch, *factors, tail="mask")
        getattr(sch, kind)(sch.loops("B")[heir])

    sch = scheduled(double(13), before)
    assert body_of(sch) == body_of(Schedule(double(13)).apply(after))
    assert tw.prove(sch, "c:avx512").status == "proved"


@pytest.mark.parametrize(
    ("extent", "factors"),
    [(1, (None, 8)), (13, (2, None, 3)), (13, (13, 1, None)), (7, (4, 4)), (6, (6,)), (5, (None,))],
)
def test_split_covers_the_extent_whatever_the_factors(
    extent: int, factors: tuple[int | None, ...]
) -> None:
    scheduled(double(extent), lambda s: split(s, *factors, tail="partition"))


def test_split_twice_keeps_both_guards() -> None:
    def steps(sch: Schedule) -> None:
        outer, _ = sch.split(sch.loops("B")[0], (None, 3), tail="mask")
        sch.split(outer, (None, 2), tail="guard")

    sch = scheduled(double(13), steps)
    assert "where((i_0_0 * 2 + i_0_1) * 3 + i_1 < 13 and i_0_0 * 2 + i_0_1 < 5)" in body_of(sch)


def test_split_of_a_loop_that_never_runs_works() -> None:
    scheduled(double(0), lambda s: split(s, None, 4))


# -- fuse ------------------------------------------------------------------------------------------


def test_fuse_makes_one_loop_and_its_digits() -> None:
    sch = scheduled(matmul(3, 5, 2), lambda s: s.fuse(*s.loops("C")[:2]))
    assert body_of(sch) == (
        "for i_j in range(15):\n"
        "    for k in range(2):\n"
        '        with block("C", vi=spatial(3, i_j // 5), vj=spatial(5, i_j % 5), '
        "vk=reduce(2, k)):\n"
        "            with init():\n"
        "                C[vi, vj] = 0.0\n"
        "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"
    )


def test_fuse_of_split_loops_keeps_the_tail_and_the_values() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i0, i1 = sch.split(i, (None, 2), tail="partition")
        sch.reorder(i0, j, i1, k)
        sch.fuse(i0, j)

    assert 'range(10, tail="partition")' in body_of(scheduled(matmul(3, 5, 2), steps))


@pytest.mark.parametrize("shape", [(0, 5, 2), (3, 0, 2), (1, 1, 1), (3, 1, 4)])
def test_fuse_works_on_loops_that_run_once_or_never(shape: tuple[int, int, int]) -> None:
    scheduled(matmul(*shape), lambda s: s.fuse(*s.loops("C")[:2]))


def test_fuse_of_one_loop_is_that_loop() -> None:
    sch = scheduled(double(4), lambda s: s.fuse(s.loops("B")[0]))
    assert body_of(sch) == body_of(Schedule(double(4)))


# -- reorder ---------------------------------------------------------------------------------------


def test_reorder_puts_loops_in_the_given_order_and_leaves_the_others_in_place() -> None:
    def steps(sch: Schedule) -> None:
        i, _, k = sch.loops("C")
        sch.reorder(k, i)

    sch = scheduled(matmul(3, 5, 2), steps)
    heads = [line.strip() for line in body_of(sch).splitlines() if "for " in line]
    assert heads == ["for k in range(2):", "for j in range(5):", "for i in range(3):"]


def test_reorder_of_no_loop_and_of_one_changes_nothing() -> None:
    before = body_of(Schedule(matmul(3, 5, 2)))
    assert body_of(scheduled(matmul(3, 5, 2), lambda s: s.reorder())) == before
    assert body_of(scheduled(matmul(3, 5, 2), lambda s: s.reorder(s.loops("C")[1]))) == before


# -- add_unit_loop ---------------------------------------------------------------------------------


def test_add_unit_loop_gives_a_single_element_a_loop_to_stand_at() -> None:
    x = te.placeholder((6,), "float32", name="X")
    k = te.reduce_axis(6, name="k")
    y = te.compute((), lambda: te.sum(x[k], axis=k), name="Y")
    z = te.compute((), lambda: y[()] * 2.0, name="Z")

    def steps(sch: Schedule) -> None:
        assert not sch.loops("Z")
        unit = sch.add_unit_loop("Z")
        assert sch.extent(unit) == 1
        sch.compute_at("Y", unit)

    assert body_of(scheduled(te.func(x, z, name="total"), steps)) == (
        'Y = alloc(float32[()], "global")\n'
        "for Z_unit in range(1):\n"
        "    for k in range(6):\n"
        '        with block("Y", vk=reduce(6, k)):\n'
        "            with init():\n"
        "                Y[()] = 0.0\n"
        "            Y[()] = Y[()] + X[vk]\n"
        '    with block("Z"):\n'
        "        Z[()] = Y[()] * 2.0"
    )


# -- refusals --------------------------------------------------------------------------------------


def _stage_then_split(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    sch.stage("C", "C", i, "register")
    sch.split(j, (None, 2))


def _stage_then_reorder(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.stage("C", "C", i, "register")
    sch.reorder(k, j)


def _parallel_inside(sch: Schedule) -> None:
    i, j, _ = sch.loops("C")
    sch.parallel(i)
    sch.reorder(j, i)


def _vectorized_outside(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.vectorize(j)
    sch.reorder(j, i)


def _beside(sch: Schedule) -> None:
    i, _, k = sch.loops("C")
    sch.decompose_reduction("C", k)
    sch.reorder(i, k)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "split-factors: two are None": (double(8), lambda s: split(s, None, None)),
    "split-factors: none": (double(8), lambda s: split(s)),
    "split-factors: zero": (double(8), lambda s: split(s, 0, 8)),
    "split-cover": (double(8), lambda s: split(s, 3, 2)),
    "split-tail": (double(8), lambda s: split(s, None, 2, tail="peel")),
    "loop-kind": (double(8), lambda s: (s.blockize(s.loops("B")[0]), split(s, None, 2))),
    "stage-mirrored": (matmul(2, 3, 2), _stage_then_split),
    "stage-mirrored: reorder": (matmul(2, 3, 2), _stage_then_reorder),
    "fuse-nested": (matmul(2, 3, 2), lambda s: s.fuse(s.loops("C")[0], s.loops("C")[2])),
    "fuse-none": (matmul(2, 3, 2), lambda s: s.fuse()),
    "fuse-mixed": (matmul(2, 3, 2), lambda s: s.fuse(*s.loops("C")[1:])),
    "reorder-twice": (
        matmul(2, 3, 2),
        lambda s: s.reorder(s.loops("C")[0], s.loops("C")[1], s.loops("C")[0]),
    ),
    "reorder-chain": (matmul(2, 3, 2), _beside),
    "reorder-chain: two nests": (
        matmul_relu(2, 3, 2),
        lambda s: s.reorder(s.loops("C")[0], s.loops("Y")[0]),
    ),
    "reorder-kind: parallel": (matmul(2, 3, 2), _parallel_inside),
    "reorder-kind: vectorized": (matmul(2, 3, 2), _vectorized_outside),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_loops.txt", refusals(CASES))
