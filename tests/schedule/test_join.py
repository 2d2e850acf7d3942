"""Threads that join what a reduction brings: schedules, the proof, strict builds."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.proof import prove
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import Verdict
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .grids import Steps, block_for_each_row, warp_for_each_row
from .programs import farthest, matmul, scheduled

A100 = Target.parse("cuda:sm_80")


def scaled(rows: int, columns: int) -> PrimFunc:
    """Each row over its sum."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    return te.func(x, te.compute((rows, columns), lambda i, j: x[i, j] / s[i], name="Y"), name="f")


PROGRAMS: dict[str, tuple[PrimFunc, Steps]] = {
    "a warp": (scaled(5, 70), warp_for_each_row("S", "Y")),
    "half a warp": (scaled(4, 70), warp_for_each_row("S", "Y", threads=16)),
    "the largest and where it is": (farthest(3, 70), warp_for_each_row("best", "Y")),
    "a block": (scaled(3, 1200), block_for_each_row("S", "Y")),
    "the axis itself": (matmul(2, 3, 8), lambda s: s.bind(s.loops("C")[2], "threadIdx.x")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_stay_and_the_proof_holds(name: str) -> None:
    sch = scheduled(*PROGRAMS[name])
    assert tw.prove(sch, A100).status == "proved"


def nest(name: str) -> tuple[list[str], PrimFunc]:
    func, steps = PROGRAMS[name]
    sch = Schedule(func).apply(steps)
    return str(lower_to_nest(sch.func)).splitlines(), canonical_form(sch.func)


def verdict(lines: list[str], canonical: PrimFunc) -> Verdict:
    return prove(parse("\n".join(lines)), canonical)


def refutations(name: str, old: str, new: str) -> set[str]:
    lines, canonical = nest(name)
    text = "\n".join(lines)
    assert old in text
    found = prove(parse(text.replace(old, new)), canonical)
    assert found.status == "refuted"
    return {failure.property for failure in found.failures}


def test_what_warps_have_joined_is_read_behind_one_barrier() -> None:
    lines, canonical = nest("a block")
    (place,) = [n for n, line in enumerate(lines) if line.strip() == "barrier()"]
    assert verdict(lines, canonical).status == "proved"
    found = verdict(lines[:place] + lines[place + 1 :], canonical)
    assert [str(failure) for failure in found.failures] == [
        "P5: two threads with no barrier between them write and read S_rf_2[3, 0]; "
        "S_rf_2_init(i=2, k_1_0_0=3) and S(i=2, k_1_0_0=3)"
    ]


def test_a_warp_needs_no_barrier() -> None:
    for name in ("a warp", "half a warp", "the largest and where it is"):
        lines, _ = nest(name)
        assert not [line for line in lines if line.strip() == "barrier()"]


def test_a_part_is_brought_by_the_thread_that_has_it() -> None:
    bad = refutations("a warp", "S[vi - i_0 * 2] + S_rf[vk_1,", "S[vi - i_0 * 2] + S_rf[31 - vk_1,")
    assert "P5" in bad


def test_a_group_of_threads_does_not_have_what_one_thread_keeps() -> None:
    """Sixteen threads join parts in registers, while a warp is there."""
    wide = refutations(
        "half a warp",
        'j_1 in bound(16, axis="threadIdx.x")',
        'j_1 in bound(32, axis="threadIdx.x")',
    )
    assert "P5" in wide


def test_what_only_the_first_thread_has_is_not_read_by_all() -> None:
    """What all threads make, outside of loops of threads, reads what a thread has alone."""
    text = """
def f(X: float32[32], Y: output(float32[32])):
    for b in bound(1, axis="blockIdx.x"):
        P = alloc(float32[32], "register")
        M = alloc(float32[1], "register")
        for t in bound(32, axis="threadIdx.x"):
            with block("P", vi=spatial(32, t)):
                P[vi] = X[vi]
        with block("M", vi=spatial(1, 0)):
            M[vi] = P[vi]
        for u in bound(32, axis="threadIdx.x"):
            with block("Y", vi=spatial(32, u)):
                Y[vi] = M[0]
"""
    func = parse(text)
    found = prove(func, canonical_form(func))
    assert [failure.property for failure in found.failures] == ["P5"]
    assert "each with a 'P' of its own" in str(found.failures[0])
    shared = parse(text.replace("M[vi] = P[vi]", "M[vi] = X[vi]"))
    assert prove(shared, canonical_form(shared)).status == "proved"


def test_a_strict_build_refuses_a_tree() -> None:
    func, steps = PROGRAMS["the axis itself"]
    with pytest.raises(ScheduleError) as refusal:
        tw.build(Schedule(func, A100).apply(steps), A100, strict=True)
    assert str(refusal.value).split("\n")[0] == (
        "ScheduleError: build: the schedule of 'matmul' changes the order of a sum: threads of "
        "loop 'k' join block 'C'; expected that of its definition, since the build is strict. "
        "[strict-order]"
    )
