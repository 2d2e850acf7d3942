"""schedule/legality/dependence.py: what a reorder leaves complete for its readers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc

from ..programs import blur, body_of, matmul_relu, scheduled


def _brought_by_copies(sch: Schedule) -> None:
    """What the reader takes is what copies out of a register bring."""
    outer, inner = sch.split(sch.loops("C")[2], (None, 2))
    sch.stage("C", "C", inner, "register")
    sch.reverse_compute_at("Y", outer, at="last")
    sch.reorder(*reversed(sch.split(outer, (2, None))))


def _in_a_register(sch: Schedule) -> None:
    """Each iteration has a register of its own, which goes on from the one before."""
    k = sch.loops("C")[2]
    sch.reverse_compute_at("Y", k, at="last")
    sch.stage("C", "C", k, "register")
    sch.reorder(*reversed(sch.split(k, (2, None))))


def _read_by_a_copy(sch: Schedule) -> None:
    """The rows of a rolling window, which the reader takes from a copy."""
    i, j = sch.loops("Y")
    sch.stage("Y", "R", j, "thread")
    sch.compute_at("R", i)
    sch.rolling_buffer("R", i)
    sch.reorder(*reversed(sch.split(i, (None, 2))))


@pytest.mark.parametrize(
    ("func", "steps", "tensor", "early"),
    [
        (
            matmul_relu(2, 3, 10),
            _brought_by_copies,
            "C",
            "block 'C_reg_out' writes C[0, 0] in iteration (i=0, j=0, k_0_1=2, k_0_0=0, k_1=0), "
            "block 'Y' reads it in iteration (i=0, j=0, k_0_1=1, k_0_0=1, i_1=0, j_1=0)",
        ),
        (
            matmul_relu(2, 3, 5),
            _in_a_register,
            "C_reg",
            "block 'C' writes C[0, 0] in iteration (i=0, j=0, k_1=2, k_0=0), block 'Y' reads it "
            "in iteration (i=0, j=0, k_1=1, k_0=1, i_1=0, j_1=0)",
        ),
        (
            blur(4, 3),
            _read_by_a_copy,
            "R",
            "block 'R' writes R[2, 0] in iteration (i_1=1, i_0=0, i=0, j=0), block 'R_local_in' "
            "reads it in iteration (i_1=0, i_0=1, j=0, R_0=0, R_1=0)",
        ),
    ],
)
def test_what_would_be_read_before_it_is_complete_is_not_reordered(
    func: PrimFunc, steps: Callable[[Schedule], None], tensor: str, early: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        steps(Schedule(func))
    first, *_, note, _ = str(caught.value).splitlines()
    assert first == (
        f"ScheduleError: reorder: '{tensor}' would be read before it is complete; expected its "
        "readers after all of its writers. [reader-early]"
    )
    assert note == f"  Note: {early}."


def test_what_is_computed_again_takes_any_order_with_its_reader() -> None:
    def steps(sch: Schedule) -> None:
        i = sch.loops("Y")[0]
        sch.compute_at("R", i)
        sch.reorder(*reversed(sch.split(i, (None, 2))))

    lines = body_of(scheduled(blur(4, 3), steps)).splitlines()
    assert lines[1:3] == ["for i_1 in range(2):", "    for i_0 in range(2):"]
