"""schedule/proof/lowered/team_races.py: threads of a block in lowered code, and its barriers."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schedule.proof.lowered import team_races
from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.schedule.verdict import Verdict
from tilewright.tir.parsing.parser import parse
from tilewright.tir.verify.verify import Stage, verify

from ...lowered_faults import KERNELS, before_what_precedes, behind_what_follows, lost, lowered


def proved(text: str) -> Verdict:
    func = parse(text)
    verify(func, Stage.LOWERED)
    return prove_lowered(func)


def said(text: str) -> str:
    verdict = proved(text)
    return "proved" if verdict.status == "proved" else f"{verdict.status}: {verdict.failures[0]}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_proved_as_they_are(name: str) -> None:
    assert proved(lowered(name)).status == "proved"


@pytest.mark.parametrize("name", KERNELS)
def test_a_barrier_that_is_lost_is_refuted(name: str) -> None:
    texts = list(lost(lowered(name)))
    assert texts
    for text in texts:
        assert said(text).startswith("refuted: P5: two threads with no barrier between them")


@pytest.mark.parametrize("name", KERNELS)
def test_a_barrier_behind_what_it_protects_is_refuted(name: str) -> None:
    texts = list(behind_what_follows(lowered(name)))
    assert texts
    for text in texts:
        assert said(text).startswith("refuted: P5: two threads with no barrier between them")


@pytest.mark.parametrize("name", KERNELS)
def test_a_barrier_before_what_it_waits_for_is_refuted(name: str) -> None:
    texts = list(before_what_precedes(lowered(name)))
    assert texts
    for text in texts:
        assert said(text).startswith("refuted: P5: ")


@pytest.mark.parametrize("name", [name for name in KERNELS if "warps" not in name])
def test_isl_says_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_races, "may_meet", lambda *of: None)
    monkeypatch.setattr(team_races, "keep_apart", lambda *of: False)
    assert proved(lowered(name)).status == "proved"
    assert not any(proved(text) for text in lost(lowered(name)))


SHARED = """\
def f(X: float32[2, 8], Y: output(float32[2, 8])):
    for b in bound(2, axis="blockIdx.x"):
        S = alloc(float32[8], "shared")
        for t in bound(8, axis="threadIdx.x"):
            S[t] = X[b, t]
        barrier()
        for u in bound(8, axis="threadIdx.x"):
            Y[b, u] = S[7 - u]
"""


def test_a_conflict_names_two_threads_and_the_element() -> None:
    assert said(SHARED) == "proved"
    assert said(SHARED.replace("        barrier()\n", "")) == (
        "refuted: P5: two threads with no barrier between them write and read S[4]; "
        "S(b=1, t=4) and Y(b=1, u=3)"
    )


def test_a_load_that_is_named_before_the_barrier_is_refuted() -> None:
    early = SHARED.replace(
        '        barrier()\n        for u in bound(8, axis="threadIdx.x"):\n',
        "        s: float32 = S[0]\n        barrier()\n"
        '        for u in bound(8, axis="threadIdx.x"):\n',
    ).replace("S[7 - u]", "S[7 - u] + s")
    assert said(early) == (
        "refuted: P5: two threads with no barrier between them write and read S[0]; "
        "S(b=1, t=0) and s(b=1)"
    )


OTHERS = """\
        for u in bound(8, axis="threadIdx.x"):
            Y[b, u] = R[()]"""


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("Y[b, 0] = S[0]", "proved"),  # by the first thread, which has set it
        ("Y[b, 0] = S[1]", "refuted"),
        ("if S[0] < 1.0:\n            Y[b, 0] = 2.0", "proved"),  # it decides alone, too
        ("if S[1] < 1.0:\n            Y[b, 0] = 2.0", "refuted"),
        (f"R[()] = S[0]\n{OTHERS}", "refuted"),  # which all threads set
    ],
)
def test_what_stands_beside_loops_of_threads_is_of_those_that_run_it(
    stored: str, wanted: str
) -> None:
    head = SHARED[: SHARED.index("        barrier()")]
    head = head.replace("        S =", '        R = alloc(float32[()], "register")\n        S =')
    assert proved(f"{head}        {stored}\n").status == wanted


def test_each_thread_may_use_what_is_its_own_without_a_barrier() -> None:
    assert said(SHARED.replace("        barrier()\n", "").replace("7 - u", "u")) == "proved"


def test_a_barrier_in_a_branch_parts_what_is_in_the_branch_alone() -> None:
    branch = SHARED.replace("        barrier()", "        if b < 1:\n            barrier()")
    assert said(branch).startswith("refuted: P5: two threads with no barrier between them")
    lines = SHARED.splitlines()
    inside = [*lines[:3], "        if b < 1:", *(f"    {line}" for line in lines[3:])]
    assert said("\n".join(inside)) == "proved"


TURNS = """\
def f(X: float32[6, 8], Y: output(float32[6, 8])):
    S = alloc(float32[2, 8], "shared")
    for k in range(6):
        for t in bound(8, axis="threadIdx.x"):
            S[k % 2, t] = X[k, t]
        barrier()
        for u in bound(8, axis="threadIdx.x"):
            Y[k, u] = S[k % 2, 7 - u]
"""


def test_a_loop_that_uses_storage_again_needs_places_in_turn() -> None:
    """The theorem looks at one iteration and any later one: it asks for a barrier at the end, too,
    which two places spare where the next one is used.
    """
    assert said(TURNS).startswith("refuted: P5: two threads with no barrier between them")
    ended = TURNS + "        barrier()\n"
    assert said(ended) == "proved"
    assert said(ended.replace("k % 2", "0")) == "proved"


@pytest.mark.parametrize(("rows", "wanted"), [("i % 16", "refuted"), ("i % 16 + 16", "proved")])
def test_a_warp_that_loads_by_rows_takes_sixteen_bytes_for_all_its_threads(
    rows: str, wanted: str
) -> None:
    """Threads point at rows that they have set themselves: the warp hands them to others."""
    text = f"""\
def f(B: float16[8, 16], C: output(float32[8, 32])):
    A = alloc(float16[32, 8], "shared")
    for i in bound(32, axis="threadIdx.x"):
        c0 = alloc(float32[()], "register")
        c1 = alloc(float32[()], "register")
        c2 = alloc(float32[()], "register")
        c3 = alloc(float32[()], "register")
        if i < 16:
            A[i, 7] = B[0, i]
        warp_sum("mma_m16n8k16_f16", (c0[()], c1[()], c2[()], c3[()]), rows(A[{rows}, 0]), \
elements(B[i // 4, i % 4], B[i // 4, i % 4 + 1], B[i // 4, i % 4 + 8], B[i // 4, i % 4 + 9]))
        C[0, i] = c0[()]
"""
    assert proved(text).status == wanted


def test_a_row_that_a_warp_loads_ends_inside_of_its_buffer() -> None:
    text = lowered("product of warps, copies ahead")
    row = next(line for line in text.splitlines() if "rows(" in line)
    start = row.index("rows(A_cache[") + len("rows(A_cache[")
    place = row[start : row.index("])", start)]
    moved = text.replace(f"rows(A_cache[{place}])", f"rows(A_cache[{place} + 17])")
    assert moved != text
    failures = proved(moved).failures
    assert any(f.property == "P4" and "loads A_cache[" in f.message for f in failures)


THREADS, TURN_COUNT, CELLS = 4, 2, 60
FORMS = ("t", "t // 2", "t % 2", "(t * 3 + k) // 2", "k", "k % 2")
FORM = st.lists(st.tuples(st.integers(-2, 5), st.sampled_from(FORMS)), min_size=1, max_size=2)
STEPS = st.tuples(st.sampled_from(["set", "use", "first sets", "barrier"]), FORM)


@given(st.lists(STEPS, min_size=1, max_size=5))
def test_threads_meet_where_a_count_of_what_they_touch_says_so(
    steps: list[tuple[str, list[tuple[int, str]]]],
) -> None:
    """Of two turns of a loop each element is counted out: by which threads, between which barriers.
    Of a loop of two turns the theorem asks for no more than what is needed.
    """
    lines = ["def f(Y: output(float32[4])):", f'    S = alloc(float32[{CELLS}], "shared")']
    lines.append(f"    for k in range({TURN_COUNT}):")
    texts = []
    for number, (kind, form) in enumerate(steps):
        text = " + ".join(f"{part} * {factor}" for factor, part in form) + " + 20"
        texts.append(text)
        of_thread = text.replace("t", f"t{number}")
        loop = f'        for t{number} in bound({THREADS}, axis="threadIdx.x"):'
        match kind:
            case "set":
                lines += [loop, f"            S[{of_thread}] = 1.0"]
            case "use":
                lines += [loop, f"            Y[t{number}] = S[{of_thread}]"]
            case "first sets":
                lines.append(f"        S[{text.replace('t', '0')}] = 2.0")
            case _:
                lines.append("        barrier()")
    lines += ['        for t9 in bound(4, axis="threadIdx.x"):', "            Y[t9] = 0.0"]
    touched: dict[tuple[int, int], set[tuple[int, bool]]] = defaultdict(set)
    passed = 0
    for k in range(TURN_COUNT):
        for (kind, _), text in zip(steps, texts, strict=True):
            passed += kind == "barrier"
            for t in range(THREADS if kind in ("set", "use") else kind == "first sets"):
                touched[passed, eval(text, {"t": t, "k": k})].add((t, kind != "use"))
    race = any(
        len({t for t, _ in found}) > 1 and any(write for _, write in found)
        for found in touched.values()
    )
    assert proved("\n".join(lines) + "\n").status == ("refuted" if race else "proved")
