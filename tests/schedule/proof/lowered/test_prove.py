"""schedule/proof/lowered: bounds and races of what a back end writes."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schedule.proof.lowered import shares
from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.schedule.verdict import Verdict
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify

from ....driver.golden_kernels import GOLDEN

HEAD = "def f(X: float32[5, 40], Y: output(float32[5, 40])):\n"
ROWS = (
    HEAD
    + """\
    for i in parallel(5):
        Y[i, ramp(0, 1, 16)] = X[i, ramp(0, 1, 16)]
        Y[i, ramp(16, 1, 16)] = X[i, ramp(16, 1, 16)]
        on: boolx16 = ramp(0, 1, 16) < broadcast(8, 16)
        masked(Y[i, ramp(32, 1, 16)], on) = masked(X[i, ramp(32, 1, 16)], on)
"""
)
GUARDED = (
    HEAD
    + """\
    for i in range(5):
        for j in range(40):
            Y[i, j] = select(2 <= i and j < 38, X[i - 2, j + 2], 0.0)
"""
)
BRANCHES = """\
def f(X: float32[44], Y: output(float32[44])):
    for p in parallel(4):
        if p < 3:
            Y[ramp(p * 12, 1, 8)] = X[ramp(p * 12, 1, 8)]
            Y[ramp(p * 12 + 8, 1, 4)] = X[ramp(p * 12 + 8, 1, 4)]
        else:
            Y[ramp(36, 1, 8)] = X[ramp(36, 1, 8)]
"""
FUSED = """\
def f(X: float32[3, 21], Y: output(float32[3, 21])):
    for p in parallel(9):
        for k in range(7):
            Y[p // 3, p % 3 * 7 + k] = X[p // 3, p % 3 * 7 + k]
"""
CARRIED = """\
def f(X: float32[3, 21], Y: output(float32[3, 21])):
    for p in parallel(13):
        for k in range(5):
            if p * 5 + k < 63:
                Y[(p * 5 + k) // 21, (p * 5 + k) % 21] = X[(p * 5 + k) // 21, (p * 5 + k) % 21]
"""
TWO = """\
def f(X: float32[5, 5], Y: output(float32[5, 5])):
    T = alloc(float32[5, 5], "global")
    for i in parallel(5):
        for j in range(5):
            T[i, j] = X[i, j]
    barrier()
    for i in parallel(5):
        for j in range(5):
            Y[i, j] = T[j, i]
"""
PAIRS = """\
def f(n: dim(1, 3), X: float32[n, 4], Y: output(float32[n, 4])):
    for p in parallel(2):
        if p * 2 < n:
            if p * 2 + 1 < n:
                for j in range(4):
                    Y[0, j] = X[0, j]
                    Y[1, j] = X[1, j]
            else:
                for j in range(4):
                    Y[p * 2, j] = X[p * 2, j]
"""
GATHER = """\
def f(I: int32[8], X: float32[10], Y: output(float32[8])):
    at: int64x8 = cast(I[ramp(0, 1, 8)], "int64x8")
    Y[ramp(0, 1, 8)] = X[max(min(at, broadcast(9, 8)), broadcast(0, 8))]
"""
COPIED = """\
def f(A: int64[1], X: float32[10], Y: output(float32[1])):
    at = alloc(int64[1], "global")
    at[0] = A[0]
    Y[0] = select(1 <= max(min(at[0], 10), 0), X[max(min(at[0], 10), 0) - 1], 4.0)
"""
RIGHT = {
    "rows": ROWS,
    "guarded": GUARDED,
    "branches": BRANCHES,
    "fused": FUSED,
    "carried": CARRIED,
    "two": TWO,
    "pairs": PAIRS,
    "gather": GATHER,
    "copied": COPIED,
    "copied and named": COPIED.replace("    Y[0] = ", "    n: int64 = at[0]\n    Y[0] = ")
    .replace("1 <= max(min(at[0]", "1 <= max(min(n")
    .replace("X[max(min(at[0]", "X[max(min(n"),
}


def proved(text: str) -> Verdict:
    func = parse(text)
    verify(func, Stage.LOWERED)
    return prove_lowered(func)


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_proved(name: str) -> None:
    assert proved(RIGHT[name]) == Verdict("proved", operations=proved(RIGHT[name]).operations)


@pytest.mark.parametrize("name", RIGHT)
def test_isl_says_the_same_of_right_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_keep_apart", lambda *given: False)
    monkeypatch.setattr(
        "tilewright.schedule.proof.lowered.spans.Spans.is_inside", lambda *of: False
    )
    assert proved(RIGHT[name]).status == "proved"


PLANTED = {
    "a mask one lane too wide": (
        ROWS.replace("broadcast(8, 16)", "broadcast(9, 16)"),
        "P4: 'f', lowered, loads X[0, 40]; 'X' has shape [5, 40]; Y(i=0, lane=8)",
    ),
    "a load without its mask": (
        ROWS.replace("masked(X[i, ramp(32, 1, 16)], on)", "X[i, ramp(32, 1, 16)]"),
        "P4: 'f', lowered, loads X[0, 40]; 'X' has shape [5, 40]; Y(i=0, lane=8)",
    ),
    "a store without its mask": (
        ROWS.replace("masked(Y[i, ramp(32, 1, 16)], on)", "Y[i, ramp(32, 1, 16)]"),
        "P4: 'f', lowered, stores to Y[0, 40]; 'Y' has shape [5, 40]; Y(i=0, lane=8)",
    ),
    "a choice between vectors is no mask": (
        HEAD
        + "    Y[0, ramp(32, 1, 8)] = select(ramp(0, 1, 8) < broadcast(6, 8), "
        + "X[0, ramp(34, 1, 8)], broadcast(0.0, 8))\n",
        "P4: 'f', lowered, loads X[0, 40]; 'X' has shape [5, 40]; Y(lane=6)",
    ),
    "a guard that forgets one side": (
        GUARDED.replace("2 <= i and j < 38", "j < 38"),
        "P4: 'f', lowered, loads X[-2, 2]; 'X' has shape [5, 40]; Y(i=0, j=0)",
    ),
    "a load before its guard": (
        GUARDED.replace("    for j", "    x: float32 = X[i - 2, 0]\n        for j"),
        "P4: 'f', lowered, loads X[-2, 0]; 'X' has shape [5, 40]; x(i=0)",
    ),
    "an index of data that nothing clamps": (
        GATHER.replace("broadcast(9, 8)), broadcast(0, 8))", "broadcast(10, 8)), broadcast(0, 8))"),
        "",
    ),
    "shares that overlap": (
        BRANCHES.replace("Y[ramp(36, 1, 8)] = ", "Y[ramp(35, 1, 8)] = "),
        "P5: two iterations of parallel loop 'p' write Y[35]; f(p=2) and f(p=3)",
    ),
    "digits of another number": (
        FUSED.replace("Y[p // 3, p % 3 * 7 + k]", "Y[p // 3, p % 3 * 6 + k]"),
        "P5: two iterations of parallel loop 'p' write",
    ),
    "pairs of more rows than the code was folded for": (
        PAIRS.replace("dim(1, 3)", "dim(1, 4)"),
        "P5: two iterations of parallel loop 'p' write Y[0, 3]",
    ),
    "a barrier that is lost": (
        TWO.replace("    barrier()\n", ""),
        "P5: two statements with no barrier between them write and read",
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_refuted_or_said_to_be_possible(error: str) -> None:
    text, wanted = PLANTED[error]
    verdict = proved(text)
    if not wanted:
        assert verdict.status == "unknown"
        assert "it may be that P4: 'f', lowered, loads X[10]" in verdict.reasons[0]
        return
    said = [str(failure) for failure in verdict.failures]
    assert verdict.status == "refuted"
    assert any(wanted.partition("; f(p")[0] in item for item in said), said


def test_a_branch_on_a_size_leaves_the_iterations_that_the_largest_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "tilewright.schedule.proof.lowered.prove.conflicts_of_loops",
        lambda *given: pytest.fail("integer sets are asked"),
    )
    assert proved(PAIRS).status == "proved"


@pytest.mark.parametrize(
    "between",
    [
        # the index, or the condition, is what was read before another number was stored
        """\
    i: int64 = max(min(at[0], 10), 0)
    at[0] = A[1]
    Y[0] = select(1 <= max(min(at[0], 10), 0), X[i - 1], 4.0)
""",
        """\
    i: int64 = max(min(at[0], 10), 0)
    at[0] = A[1]
    Y[0] = select(1 <= i, X[max(min(at[0], 10), 0) - 1], 4.0)
""",
        """\
    n: int64 = at[0]
    at[0] = A[1]
    m: int64 = at[0]
    Y[0] = select(1 <= max(min(n, 10), 0), X[max(min(m, 10), 0) - 1], 4.0)
""",
        """\
    if 1 <= max(min(at[0], 10), 0):
        at[0] = A[1]
        Y[0] = X[max(min(at[0], 10), 0) - 1]
""",
    ],
)
def test_a_condition_says_nothing_of_what_is_stored_behind_it(between: str) -> None:
    head = COPIED[: COPIED.index("    Y[0]")].replace("A: int64[1]", "A: int64[2]")
    verdict = proved(head + between)
    assert verdict.status == "unknown"
    assert "it may be that P4: 'f', lowered, loads X[-1]" in verdict.reasons[0]


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_kernels_of_many_kinds_are_proved(isa: str) -> None:
    names = ("tails_and_threads", "where", "gathered", "rule_pooling", "scan", "extern")
    parts = [GOLDEN[name].lowered(Target.parse(f"c:{isa}")) for name in names]
    functions = [f for part in parts for f in (part.prepare, part.run) if f is not None]
    left = [str(prove_lowered(func)) for func in functions if not prove_lowered(func)]
    assert not left


def test_what_takes_too_many_operations_is_undecided() -> None:
    func = parse(CARRIED)
    verdict = prove_lowered(func, 10)
    assert verdict.status == "unknown"
    assert "P5 of 'f', lowered: the proof takes isl more than 10 operations" in verdict.reasons


DOUBLED = "".join(f"    n{k + 1}: int64 = n{k} + n{k}\n" for k in range(60))


@pytest.mark.parametrize(
    ("extent", "status"), [(10, "proved"), (11, "unknown")], ids=["inside", "perhaps outside"]
)
def test_a_condition_too_long_to_follow_is_left_out_and_no_other(extent: int, status: str) -> None:
    """Each name stands for two of the one before, so the last is a sum of 2**60 elements."""
    text = f"""\
def f(A: int64[1], X: float32[10], Y: output(float32[12])):
    n0: int64 = A[0]
{DOUBLED}\
    for i in range(12):
        if n60 < 9 and i < {extent}:
            Y[i] = X[i]
"""
    verdict = proved(text)
    assert verdict.status == status
    if status == "unknown":
        assert "it may be that P4: 'f', lowered, loads X[10]" in verdict.reasons[0]


FACTORS = st.integers(-3, 9)
TERMS = st.sampled_from(["p", "k", "p // 2", "p % 2", "p // 3", "p % 3", "(p * 3 + k) // 4"])
INDICES = st.lists(st.tuples(FACTORS, TERMS), min_size=1, max_size=3)


@given(st.lists(st.tuples(INDICES, INDICES, st.integers(0, 6)), min_size=1, max_size=2))
def test_iterations_meet_where_they_touch_one_element_and_nowhere_else(
    stores: list[tuple[list[tuple[int, str]], list[tuple[int, str]], int]],
) -> None:
    lines = ["def f(Y: output(float32[200, 200])):", "    for p in parallel(6):"]
    lines.append("        for k in range(3):")
    touched: list[set[tuple[int, int]]] = [set() for _ in range(6)]
    for row, column, limit in stores:
        forms = [" + ".join(f"{t} * {f}" for f, t in form) + " + 99" for form in (row, column)]
        lines.append(f"            if p < {limit}:")
        lines.append(f"                Y[{', '.join(forms)}] = 1.0")
        for p, k in product(range(min(6, limit)), range(3)):
            rows, columns = (eval(form, {"p": p, "k": k}) for form in forms)
            touched[p].add((rows, columns))
    apart = all(a.isdisjoint(b) for a, b in combinations(touched, 2))
    verdict = proved("\n".join(lines) + "\n")
    assert verdict.status == ("proved" if apart else "refuted"), verdict


@given(
    st.sampled_from(["+", "-"]),
    st.integers(1, 3),
    st.integers(-3, 8),
    st.integers(2, 6),
    st.sampled_from(["<", "<=", "=="]),
    st.integers(0, 9),
)
def test_what_a_branch_on_a_size_leaves_is_never_too_little(
    sign: str, factor: int, shift: int, most: int, compared: str, row: int
) -> None:
    condition = f"{shift} {sign} p * {factor} {compared} n"
    text = (
        f"def f(n: dim(1, {most}), X: float32[n], Y: output(float32[20])):\n"
        "    for p in parallel(5):\n"
        f"        if {condition}:\n"
        f"            Y[{row}] = 1.0\n"
        "        else:\n"
        "            Y[p + 10] = 2.0\n"
    )
    at_once = [
        [p for p in range(5) if eval(condition, {"p": p, "n": n})] for n in range(1, most + 1)
    ]
    races = any(len(those) > 1 for those in at_once)
    assert proved(text).status == ("refuted" if races else "proved")
