"""schedule/primitives/storage/swizzle.py: text, values, proof, replay, banks, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda.emulator.emulated_code import EmulatedCode
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal

from ...programs import assert_meaning_kept, body_of, refusals, scheduled

A100 = Target.parse("cuda:sm_80")
Steps = Callable[[Schedule], object]


def turned(n: int) -> PrimFunc:
    """Y[i, j] = 2 X[j, i]."""
    x = te.placeholder((n, n), "float32", name="X")
    return te.func(x, te.compute((n, n), lambda i, j: x[j, i] * 2.0, name="Y"), name="turned")


def through_shared_memory(*, swizzled: bool) -> Steps:
    """All of X in shared memory, stored by rows and read by columns of pieces of four."""

    def steps(sch: Schedule) -> None:
        copy = sch.cache_read("Y", "X")
        i, j = sch.loops("Y")
        one = sch.add_unit_loop("Y")
        sch.reorder(one, i, j)
        sch.bind(one, "blockIdx.x")
        for loop, lanes in ((sch.fuse(*sch.compute_at(copy, one)), 32), (sch.fuse(i, j), 32)):
            _, thread = sch.split(loop, (None, lanes))
            sch.bind(thread, "threadIdx.x")
        sch.set_scope(copy, "shared")
        if swizzled:
            sch.swizzle(copy)

    return steps


def test_only_where_elements_lie_is_another_place() -> None:
    plain, swizzled = (
        scheduled(turned(16), through_shared_memory(swizzled=which)) for which in (False, True)
    )
    text = body_of(swizzled)
    assert 'alloc(float32[16, 16], "shared", swizzle=True)' in text
    assert text.replace(", swizzle=True", "") == body_of(plain)
    assert not equal(swizzled.func, plain.func)
    assert equal(parse(str(swizzled.func)), swizzled.func)
    assert_meaning_kept(swizzled)
    assert tw.prove(swizzled, A100).status == "proved"


@pytest.mark.needs_cxx
def test_columns_meet_fewer_banks_twice() -> None:
    x = np.random.default_rng(0).random((32, 32), np.float32)
    degrees = []
    for which in (False, True):
        sch = Schedule(turned(32), A100).apply(through_shared_memory(swizzled=which))
        kernel = tw.build(sch, A100)
        assert ("tw_swizzled<2, 5, 7>(" in kernel.source) == which
        emulated = tw.emulated(kernel, checked=True)
        np.testing.assert_array_equal(emulated(x), 2 * x.T)
        assert isinstance(emulated.code, EmulatedCode)
        sites = emulated.code.report.sites
        degrees.append(max(site.bank_conflict_degree for site in sites if site.space == "shared"))
    assert degrees == [32, 4]


def test_rows_that_are_no_power_of_two_of_pieces_are_refused() -> None:
    sch = Schedule(turned(24), A100).apply(through_shared_memory(swizzled=True))
    with pytest.raises(TargetError) as caught:
        tw.build(sch, A100)
    assert str(caught.value) == (
        "TargetError: cuda: rows of 'X_cache' have 24 elements of 4 bytes; expected a power of two "
        "of pieces of 16 bytes, two or more, where they are swizzled. [cuda-swizzle]\n"
        "  Hint: storage_align leaves room between rows of any length."
    )


def test_what_threads_do_not_share_is_not_swizzled() -> None:
    def steps(sch: Schedule) -> None:
        through_shared_memory(swizzled=True)(sch)
        sch.set_scope("X_cache", "global")

    assert "swizzle" not in body_of(scheduled(turned(16), steps))


def aligned(sch: Schedule, *, first: bool) -> None:
    through_shared_memory(swizzled=not first)(sch)
    sch.storage_align("X_cache", 0, 32, 4)
    sch.swizzle("X_cache")


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "swizzle-scope": (
        turned(16),
        lambda s: s.swizzle(s.cache_read("Y", "X")),
    ),
    "swizzle-aligned": (turned(16), lambda s: aligned(s, first=True)),
    "align-storage: swizzled": (turned(16), lambda s: aligned(s, first=False)),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_swizzle.txt", refusals(CASES))
