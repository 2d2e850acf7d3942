"""schedule/legality/externs.py, schedule/proof/forms/externs.py: what stands around a C function is
scheduled: text, values, proof, replay; refusals with their whole text; planted errors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.estimate import estimate
from tilewright.schedule.legality.externs import check_calls
from tilewright.schedule.proof import prove
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.visit import replace_buffers

from ..programs import Steps, body_of, in_rows, ranked, refusals, scheduled

AVX512 = Target.parse("c:avx512")


def between(*, alone: bool = False) -> PrimFunc:
    """M[i] = the sum of T = S + E, or of T = 2 S alone, where S is what a C function makes of
    E = 2 D, and D = A^2.
    """
    a = te.placeholder((6, 8), "float32", name="A")
    d = te.compute((6, 8), lambda i, j: a[i, j] * a[i, j], name="D")
    e = te.compute((6, 8), lambda i, j: d[i, j] * 2.0, name="E")
    s = te.extern(
        (6, 8),
        "float32",
        e,
        source="void sort_rows(const float *, float *);",
        symbol="sort_rows",
        reference=in_rows,
        name="S",
    )
    t = te.compute((6, 8), lambda i, j: s[i, j] * 2.0 if alone else s[i, j] + e[i, j], name="T")
    k = te.reduce_axis(8, name="k")
    m = te.compute((6,), lambda i: te.sum(t[i, k], axis=k), name="M")
    return te.func(a, m, name="between")


def proved(func: PrimFunc, steps: Steps) -> Schedule:
    """The schedule after `steps`: values kept, trace replayed, nest proved, by isl alone too."""
    sch = scheduled(func, steps)
    contracted = contraction(sch.func, AVX512)
    nest, form = lower_to_nest(contracted), canonical_form(contracted)
    for shortcuts in (True, False):
        verdict = prove(nest, form, shortcuts=shortcuts)
        assert verdict.status == "proved", str(verdict)
    return sch


def threads_and_vectors(sch: Schedule) -> None:
    for block in ("D", "Y"):
        i, j = sch.loops(block)
        sch.vectorize(sch.split(j, (None, 4), tail="mask")[1])
        sch.parallel(i)


def test_what_stands_around_a_call_is_scheduled() -> None:
    sch = proved(ranked(3, 6), threads_and_vectors)
    assert sch.loops("S") == ()
    assert body_of(sch) == (
        'D = alloc(float32[3, 6], "global")\n'
        'S = alloc(float32[3, 6], "global")\n'
        "for i in parallel(3):\n"
        '    for j_0 in range(2, tail="mask"):\n'
        "        for j_1 in vectorized(4):\n"
        '            with block("D", vi=spatial(3, i), vj=spatial(6, j_0 * 4 + j_1)):\n'
        "                where(j_0 * 4 + j_1 < 6)\n"
        "                D[vi, vj] = abs(A[vi, vj] - B[vi, vj])\n"
        'with block("S"):\n'
        '    extern("sort_rows", "86940bbe1e1b5048", (D,), (S,))\n'
        "for i in parallel(3):\n"
        '    for j_0 in range(2, tail="mask"):\n'
        "        for j_1 in vectorized(4):\n"
        '            with block("Y", vi=spatial(3, i), vj=spatial(6, j_0 * 4 + j_1)):\n'
        "                where(j_0 * 4 + j_1 < 6)\n"
        "                Y[vi, vj] = S[vi, vj] * 2.0 + D[vi, vj]"
    )


def first(sch: Schedule, block: str) -> te.Tensor:
    return sch.loops(block)[0]  # type: ignore[return-value]


def turned(sch: Schedule) -> None:
    sch.cache_read("T", "E", name="E_turned")
    sch.transform_layout("E_turned", lambda i, j: (j, i))


ALLOWED: dict[str, Steps] = {
    "compute_inline before": lambda s: s.compute_inline("D"),
    "compute_inline after": lambda s: s.compute_inline("T"),
    "compute_at before": lambda s: s.compute_at("D", first(s, "E")),
    "compute_at after": lambda s: s.compute_at("T", first(s, "M")),
    "reverse_compute_at": lambda s: s.reverse_compute_at("M", first(s, "T")),
    "merge": lambda s: s.merge(first(s, "D"), first(s, "E")),
    "a copy of what a call reads": turned,
    "a copy of what it writes": lambda s: s.cache_read("T", "S"),
    "its panels": lambda s: s.pack("S", 4),
    "cache_write": lambda s: s.cache_write("E"),
    "stage": lambda s: s.stage("T", "S", first(s, "T"), "thread"),
    "rfactor": lambda s: s.rfactor("M", s.loops("M")[1]),
    "loop_partition": lambda s: s.loop_partition(first(s, "T"), [2]),
    "layout of what it does not read": lambda s: s.transform_layout("D", lambda i, j: (j, i)),
    "prefetch": lambda s: s.prefetch("S", first(s, "T"), spread=[s.loops("T")[1]]),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_steps_beside_a_call_keep_the_meaning(name: str) -> None:
    proved(between(), ALLOWED[name])


REFUSED: dict[str, tuple[PrimFunc, Steps]] = {
    "compute_inline of what it reads": (between(), lambda s: s.compute_inline("E")),
    "reverse_compute_inline into it": (
        between(alone=True),
        lambda s: s.reverse_compute_inline("T"),
    ),
    "compute_at of what it reads": (between(), lambda s: s.compute_at("E", first(s, "T"))),
    "reverse_compute_at before it": (
        between(),
        lambda s: s.reverse_compute_at("T", first(s, "E")),
    ),
    "merge across it": (between(), lambda s: s.merge(first(s, "E"), first(s, "T"))),
    "layout of what it reads": (
        between(),
        lambda s: s.transform_layout("E", lambda i, j: (j, i)),
    ),
    "layout of what it writes": (
        between(),
        lambda s: s.transform_layout("S", lambda i, j: (j, i)),
    ),
    "pad": (between(), lambda s: s.pad("S", (4, 4))),
    "storage_align": (between(), lambda s: s.storage_align("E", 0, 16, 1)),
    "set_scope": (between(), lambda s: s.set_scope("S", "thread")),
    "pack of what it reads": (between(), lambda s: s.pack("E", 4)),
    "compute_inline": (between(), lambda s: s.compute_inline("S")),
    "compute_at": (between(), lambda s: s.compute_at("S", first(s, "M"))),
    "reverse_compute_at": (between(), lambda s: s.reverse_compute_at("S", first(s, "E"))),
    "cache_read": (between(), lambda s: s.cache_read("S", "E")),
    "cache_write": (between(), lambda s: s.cache_write("S")),
    "stage": (between(), lambda s: s.stage("S", "S", first(s, "T"), "thread")),
    "rfactor": (between(), lambda s: s.rfactor("S", s.loops("M")[1])),
}


def test_each_refusal_has_its_text(golden: Callable[[str, str], None]) -> None:
    golden("errors/schedule_externs.txt", refusals(REFUSED))


def test_a_step_changes_no_call() -> None:
    func = ranked(5, 7)
    check_calls(func, func, "step")
    for lines in (HEAD + TAIL, [*HEAD, CALL[0], CALL[1].replace("(D,)", "(A,)"), *TAIL]):
        after = parse("\n".join(lines), func.externs)
        names = {buffer.name: buffer for buffer in (*func.allocations, *func.inputs, *func.outputs)}
        found = (*after.allocations, *after.inputs, *after.outputs)
        same = {buffer: names[buffer.name] for buffer in found}
        with pytest.raises(ScheduleError, match=r"would change 'S' there.* \[extern-changed\]"):
            check_calls(func, func.with_body(replace_buffers(after.body, same)), "step")


def test_no_rule_schedules_around_a_call() -> None:
    for ask in (lambda: default_schedule(between(), AVX512), lambda: estimate(between(), AVX512)):
        with pytest.raises(ScheduleError) as error:
            ask()
        assert str(error.value) == (
            "ScheduleError: rule: tensor 'S' of 'between' is what the C function 'sort_rows' "
            "makes, and no rule schedules around one; expected a schedule of your own. "
            "[extern-rule]\n"
            "  Note: a limit of tilewright: the step may well keep the meaning.\n"
            "  Hint: tw.build(tw.Schedule(func)) builds it as it stands, to begin with."
        )


def test_a_call_costs_what_it_moves() -> None:
    assert estimate(Schedule(ranked(300, 700)), AVX512) > estimate(Schedule(ranked(3, 7)), AVX512)


# -- the proof ---------------------------------------------------------------------------------


def lines_of(func: PrimFunc) -> tuple[list[str], list[str], list[str]]:
    """The text of a nest before the call, of it, and after it."""
    text = str(lower_to_nest(func)).splitlines()
    at = next(n for n, line in enumerate(text) if line.endswith('block("S"):'))
    return text[:at], text[at : at + 2], text[at + 2 :]


def deeper(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


HEAD, CALL, TAIL = lines_of(ranked(5, 7))
SPOILT = [
    "    for i in range(1):",
    '        with block("D_1", vi=spatial(5, 3), vj=spatial(7, 2), family="D"):',
    "            S[vi, vj] = abs(A[vi, vj] - B[vi, vj])",
]
PLANTED: dict[str, tuple[list[str], str, str]] = {
    "before its input": (
        HEAD[:3] + CALL + HEAD[3:] + TAIL,
        "P2",
        "block 'S' needs D[4, 6], but nothing was stored to D[4, 6] before",
    ),
    "after its reader": (
        HEAD + TAIL + CALL,
        "P2",
        "block 'Y' needs S[4, 6], but nothing was stored to S[4, 6] before",
    ),
    "never": (HEAD + TAIL, "P1", "of block 'S' never runs"),
    "twice": (
        [*HEAD, "    for q in range(2):", *deeper(CALL), *TAIL],
        "P1",
        "point (vi0=4, vi1=6) of block 'S' runs twice",
    ),
    "by two threads": (
        [*HEAD, "    for q in parallel(2):", *deeper(CALL), *TAIL],
        "P5",
        "two iterations of parallel loop 'q' write S[4, 6]",
    ),
    "not always": (
        [*HEAD, "    for q in range(2):", "        if q < 0:", *deeper(deeper(CALL)), *TAIL],
        "P1",
        "of block 'S' never runs",
    ),
    "under a predicate": (
        [
            *HEAD,
            "    for q in range(2):",
            *deeper([CALL[0], "        where(q < 0)", CALL[1]]),
            *TAIL,
        ],
        "P1",
        "of block 'S' never runs",
    ),
    "without a barrier": (
        [*HEAD[:3], HEAD[3].replace("range", "parallel"), *HEAD[4:], *CALL, *TAIL],
        "P5",
        "two statements with no barrier between them write and read D[4, 6]",
    ),
    "a part of its input": (
        [HEAD[0], *HEAD[1:3], HEAD[3].replace("5", "4"), *HEAD[4:], *CALL, *TAIL],
        "P2",
        "block 'S' needs D[4, 6], but nothing was stored to D[4, 6] before",
    ),
    "stored to afterwards": (
        [*HEAD, *CALL, *SPOILT, *TAIL],
        "P2",
        "block 'Y' needs S[3, 2], but S[3, 2] holds D[3, 2]",
    ),
    "of another tensor": (
        [*HEAD, CALL[0], CALL[1].replace("(D,)", "(A,)"), *TAIL],
        "P2",
        "block 'S' needs D[",
    ),
}


@pytest.mark.parametrize("shortcuts", [True, False], ids=["shortcuts", "isl"])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found(name: str, shortcuts: bool) -> None:
    func = ranked(5, 7)
    lines, rule, said = PLANTED[name]
    planted = parse("\n".join(lines), func.externs)
    verdict = prove(planted, canonical_form(func), shortcuts=shortcuts)
    assert verdict.status == "refuted", str(verdict)
    assert any(f.property == rule and said in str(f) for f in verdict.failures), str(verdict)


def test_another_function_is_another_computation() -> None:
    func = ranked(5, 7)
    text = str(lower_to_nest(func))
    other = ranked(5, 8).externs
    changed = parse(text.replace(func.externs[0].digest, other[0].digest), other)
    assert prove(changed, canonical_form(func)).status != "proved"


def test_several_results_are_tensors_of_their_own() -> None:
    a = te.placeholder((4, 6), "float32", name="A")
    least, at = te.extern(
        (4, ()),
        ("float32", "int32"),
        a,
        source="void least(const float *a, float *v, int *n);",
        symbol="least",
        reference=lambda x: (x.min(axis=1), np.int32(x.min(axis=1).argmin())),
        name=("L", "N"),
    )
    y = te.compute((4,), lambda i: least[i] + te.cast(at[()], "float32"), name="Y")
    func = te.func(a, y, name="least")
    proved(func, lambda s: s.parallel(first(s, "Y")))
    nest, form = lower_to_nest(func), canonical_form(func)
    text = str(nest).replace("(L, N)", "(N, L)")
    assert prove(parse(text, func.externs), form).status != "proved"


def test_a_tensor_of_a_call_shares_no_storage() -> None:
    """One number is read and written at one index, which another block would do in place."""
    a = te.placeholder((), "float32", name="A")
    d = te.compute((), lambda: a[()] * 2.0, name="D")
    s = te.extern(
        (),
        "float32",
        d,
        source="void next(const float *d, float *s);",
        symbol="next",
        reference=lambda x: x + 1,
        name="S",
    )
    nest = lower_to_nest(te.func(a, s, name="next"))
    verify(nest, Stage.NEST)
    assert [buffer.name for buffer in nest.allocations] == ["D"]


def test_a_result_that_nobody_reads_is_whole() -> None:
    a = te.placeholder((4,), "float32", name="A")
    s, _ = te.extern(
        (4, 9),
        ("float32", "float32"),
        a,
        source="void two(const float *a, float *s, float *t);",
        symbol="two",
        reference=lambda x: (x, np.zeros(9)),
        name=("S", "T"),
    )
    nest = lower_to_nest(te.func(a, s, name="two"))
    assert [(buffer.name, buffer.shape) for buffer in nest.allocations] == [("T", (9,))]
