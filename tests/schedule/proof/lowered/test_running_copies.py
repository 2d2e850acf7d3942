"""schedule/proof/lowered/running_copies.py: copies that go on, and barriers that wait for them."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.schedule.verdict import Verdict
from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, verify

from ...lowered_faults import lowered

AHEAD = ("product of warps, copies ahead", "product of threads, copies ahead", "product of warps")


def proved(text: str) -> Verdict:
    func = parse(text)
    verify(func, Stage.LOWERED)
    return prove_lowered(func)


def said(text: str) -> str:
    verdict = proved(text)
    if verdict.status == "unknown":
        return f"unknown: {verdict.reasons[0]}"
    return "proved" if verdict.status == "proved" else f"refuted: {verdict.failures[0]}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", AHEAD)
def test_a_barrier_that_waits_for_one_group_less_is_refuted(name: str) -> None:
    text = lowered(name)
    assert said(text) == "proved"
    later = re.sub(r"(commit\(.*), (\d+)\)", lambda m: f"{m[1]}, {int(m[2]) + 1})", text)
    assert said(later).startswith("refuted: P5: a copy that may still go on and another access")


@pytest.mark.parametrize("name", AHEAD)
def test_a_group_that_does_not_end_is_refuted(name: str) -> None:
    lines = lowered(name).splitlines()
    places = [n for n, line in enumerate(lines) if line.strip().startswith("commit(")]
    assert len(places) == 2
    for at in places:
        without = "\n".join((*lines[:at], *lines[at + 1 :]))
        assert said(without).startswith("refuted: P5: a copy that may still go on")


def test_a_group_that_ends_in_a_branch_of_a_loop_is_undecided() -> None:
    lines = lowered("product of threads, copies ahead").splitlines()
    at = [n for n, line in enumerate(lines) if line.strip().startswith("commit(")][1]
    indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
    branch = [f"{indent}if k_0 < 6:", f"    {lines[at]}"]
    text = "\n".join((*lines[:at], *branch, *lines[at + 1 :]))
    assert said(text).startswith("unknown: it may be that P5: a copy that may still go on")


OWN = """\
def f(X: float32[2, 6, 8], Y: output(float32[2, 6, 8])):
    for b in bound(2, axis="blockIdx.x"):
        S = alloc(float32[2, 8], "shared")
        for t in bound(8, axis="threadIdx.x"):
            S[0, t] = X[b, 0, t]
        commit(S, 1)
        for k in range(6):
            if k + 1 < 6:
                for u in bound(8, axis="threadIdx.x"):
                    S[(k + 1) % 2, u] = X[b, k + 1, u]
            commit(S, 1)
            for v in bound(8, axis="threadIdx.x"):
                Y[b, k, v] = S[k % 2, v]
"""
BEFORE = OWN.replace("        for k in", "        barrier()\n        for k in")
WAITING = BEFORE + "            barrier()\n"


def test_the_thread_that_copies_waits_as_any_other() -> None:
    assert said(OWN) == (
        "refuted: P5: a copy that may still go on and another access write and read S[0, 0]; "
        "S(b=0, t=0) and Y(b=0, k=0, v=0)"
    )
    assert said(WAITING) == "proved"
    assert said(re.sub(r" *commit\(S, 1\)\n", "", OWN)) == "proved"  # copied at once


def test_a_barrier_before_the_loop_alone_does_not_wait_for_what_is_copied_in_it() -> None:
    assert said(BEFORE) == (
        "refuted: P5: a copy that may still go on and another access write and read S[1, 7]; "
        "S(b=1, k=4, u=7) and Y(b=1, k=5, v=7)"
    )


def test_whether_a_barrier_in_a_branch_of_the_loop_waits_is_undecided() -> None:
    branch = BEFORE + "            if k < 9:\n                barrier()\n"
    assert said(branch).startswith("unknown: it may be that P5: a copy that may still go on")


BY_EACH = """\
def f(X: float32[64], Y: output(float32[64])):
    for b in bound(1, axis="blockIdx.x"):
        S = alloc(float32[64], "shared")
        for t in bound(8, axis="threadIdx.x"):
            S[ramp(t * 8, 1, 4)] = X[ramp(t * 8, 1, 4)]
            Y[ramp(t * 8, 1, 4)] = S[ramp(t * 8 + 2, 1, 4)]
        commit(S, 1)
"""
BY_THE_FIRST = """\
def f(X: float32[64], Y: output(float32[64])):
    for b in bound(1, axis="blockIdx.x"):
        S = alloc(float32[64], "shared")
        S[ramp(0, 1, 4)] = X[ramp(0, 1, 4)]
        Y[ramp(0, 1, 4)] = S[ramp(2, 1, 4)]
        commit(S, 1)
        for t in bound(8, axis="threadIdx.x"):
            Y[t + 8] = 0.0
"""


@pytest.mark.parametrize("text", [BY_EACH, BY_THE_FIRST])
def test_no_lane_of_a_copy_is_over_before_another_one_of_what_follows(text: str) -> None:
    assert said(text).startswith("refuted: P5: a copy that may still go on and another access")
    further = text.replace("t * 8 + 2", "t * 8 + 4").replace("S[ramp(2,", "S[ramp(4,")
    assert said(further) == "proved"


@pytest.mark.parametrize("turns", [2, 3, 4])
@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_groups_are_counted_over_the_turns_of_loops_inside(turns: int, ahead: int) -> None:
    """Each turn of the outer loop ends `turns` groups behind a copy."""
    text = f"""\
def f(X: float32[6, 8], Y: output(float32[6, 8])):
    S = alloc(float32[6, 8], "shared")
    for k in range(6):
        for t in bound(8, axis="threadIdx.x"):
            S[k, t] = X[k, t]
        for c in range({turns}):
            commit(S, {ahead})
        barrier()
        for v in bound(8, axis="threadIdx.x"):
            Y[k, v] = S[k, 7 - v]
        barrier()
"""
    assert (said(text) == "proved") == (turns >= ahead)


PLACES = ("k % 2", "k % 3", "(k + 1) % 3", "(k + 2) % 3", "0", "k")
ACTS = st.tuples(st.sampled_from(["copy", "commit", "barrier", "use"]), st.sampled_from(PLACES))
TURNS = 4


@given(st.integers(1, 3), st.lists(ACTS, max_size=4), st.lists(ACTS, min_size=2, max_size=6))
def test_a_copy_is_over_where_a_run_of_the_text_says_so(
    ahead: int, first: list[tuple[str, str]], turn: list[tuple[str, str]]
) -> None:
    """Each thread copies for itself; groups and waits are counted as the text runs."""
    lines = ["def f(X: float32[8], Y: output(float32[8])):"]
    lines += [
        '    for b in bound(1, axis="blockIdx.x"):',
        '        S = alloc(float32[4, 8], "shared")',
    ]
    for number, (count, acts) in enumerate(((2, first), (TURNS, turn))):
        lines += [f"        for k{number} in range({count}):"] if acts else []
        for place, (act, at) in enumerate(acts):
            var = f"t{number}_{place}"
            loop = f'            for {var} in bound(8, axis="threadIdx.x"):'
            cell = f"S[{at.replace('k', f'k{number}')}, {var}]"
            match act:
                case "copy":
                    lines += [loop, f"                {cell} = X[{var}]"]
                case "use":
                    lines += [loop, f"                Y[{var}] = {cell}"]
                case "commit":
                    lines.append(f"            commit(S, {ahead})")
                case _:
                    lines.append("            barrier()")
    lines += [f"        commit(S, {ahead})"]  # some group ends: else all is copied at once
    running: dict[int, int] = {}
    ended = waited = 0
    early = False
    for count, acts in ((2, first), (TURNS, turn)):
        for k, (act, at) in product(range(count), acts):
            place = eval(at, {"k": k})
            if act in ("copy", "use") and place in running:
                early |= waited - running[place] < ahead
            if act == "copy":
                running[place] = ended
            ended += act == "commit"
            waited = ended if act == "barrier" else waited
    assert proved("\n".join(lines) + "\n").status == ("refuted" if early else "proved")
