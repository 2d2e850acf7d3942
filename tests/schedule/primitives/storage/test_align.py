"""schedule/primitives/storage/align.py: text, storage, addresses, values, proof, replay,
refusals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt

from ...programs import assert_meaning_kept, blur, body_of, chain, matmul, refusals, scheduled

AVX512 = Target.parse("c:avx512")


def turned(m: int, n: int) -> PrimFunc:
    """Y is the transpose of P = 2 X."""
    x = te.placeholder((m, n), "float32", name="X")
    p = te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="P")
    return te.func(x, te.compute((n, m), lambda i, j: p[j, i], name="Y"), name="turned")


def apart(sch: Schedule) -> None:
    sch.storage_align("P", axis=0, factor=16, offset=5)


def staged(sch: Schedule) -> None:
    """The tile of B that a tile of C reads, its rows 9 elements apart."""
    i, j, k = sch.loops("C")
    j, jj = sch.split(j, (None, 8), tail="mask")
    sch.reorder(j, k, i, jj)
    sch.stage("C", "B", j, "thread")
    sch.storage_align("B_local", axis=0, factor=3)


def test_the_allocation_says_how_far_apart_rows_lie() -> None:
    sch = scheduled(turned(3, 4), apart)
    assert body_of(sch) == (
        'P = alloc(float32[3, 4], "global", align={0: (16, 5)})\n'
        "for i in range(3):\n"
        "    for j in range(4):\n"
        '        with block("P", vi=spatial(3, i), vj=spatial(4, j)):\n'
        "            P[vi, vj] = X[vi, vj] * 2.0\n"
        "for i in range(4):\n"
        "    for j in range(3):\n"
        '        with block("Y", vi=spatial(4, i), vj=spatial(3, j)):\n'
        "            Y[vi, vj] = P[vj, vi]"
    )
    assert str(parse(str(sch.func))) == str(sch.func)
    assert sch.steps == ('storage_align("P", axis=0, factor=16, offset=5)',)
    assert tw.prove(sch, AVX512).status == "proved"


@pytest.mark.parametrize("target", ["c:scalar", "c:avx2", "c:avx512"])
def test_generated_code_goes_by_the_stride(target: str) -> None:
    def steps(sch: Schedule) -> None:
        apart(sch)
        sch.vectorize(sch.split(sch.loops("P")[1], (None, 8), tail="mask")[1])

    artifact = tw.build(
        scheduled(turned(3, 40), steps), Target.parse(target), verify="off"
    ).artifact
    assert "P[j * 53 + i]" in artifact.source
    assert artifact.workspace_bytes >= 3 * 53 * 4


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("steps", [apart, lambda sch: None])
def test_c_gives_the_same_numbers(steps: Callable[[Schedule], object]) -> None:
    x = np.random.default_rng(0).standard_normal((37, 64), dtype=np.float32)
    kernel = tw.build(Schedule(turned(37, 64)).apply(steps))
    np.testing.assert_array_equal(kernel(x), 2 * x.T)


def test_a_staged_copy_is_aligned_and_its_tensor_is_not() -> None:
    sch = scheduled(matmul(4, 20, 6), staged)
    assert sch.steps[-1] == 'storage_align("B_local", axis=0, factor=3, offset=0)'
    lines = [line.strip() for line in body_of(sch).splitlines() if "alloc" in line]
    assert lines == ['B_local = alloc(float32[6, 20], "thread", origin=B, align={0: (3, 0)})']
    assert tw.prove(sch, AVX512).status == "proved"


def test_the_tensor_of_a_staged_copy_may_be_aligned_after_it() -> None:
    def steps(sch: Schedule) -> None:
        sch.stage("Y", "P", sch.loops("Y")[0], "thread")
        apart(sch)

    sch = scheduled(turned(3, 4), steps)
    tensor, copy = sch.func.allocations
    assert copy.origin is tensor
    assert tw.prove(sch, AVX512).status == "proved"


def test_the_stride_is_that_of_the_storage_which_folding_leaves() -> None:
    nest = assert_meaning_kept(Schedule(matmul(4, 24, 6)).apply(staged))
    assert [(b.shape, b.strides) for b in nest.allocations] == [((6, 8), (9, 1))]


@pytest.mark.isa
@pytest.mark.needs_cc
def test_a_staged_copy_gives_the_same_numbers_in_c() -> None:
    a = np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32)
    b = np.random.default_rng(1).standard_normal((6, 20), dtype=np.float32)
    kernel = tw.build(Schedule(matmul(4, 20, 6)).apply(staged))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5, atol=1e-6)


def test_aligned_storage_is_not_shared_with_the_reader() -> None:
    nest = assert_meaning_kept(scheduled(chain(3, 4), lambda s: s.storage_align("Q", 0, 8)))
    assert [(b.name, b.strides) for b in nest.allocations] == [("Q", (8, 1))]


def test_a_rolling_window_keeps_its_alignment() -> None:
    def steps(sch: Schedule) -> None:
        y, _ = sch.loops("Y")
        sch.compute_at("R", y)
        sch.rolling_buffer("R", y)
        sch.storage_align("R", 0, 8, 1)

    nest = assert_meaning_kept(scheduled(blur(8, 3), steps))
    assert [(b.shape, b.strides) for b in nest.allocations] == [((2, 3), (9, 1))]


def test_the_last_word_on_an_axis_counts() -> None:
    def steps(sch: Schedule) -> None:
        apart(sch)
        sch.storage_align("P", 0, 6)

    assert 'P = alloc(float32[3, 4], "global", align={0: (6, 0)})' in body_of(
        scheduled(turned(3, 4), steps)
    )


@pytest.mark.parametrize(
    "later",
    [
        lambda sch: sch.transform_layout("P", lambda i, j: (j, i)),
        lambda sch: sch.pad("P", (2, 8)),
        lambda sch: (
            sch.compute_at("P", sch.loops("Y")[1]),
            sch.set_scope("P", "register"),
        ),
        lambda sch: sch.stage("Y", "P", sch.loops("Y")[0], "thread"),
    ],
)
def test_another_form_of_the_tensor_begins_without_it(later: Callable[[Schedule], object]) -> None:
    def steps(sch: Schedule) -> None:
        apart(sch)
        later(sch)

    text = print_stmt(scheduled(turned(3, 4), steps).func.body)
    made = [line for line in text.splitlines() if "alloc" in line]
    assert "align" not in made[-1]


# -- refusals --------------------------------------------------------------------------------------


def _packed(sch: Schedule) -> None:
    sch.storage_align(sch.cache_read("C", "B"), 0, 16, 1)


def _in_registers(sch: Schedule) -> None:
    sch.compute_at("P", sch.loops("Y")[1])
    sch.set_scope("P", "register")
    apart(sch)


def _vector() -> PrimFunc:
    x = te.placeholder((4,), "float32", name="X")
    p = te.compute((4,), lambda i: x[i] * 2.0, name="P")
    return te.func(x, te.compute((4,), lambda i: p[3 - i], name="Y"), name="mirrored")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "no-tensor": (turned(3, 4), lambda s: s.storage_align("Q", 0, 16)),
    "align-storage: parameter": (turned(3, 4), lambda s: s.storage_align("X", 0, 16)),
    "align-storage: registers": (turned(3, 4), _in_registers),
    "align-storage: of constants": (matmul(2, 3, 4, constant=True), _packed),
    "align-axis: the last one": (turned(3, 4), lambda s: s.storage_align("P", 1, 16)),
    "align-axis: negative": (turned(3, 4), lambda s: s.storage_align("P", -2, 16)),
    "align-axis: of a vector": (_vector(), apart),
    "align-factor: 0": (turned(3, 4), lambda s: s.storage_align("P", 0, 0)),
    "align-factor: offset": (turned(3, 4), lambda s: s.storage_align("P", 0, 16, 16)),
    "align-factor: no number": (turned(3, 4), lambda s: s.storage_align("P", 0, 1.5)),  # type: ignore[arg-type]
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_align.txt", refusals(CASES))


def test_what_depends_on_an_input_beside_constants_is_no_constant() -> None:
    sch = Schedule(matmul(2, 3, 4, constant=True))
    sch.storage_align(sch.cache_read("C", "A"), 0, 16, 1)
    with pytest.raises(ScheduleError, match="align-storage"):
        _packed(sch)
