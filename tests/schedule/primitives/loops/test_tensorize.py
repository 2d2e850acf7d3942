"""schedule/primitives/loops/tensorize.py and schedule/legality/tensorized.py: blockize, tensorize:
text, values, proof, replay, refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.estimate import estimate
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal
from tilewright.tir.text.printer import print_stmt

from ...programs import assert_meaning_kept, body_of, matmul, refusals, scheduled

VNNI = Target.parse("c:avx512+vnni")
BF16 = Target.parse("c:avx512+bf16")


def dots(
    m: int, n: int, k: int, a_type: str = "uint8", b_type: str = "int8", total: str = "int32"
) -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[j, k], in the type `total`."""
    a = te.placeholder((m, k), a_type, name="A")
    b = te.placeholder((n, k), b_type, name="B")
    q = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(te.cast(a[i, q], total) * te.cast(b[j, q], total), axis=q),
        name="C",
    )
    return te.func(a, b, c, name="dots")


def half_dots(m: int, n: int, k: int, a_type: str = "bfloat16") -> PrimFunc:
    """The same of bfloat16, in float32."""
    return dots(m, n, k, a_type, "bfloat16", "float32")


def pieces(sch: Schedule, lanes: int = 8, points: int = 4) -> LoopRef:
    """Some reduction points inside of the lanes of C. Returns the loop of lanes."""
    sch.cache_read("C", "B", name="B_packed")
    sch.transform_layout("B_packed", lambda j, k: (j // lanes, k // points, j % lanes, k % points))
    i, j, k = sch.loops("C")
    j, lane = sch.split(j, (None, lanes))
    k, point = sch.split(k, (None, points))
    sch.reorder(i, j, k, lane, point)
    return lane


def tensorized(sch: Schedule) -> None:
    sch.tensorize(pieces(sch), "vpdpbusd")


def in_pairs(sch: Schedule) -> None:
    sch.tensorize(pieces(sch, points=2), "vdpbf16ps")


def test_a_tensorized_nest_keeps_its_loops() -> None:
    sch = scheduled(dots(2, 8, 8), tensorized)
    nest = body_of(sch).splitlines()[8:]
    assert "\n".join(nest) == (
        "    for j_0 in range(1):\n"
        "        for k_0 in range(2):\n"
        '            for j_1 in tensorized(8, intrinsic="vpdpbusd"):\n'
        "                for k_1 in range(4):\n"
        '                    with block("C", vi=spatial(2, i), vj=spatial(8, j_0 * 8 + j_1), '
        "vk=reduce(8, k_0 * 4 + k_1)):\n"
        "                        with init():\n"
        "                            C[vi, vj] = int32(0)\n"
        '                        C[vi, vj] = C[vi, vj] + cast(A[vi, vk], "int32") * '
        'cast(B_packed[vj // 8, vk // 4, vj % 8, vk % 4], "int32")'
    )
    assert equal(parse(str(sch.func)), sch.func)
    assert sch.steps[-1] == 'tensorize(j_1, intrinsic="vpdpbusd")'


def test_its_nest_is_proved_like_plain_loops() -> None:
    sch = Schedule(dots(3, 16, 8), VNNI).apply(tensorized)
    assert tw.prove(sch, VNNI).status == "proved"
    sch = Schedule(half_dots(3, 16, 8), BF16).apply(in_pairs)
    assert tw.prove(sch, BF16).status == "proved"


def test_pairs_of_bfloat16_are_the_plain_sum_of_products() -> None:
    text = body_of(scheduled(half_dots(2, 8, 8), in_pairs))
    assert text.partition("for k_0 in range(4):\n")[2] == (
        '            for j_1 in tensorized(8, intrinsic="vdpbf16ps"):\n'
        "                for k_1 in range(2):\n"
        '                    with block("C", vi=spatial(2, i), vj=spatial(8, j_0 * 8 + j_1), '
        "vk=reduce(8, k_0 * 2 + k_1)):\n"
        "                        with init():\n"
        "                            C[vi, vj] = 0.0\n"
        '                        C[vi, vj] = C[vi, vj] + cast(A[vi, vk], "float32") * '
        'cast(B_packed[vj // 8, vk // 2, vj % 8, vk % 2], "float32")'
    )


def test_initialisation_and_copies_become_vectors_along_the_lanes() -> None:
    def steps(sch: Schedule) -> None:
        tensorized(sch)
        sch.decompose_reduction("C", sch.loops("C")[2])
        sch.stage("C", "C", sch.loops("C")[2], "register")

    text = body_of(scheduled(dots(2, 8, 8), steps))
    assert text.count("for j_1 in vectorized(8):") == 3  # initialised, copied in and out
    assert text.count("tensorized") == 1


def test_operands_come_in_any_order_and_either_may_be_shared_by_the_lanes() -> None:
    a = te.placeholder((8, 8), "uint8", name="A")
    b = te.placeholder((3, 8), "int8", name="B")
    q = te.reduce_axis(8, name="k")
    c = te.compute(
        (3, 8),
        lambda i, j: te.sum(te.cast(b[i, q], "int32") * te.cast(a[j, q], "int32"), axis=q),
        name="C",
    )

    def steps(sch: Schedule) -> None:
        sch.cache_read("C", "A", name="A_packed")
        sch.transform_layout("A_packed", lambda j, k: (k // 4, j, k % 4))
        i, lane, k = sch.loops("C")
        k, point = sch.split(k, (None, 4))
        sch.reorder(i, k, lane, point)
        sch.tensorize(lane, "vpdpbusd")

    scheduled(te.func(a, b, c, name="swapped"), steps)


def test_a_guard_outside_of_the_lanes_stays() -> None:
    def steps(sch: Schedule) -> None:
        tensorized(sch)
        i, *_ = sch.loops("C")
        sch.split(i, (None, 2), tail="guard")

    sch = scheduled(dots(3, 8, 8), steps)
    assert "tensorized" in str(assert_meaning_kept(sch))


def test_a_part_of_a_loop_is_tensorized_too() -> None:
    def steps(sch: Schedule) -> None:
        tensorized(sch)
        sch.loop_partition(sch.loops("C")[0], (1,))

    assert body_of(scheduled(dots(3, 8, 8), steps)).count("tensorized") == 2


def test_the_initialisation_stands_before_the_nest_that_holds_all_of_a_reduction() -> None:
    def steps(sch: Schedule) -> None:
        _, lane, _ = sch.loops("C")
        sch.tensorize(lane, "vpdpbusd")

    nest = assert_meaning_kept(scheduled(dots(2, 8, 4), steps))
    assert print_stmt(nest.body).splitlines()[:4] == [
        "for i in range(2):",
        "    for j in vectorized(8):",
        '        with block("C_init", vi=spatial(2, i), vj=spatial(8, j), init="C"):',
        "            C[vi, vj] = int32(0)",
    ]


def test_it_does_so_too_where_a_stage_is_further_in_than_the_reduction() -> None:
    def steps(sch: Schedule) -> None:
        tensorized(sch)
        sch.stage("C", "C", sch.loops("C")[2], "thread")

    sch = Schedule(dots(2, 8, 8)).apply(steps)
    assert tw.prove(sch, VNNI).status == "proved"
    nest = str(assert_meaning_kept(sch))
    assert "C_init" not in nest.partition("tensorized")[2].partition("C_local_out")[0]


def test_a_block_may_be_inlined_into_a_unit() -> None:
    def steps(sch: Schedule) -> None:
        sch.blockize(sch.loops("Y")[1])
        sch.compute_inline("R")

    x = te.placeholder((4, 4), "float32", name="X")
    r = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="R")
    y = te.compute((4, 4), lambda i, j: r[i, j] * 2.0, name="Y")
    text = body_of(scheduled(te.func(x, y, name="f"), steps))
    assert text.splitlines()[1] == "    for j in blockized(4):"


def test_a_blockized_nest_runs_as_loops_and_its_copies_are_plain() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        sch.reorder(k, i, j)
        sch.blockize(j)
        sch.stage("C", "C", i, "thread")

    sch = scheduled(matmul(3, 4, 2), steps)
    assert body_of(sch).count("blockized") == 1
    assert "blockized" not in str(assert_meaning_kept(sch))


def test_a_blockized_nest_may_be_tensorized() -> None:
    def steps(sch: Schedule) -> None:
        lane = pieces(sch)
        sch.blockize(lane)
        sch.tensorize(lane, "vpdpbusd")

    scheduled(dots(2, 8, 8), steps)


def test_an_instruction_is_priced_as_one() -> None:
    plain = Schedule(dots(64, 64, 64)).apply(lambda s: pieces(s, 16))
    fast = Schedule(dots(64, 64, 64)).apply(lambda s: s.tensorize(pieces(s, 16), "vpdpbusd"))
    assert estimate(fast, VNNI) < estimate(plain, VNNI) / 8


# -- refusals --------------------------------------------------------------------------------------


def with_unit(then: Callable[[Schedule], object]) -> Callable[[Schedule], object]:
    return lambda sch: (tensorized(sch), then(sch))


def guarded(sch: Schedule) -> None:
    sch.cache_read("C", "B", name="B_packed")
    sch.pad("B_packed", (8, 4))
    sch.transform_layout("B_packed", lambda j, k: (j // 8, k // 4, j % 8, k % 4))
    i, j, k = sch.loops("C")
    j, lane = sch.split(j, (None, 8))
    k, point = sch.split(k, (None, 4))
    sch.reorder(i, j, k, lane, point)
    sch.tensorize(lane, "vpdpbusd")


def unpacked(sch: Schedule) -> None:
    i, lane, k = sch.loops("C")
    k, point = sch.split(k, (None, 4))
    sch.reorder(i, k, lane, point)
    sch.tensorize(lane, "vpdpbusd")


def columns_apart(sch: Schedule) -> None:
    sch.cache_read("C", "B", name="B_packed")
    sch.transform_layout("B_packed", lambda j, k: (k, j))
    i, lane, k = sch.loops("C")
    k, point = sch.split(k, (None, 2))
    sch.reorder(i, k, lane, point)
    sch.tensorize(lane, "vdpbf16ps")


def two_blocks(sch: Schedule) -> None:
    i, _ = sch.loops("Y")
    sch.compute_at("R", i)
    sch.blockize(i)


def chain() -> PrimFunc:
    x = te.placeholder((4, 4), "float32", name="X")
    r = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="R")
    return te.func(x, te.compute((4, 4), lambda i, j: r[i, j] * 2.0, name="Y"), name="chain")


def laid_out(m: int, n: int, k: int) -> PrimFunc:
    """dots, B laid out in fours of reduction points."""
    a = te.placeholder((m, k), "uint8", name="A")
    b = te.placeholder((-(-k // 4), n, 4), "int8", name="B")
    q = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            te.cast(a[i, q], "int32") * te.cast(b[q // 4, j, q % 4], "int32"), axis=q
        ),
        name="C",
    )
    return te.func(a, b, c, name="laid_out")


def with_tails(
    sch: Schedule, points: int, *, swapped: bool = False, unrolled: bool = False
) -> None:
    """Sixteen lanes of C, and k by so many `points` and by four, each loop cut at its tail;
    swapped: the loop over fours stands outside of the one that it was cut from.
    """
    i, j, k = sch.loops("C")
    j, lane = sch.split(j, (None, 16), tail="mask")
    k, four = sch.split(k, (None, points), tail="mask")
    four, point = sch.split(four, (None, 4), tail="mask")
    sch.reorder(i, j, *((four, k) if swapped else (k, four)), lane, point)
    if unrolled:
        sch.unroll(four)
    sch.tensorize(lane, "vpdpbusd")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "steps",
    [
        lambda s: with_tails(s, 4),
        lambda s: with_tails(s, 8),
        lambda s: with_tails(s, 8, swapped=True, unrolled=True),
    ],
    ids=["one cut", "a cut in a cut", "a cut below an unrolled loop"],
)
def test_a_tail_that_is_cut_reaches_the_instruction_as_a_number(
    steps: Callable[[Schedule], object],
) -> None:
    sch = scheduled(laid_out(3, 20, 9), steps)
    assert "tensorized" in str(assert_meaning_kept(sch))
    tw.build(sch, VNNI)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "tensorize-intrinsic": (
        dots(2, 8, 8),
        lambda s: s.tensorize(pieces(s), "vpdpbssd"),
    ),
    "tensorize-match: loops": (
        dots(2, 8, 8),
        lambda s: (pieces(s), s.tensorize(s.loops("C")[2], "vpdpbusd")),
    ),
    "tensorize-match: types": (dots(2, 8, 8, "int8", "int8"), tensorized),
    "tensorize-match: neighbours": (dots(2, 8, 8), unpacked),
    "tensorize-match: fours for pairs": (
        half_dots(2, 8, 8),
        lambda s: s.tensorize(pieces(s), "vdpbf16ps"),
    ),
    "tensorize-match: another half": (half_dots(2, 8, 8, "float16"), in_pairs),
    "tensorize-match: pairs in another type": (
        dots(2, 8, 8, "bfloat16", "bfloat16", "float64"),
        in_pairs,
    ),
    "tensorize-match: pairs that lie apart": (half_dots(2, 8, 8), columns_apart),
    "tensorize-guard": (dots(2, 6, 8), guarded),
    "tensorize-guard: a tail of a fused loop": (
        laid_out(3, 20, 9),
        lambda s: (with_tails(s, 4), s.fuse(*s.loops("C")[:2])),
    ),
    "tensorize-guard: a cut that leaves the loop around it open": (
        laid_out(3, 20, 9),
        lambda s: with_tails(s, 8, swapped=True),
    ),
    "unit-block": (chain(), two_blocks),
    "unit-changed: a loop inside": (dots(2, 8, 8), with_unit(lambda s: s.unroll(_inner(s)))),
    "tensorize-match: another layout": (
        dots(2, 8, 8),
        with_unit(lambda s: s.transform_layout("B_packed", lambda a, b, c, d: (a, c, b, d))),
    ),
    "tensorize-match: registers": (
        dots(2, 8, 8),
        with_unit(lambda s: s.stage("C", "A", s.loops("C")[2], "register")),
    ),
    "unit-changed: storage inside": (
        dots(2, 8, 8),
        with_unit(lambda s: s.stage("C", "A", s.loops("C")[3], "thread")),
    ),
    "loop-kind": (dots(2, 8, 8), with_unit(lambda s: s.vectorize(s.loops("C")[3]))),
}


def _inner(sch: Schedule) -> LoopRef:
    return sch.loops("C")[-1]


def test_each_refusal_says_what_differs(golden: Callable[[str, str], None]) -> None:
    golden("errors/schedule_units.txt", refusals(CASES))


@pytest.mark.parametrize(
    ("func", "steps", "lacking", "name", "expected"),
    [
        (dots(2, 8, 8), tensorized, "c:avx512", "vpdpbusd", "c:avx512+vnni or c:avx2+vnni"),
        (half_dots(2, 8, 8), in_pairs, "c:avx512+vnni", "vdpbf16ps", "c:avx512+bf16"),
        (half_dots(2, 8, 8), in_pairs, "c:avx2", "vdpbf16ps", "c:avx512+bf16"),
    ],
)
def test_a_target_without_the_instruction_is_refused_at_the_step(
    func: PrimFunc, steps: Callable[[Schedule], object], lacking: str, name: str, expected: str
) -> None:
    sch = Schedule(func, Target.parse(lacking))
    with pytest.raises(ScheduleError) as caught:
        sch.apply(steps)
    first, *_, last = str(caught.value).splitlines()
    assert first == (
        f"ScheduleError: tensorize: target '{lacking}' lacks '{name}'; expected {expected}. "
        "[tensorize-target]"
    )
    assert last == (
        "  Hint: a Target names features of the machine; without them, vectorize the loop."
    )


def test_more_lanes_than_a_register_holds_are_refused_at_the_step() -> None:
    sch = Schedule(dots(2, 16, 8), Target.parse("c:avx2+vnni"))
    lane = pieces(sch, 16)
    with pytest.raises(ScheduleError) as caught:
        sch.tensorize(lane, "vpdpbusd")
    assert str(caught.value).splitlines()[0] == (
        "ScheduleError: tensorize: the nest of loop 'j_1' is not 'vpdpbusd': its loops are 'j_1' "
        "of 16, 'k_1' of 4; expected a loop of 8 or 4 lanes and, directly inside, one of 4 "
        "reduction points. [tensorize-match]"
    )
