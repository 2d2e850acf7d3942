"""The proof finds right nests right, wrong ones wrong, and says which property and which
iterations.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.driver.fuzz.case import draw
from tilewright.driver.fuzz.steps import Tally
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof import prove
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import Failure, Iteration, Verdict
from tilewright.tir.errors import TilewrightError
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import InterpreterError, interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..nests import NESTS, PackedNest, canonical, nest, packed
from ..planted import PLANTED, edited
from ..programs import causal, matmul_relu

STATUSES = ("proved", "proved under assumptions", "unknown", "refuted")

# ruff: noqa: E501 (one line of a nest is one line)


@pytest.mark.parametrize("name", NESTS)
def test_a_right_nest_is_proved(name: str) -> None:
    verdict = prove(nest(name), canonical(name))
    assert verdict.status == "proved", str(verdict)
    assert verdict
    assert not verdict.failures + verdict.assumptions + verdict.reasons


@pytest.mark.parametrize("name", [name for name in NESTS if name != "packed"])
def test_isl_alone_comes_to_the_same_verdict(name: str) -> None:
    verdict = prove(nest(name), canonical(name), shortcuts=False)
    assert verdict.status == "proved", str(verdict)


@pytest.mark.parametrize("name", NESTS)
def test_the_interpreter_agrees_that_the_nest_is_right(name: str) -> None:
    assert computes_the_same(nest(name), canonical(name))


@pytest.mark.parametrize("name", NESTS)
def test_a_canonical_form_is_proved_against_itself(name: str) -> None:
    form = canonical(name)
    verdict = prove(form, form)
    assert verdict.status == "proved", str(verdict)


# The interpreter is one thread: it knows no buffer of each thread, and takes iterations of one number for one thread.
ONLY_THE_PROOF = ("missing barrier", "a private buffer shared by threads")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_with_its_property(error: str) -> None:
    name, wrong, expected, text = PLANTED[error]
    verdict = prove(wrong, canonical(name))
    assert verdict.status == "refuted"
    assert not verdict
    found = [str(failure) for failure in verdict.failures if failure.property == expected]
    assert any(text in failure for failure in found), str(verdict)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("error", [error for error in PLANTED if PLANTED[error][0] != "packed"])
def test_isl_alone_finds_the_planted_error_too(error: str) -> None:
    name, wrong, _, _ = PLANTED[error]
    fast, exact = (prove(wrong, canonical(name), shortcuts=s) for s in (True, False))
    assert {f.property for f in exact.failures} >= {f.property for f in fast.failures}
    assert exact.status == fast.status


@pytest.mark.parametrize("error", [error for error in PLANTED if error not in ONLY_THE_PROOF])
def test_the_interpreter_sees_a_planted_error_too(error: str) -> None:
    name, wrong, _, _ = PLANTED[error]
    assert not computes_the_same(wrong, canonical(name))


def test_a_verdict_reads_well() -> None:
    verdict = prove(PLANTED["overlapping tiles"][1], canonical("tiled"))
    lines = str(verdict).splitlines()
    assert re.fullmatch(r"refuted \(P1 to P5, \d+ questions, \d+\.\d ms\)", lines[0])
    assert lines[1:] == [
        "  P1: point (vi=12, vj=9, vk=6) of block 'C' never runs",
        "  P1: point (vi=12, vj=3, vk=6) of block 'C' runs twice; "
        "C(i0=3, j0=0, k0=2, ii=0, jj=3, kk=0) and C(i0=3, j0=1, k0=2, ii=0, jj=0, kk=0)",
    ]
    twice = verdict.failures[1]
    assert twice.element == "(vi=12, vj=3, vk=6)"
    assert twice.iterations[1].values == {"i0": 3, "j0": 1, "k0": 2, "ii": 0, "jj": 0, "kk": 0}


def test_a_verdict_survives_json_and_ignores_time_in_comparison() -> None:
    verdict = prove(PLANTED["vectorized reduction"][1], canonical("tiled"))
    again = Verdict.from_json(verdict.to_json())
    assert again == verdict
    assert again.milliseconds == verdict.milliseconds
    assert Verdict.from_json(verdict.over("all").to_json()) == verdict.over("all")
    before = {name: value for name, value in verdict.to_json().items() if name != "scope"}
    assert Verdict.from_json(before) == verdict  # files have verdicts from before there was a scope
    assert Verdict("proved", milliseconds=1.0) == Verdict("proved", milliseconds=2.0)


def test_a_summary_is_one_line_of_what_a_proof_lacks() -> None:
    verdict = Verdict("unknown", reasons=("P1: this", "P2: that")).over("the nest")
    assert verdict.summary == (
        "unknown (P1 to P5, 0 questions, 0.0 ms); undecided: P1: this; undecided: P2: that"
    )
    assert len(Verdict("unknown", reasons=("x" * 9000,)).summary) == 2000


def test_verdicts_joined_are_as_good_as_the_worse_one() -> None:
    ends = {(a, b): Verdict(a).joined(Verdict(b)).status for a in STATUSES for b in STATUSES}
    assert all(ends[a, b] == max(a, b, key=STATUSES.index) for a, b in ends)


@pytest.mark.parametrize(
    "broken", [{}, {"status": 1}, {**Verdict("proved").to_json(), "failures": 3}]
)
def test_what_is_no_verdict_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        Verdict.from_json(broken)


def test_a_verdict_shows_itself_in_a_notebook() -> None:
    run = Iteration("C<x>", (("i", 1),))
    html = Verdict("refuted", (Failure("P5", "conflict", (run,), "C[1]"),))._repr_html_()
    assert html == (
        '<div><b style="color:#cf222e">refuted (P1 to P5, 0 questions, 0.0 ms)</b>'
        "<ul><li>P5: conflict; C&lt;x&gt;(i=1)</li></ul></div>"
    )


def test_the_same_proof_twice_is_the_same_verdict() -> None:
    wrong = PLANTED["missing guard"]
    assert prove(wrong[1], canonical("tiled")) == prove(wrong[1], canonical("tiled"))


def gather(rows: int) -> PrimFunc:
    return parse(f"""\
def gather(T: float32[{rows}], I: int64[4], Y: output(float32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[I[vi]]
""")


def test_an_index_that_nothing_but_data_bounds_is_undecided() -> None:
    func = gather(8)
    verdict = prove(func, canonical_form(func))
    assert verdict.status == "unknown"
    assert not verdict
    assert verdict.reasons == ("the index I[vi] depends on the values of 'I'",)
    assert str(verdict).endswith("\n  undecided: the index I[vi] depends on the values of 'I'")


def test_a_proof_gives_up_after_its_operations() -> None:
    verdict = prove(nest("packed"), canonical("packed"), max_operations=50)
    assert verdict.status == "unknown"
    assert "isl more than 50 operations" in verdict.reasons[0]


def reflected(last: int) -> PrimFunc:
    """Sums of three neighbours of a row that is mirrored at both ends, as selects in an index."""
    x = te.placeholder((20,), "float32", name="X")

    def mirrored(i: Expr) -> Expr:
        return te.select(i < 0, -i, te.select(i > 19, last - i, i))

    y = te.compute((26,), lambda i: x[mirrored(i - 3)], name="Y")
    r = te.reduce_axis(3, name="r")
    z = te.compute((24,), lambda i: te.sum(y[i + r], axis=r), name="Z")
    return te.func(x, z, name="reflected")


@pytest.mark.parametrize("shortcuts", [True, False])
def test_a_select_in_an_index_is_taken_by_its_cases(shortcuts: bool) -> None:
    for steps in (
        lambda sch: sch.compute_inline("Y"),
        lambda sch: sch.compute_at("Y", sch.split(sch.loops("Z")[0], (None, 7))[0]),
    ):
        sch = Schedule(reflected(38))
        steps(sch)
        nest_of, form = lower_to_nest(sch.func), canonical_form(sch.func)
        assert prove(nest_of, form, shortcuts=shortcuts).status == "proved"


def test_a_select_in_an_index_that_leaves_its_buffer_is_refuted() -> None:
    form = canonical_form(reflected(41))
    assert [str(failure) for failure in prove(form, form).failures] == [
        "P4: block 'Y' loads X[20]; 'X' has shape [20]; Y(i=24)"
    ]


def test_a_block_of_no_family_is_undecided() -> None:
    wrong = edited("rolling", ('with block("Y", vi', 'with block("Z", vi'))
    verdict = prove(wrong, canonical("rolling"))
    assert verdict.reasons == ("P2: block 'Z' is of no family of the canonical form",)


def test_a_barrier_inside_a_loop_orders_nothing_that_one_thread_runs() -> None:
    more = edited("rolling", ("        if 2 <= i:", "        barrier()\n        if 2 <= i:"))
    assert prove(more, canonical("rolling")).status == "proved"


def test_a_buffer_outside_of_its_allocation_is_undecided() -> None:
    text = NESTS["rolling"][1].replace(
        "    B = alloc", "    for z in range(1):\n        pass\n    B = alloc"
    )
    func = parse(text)
    alloc = func.body.body[1]
    stray = func.with_body(alloc.body)
    assert prove(stray, canonical("rolling")).reasons == ("buffer 'B' is used outside its Alloc",)


def test_other_arithmetic_is_an_assumption() -> None:
    other = edited(
        "rolling",
        (
            "X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]",
            "X[vi, vj] + (X[vi, vj + 1] + X[vi, vj + 2])",
        ),
    )
    verdict = prove(other, canonical("rolling"))
    assert verdict.status == "proved under assumptions"
    assert verdict
    assert verdict.assumptions == (
        "block 'B' may compute X[vi, vj] + (X[vi, vj + 1] + X[vi, vj + 2]) for "
        "X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]",
    )


def test_another_element_is_found_behind_other_arithmetic_but_not_called_wrong() -> None:
    other = edited(
        "rolling",
        ("X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]", "X[vi, vj] + (X[vi, vj] + X[vi, vj + 2])"),
    )
    verdict = prove(other, canonical("rolling"))
    assert verdict.status == "unknown"
    assert "block 'B' needs X[" in verdict.reasons[0]


def test_a_prefetch_may_leave_its_buffer() -> None:
    ahead = edited(
        "rolling",
        (
            "    for i in range(9):",
            '    for i in range(9):\n        prefetch(X[i + 7, 99], "read", 1)',
        ),
    )
    assert prove(ahead, canonical("rolling")).status == "proved"


def test_what_nobody_needs_may_be_left_out() -> None:
    func = packed(9, 20, 12, 8)
    text = PackedNest(9, 20, 12, rows=4, width=8, block=4, lanes=4).text()
    part = text.replace(
        '                with block("P"',
        '                if p * 8 + r < 20:\n                  with block("P"',
    )
    verdict = prove(
        parse(part.replace("                    P[v0", "                      P[v0")),
        canonical_form(func),
    )
    assert verdict.status == "proved", str(verdict)


@pytest.mark.parametrize("extent", [0, 1])
def test_empty_and_single_extents_are_proved(extent: int) -> None:
    x = te.placeholder((extent, 3), "float32", name="X")
    y = te.compute((extent, 3), lambda i, j: x[i, j] + 1.0, name="Y")
    func = te.func(x, y, name="plain")
    assert prove(func, canonical_form(func)).status == "proved"


def computes_the_same(func: PrimFunc, form: PrimFunc) -> bool:
    """Whether the checked interpreter runs `func` and it gives what NumPy gives for `form`."""
    rng = np.random.default_rng(0)
    arrays = {
        p.name: (0.3 * rng.standard_normal(p.buffer.shape)).astype(np.float32)
        for p in func.parameters
        if p.role != "output"
    }
    expected = evaluate(form, arrays)
    try:
        results = interpret(func, *arrays.values(), checked=True, barriers=True)
    except InterpreterError:
        return False
    pairs = zip(func.outputs, results, strict=True)
    return all(np.allclose(expected[b.name], r, rtol=1e-4, atol=1e-5) for b, r in pairs)


def mutated(text: str, rng: random.Random) -> str | None:
    """The text with a number changed, or a loop of another kind; None when that line has neither."""
    lines = text.strip().splitlines()
    at = rng.randrange(1, len(lines))
    if rng.random() < 0.3:
        old, new = rng.sample(("range(", "parallel(", "vectorized("), 2)
        lines[at] = lines[at].replace(old, new)
    else:
        numbers = [
            m
            for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", lines[at])
            if not lines[at][: m.start()].endswith(("spatial(", "reduce("))
        ]
        if not numbers:
            return None
        m = rng.choice(numbers)
        lines[at] = (
            f"{lines[at][: m.start()]}{int(m[0]) + rng.choice((-1, 1, 2))}{lines[at][m.end() :]}"
        )
    result = "\n".join(lines)
    return None if result == text.strip() else result


def test_random_edits_never_fool_the_proof() -> None:
    """What is proved is right; what isl finds alone is what is found with shortcuts."""
    rng = random.Random(7)
    forms = {name: canonical(name) for name in NESTS if not name.startswith("packed")}
    count: Counter[str] = Counter()
    while sum(count.values()) < 40:
        name = rng.choice(list(forms))
        text = mutated(NESTS[name][1], rng)
        try:
            func = parse(text) if text is not None else None
        except TilewrightError:
            continue
        if func is None:
            continue
        verdict = prove(func, forms[name])
        exact = prove(func, forms[name], shortcuts=False)
        assert exact.status == verdict.status, text
        assert {f.property for f in exact.failures} >= {f.property for f in verdict.failures}, text
        if verdict:
            assert computes_the_same(func, forms[name]), text
        count[verdict.status] += 1
    assert count["refuted"] > 20
    assert count["proved"] > 2


@pytest.mark.parametrize("cases", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_isl_alone_proves_random_schedules_too(cases: int) -> None:
    """The whole way: random legal steps, code generation's first half, the proof."""
    for seed in range(cases):
        sch = draw(seed, Tally(), depth=6).case.schedule()
        contracted = contraction(sch.func, Target.parse("c:avx512"))
        verdict = prove(lower_to_nest(contracted), canonical_form(contracted), shortcuts=False)
        assert verdict.status == "proved", f"seed {seed}: {verdict}\n{sch}"


@pytest.mark.parametrize("joined", ["X[vi] < 2 and vi < {}", "vi < {} and X[vi] < 2"])
def test_a_condition_of_indices_beside_one_of_data_may_go_where_it_holds(joined: str) -> None:
    text = """
def f(X: int32[4], Y: output(int32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = select(X[vi] < 2, X[vi], int32(0))
"""
    nest = parse(text.replace("< 2", "< int32(2)"))
    for bound, status in ((4, "proved"), (3, "proved under assumptions")):
        condition = joined.format(bound).replace("< 2", "< int32(2)")
        form = parse(text.replace("X[vi] < 2", condition))
        assert prove(nest, form).status == status, bound


def test_a_condition_of_indices_beside_one_of_floats_may_go_where_it_holds() -> None:
    form = parse("""
def f(X: int32[4], Y: output(int32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = max(select(cast(vi, "float32") != 2.0 and vi < 3, X[vi], int32(0)), int32(1))
""")
    nest = parse("""
def f(X: int32[4], Y: output(int32[4])):
    for i in range(3):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = max(select(cast(vi, "float32") != 2.0, X[vi], int32(0)), int32(1))
    with block("Y", vi=spatial(4, 3)):
        Y[3] = int32(1)
""")
    assert prove(nest, form).status == "proved"
    wrong = parse(str(nest).replace("Y[3] = int32(1)", "Y[3] = int32(0)"))
    assert prove(wrong, form).status != "proved"


@pytest.mark.parametrize("shortcuts", [True, False])
def test_a_point_that_does_not_count_may_not_run(shortcuts: bool) -> None:
    func = causal(3, 2, 2)
    lines = str(lower_to_nest(func)).splitlines()
    whole = parse("\n".join(line for line in lines if "where(" not in line))
    verdict = prove(whole, canonical_form(func), shortcuts=shortcuts)
    assert verdict.status == "refuted"
    assert "which does not count" in str(verdict)


EARLY = """
def matmul_relu(A: float32[2, 2], B: float32[2, 3], bias: float32[3], Y: output(float32[2, 3])):
    C = alloc(float32[2, 3], "global")
    for i in range(2):
        for j in range(3):
            with block("C_init", vi=spatial(2, i), vj=spatial(3, j), init="C"):
                C[vi, vj] = 0.0
    for i in range(2):
        for j in range(3):
            with block("Y", vi=spatial(2, i), vj=spatial(3, j)):
                Y[vi, vj] = max(C[vi, vj] + bias[vj], 0.0)
    for i in range(2):
        for j in range(3):
            for k in range(2):
                with block("C", vi=spatial(2, i), vj=spatial(3, j), vk=reduce(2, k)):
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("shortcuts", [True, False])
def test_a_sum_may_not_be_read_between_its_initialisation_and_its_updates(shortcuts: bool) -> None:
    verdict = prove(parse(EARLY), canonical_form(matmul_relu(2, 3, 2)), shortcuts=shortcuts)
    assert verdict.status == "refuted"
    assert "before block 'C' has updated it" in str(verdict)
