"""schedule/legality/recurrence.py: what steps do to a scan: text, values, proof, replay; refusals
with their whole text, and that what they refuse is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.legality import recurrence
from tilewright.schedule.proof import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.checks import InterpreterError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..programs import (
    Steps,
    body_of,
    braid,
    cell,
    integers,
    refusals,
    refused,
    running,
    scheduled,
    wave,
)
from ..switched_off import replace_everywhere


def proved(func: PrimFunc, steps: Steps) -> Schedule:
    """The schedule after `steps`: values kept, trace replayed, nest proved, by isl alone too."""
    sch = scheduled(func, steps)
    contracted = contraction(sch.func, Target.parse("c:avx512"))
    nest, form = lower_to_nest(contracted), canonical_form(contracted)
    for shortcuts in (True, False):
        verdict = prove(nest, form, shortcuts=shortcuts)
        assert verdict.status == "proved", str(verdict)
    return sch


def panels(sch: Schedule) -> None:
    (block,) = sch.blocks()
    t, i = sch.loops(block)
    panel, lane = sch.split(i, (None, 4), tail="mask")
    sch.reorder(panel, t, lane)
    sch.vectorize(lane)
    sch.parallel(panel)


def test_two_states_are_one_block_whose_panels_threads_share() -> None:
    assert body_of(proved(cell(5, 10), panels)) == (
        'C = alloc(float32[5, 10], "global")\n'
        'for i_0 in parallel(3, tail="mask"):\n'
        "    for t in range(5):\n"
        "        for i_1 in vectorized(4):\n"
        '            with block("C", vt=ordered(5, t), vi=spatial(10, i_0 * 4 + i_1)):\n'
        "                where(i_0 * 4 + i_1 < 10)\n"
        "                C[vt, vi] = select(vt < 1, 0.0, "
        "C[vt - 1, vi] * F[vt, vi] + H[vt - 1, vi] + X[vt, vi])\n"
        "                H[vt, vi] = select(vt < 1, 0.0, "
        "max(C[vt - 1, vi] * F[vt, vi] + H[vt - 1, vi] + X[vt, vi], 0.0))"
    )


def test_a_step_of_one_state_is_ahead_of_the_next_one_of_the_other() -> None:
    text = body_of(proved(braid(5, 4), lambda sch: sch.vectorize(sch.loops("A")[1])))
    assert text == (
        "for t in range(5):\n"
        "    for i in vectorized(4):\n"
        '        with block("A", vt=ordered(5, t), vi=spatial(4, i)):\n'
        "            A[vt, vi] = select(vt < 1, X[vt, vi], "
        "select(vi < 3, B[vt - 1, vi + 1], 0.0) + X[vt, vi])\n"
        "            B[vt, vi] = select(vt < 1, X[vt, vi] + 1.0, A[vt - 1, vi] - X[vt, vi])"
    )


def test_the_axis_beside_the_steps_is_cut_shared_out_and_vectorised() -> None:
    assert body_of(proved(running(5, 10), panels)) == (
        'for j_0 in parallel(3, tail="mask"):\n'
        "    for i in range(5):\n"
        "        for j_1 in vectorized(4):\n"
        '            with block("S", vi=ordered(5, i), vj=spatial(10, j_0 * 4 + j_1)):\n'
        "                where(j_0 * 4 + j_1 < 10)\n"
        "                S[vi, vj] = select(vi < 1, X[vi, vj], S[vi - 1, vj] + X[vi, vj])"
    )


def rows(sch: Schedule) -> None:
    t, i = sch.loops("S")
    row, chain = sch.split(i, (None, 2), tail="partition")
    sch.reorder(row, t, chain)
    sch.unroll(chain)
    sch.parallel(row)


def tiled_steps(sch: Schedule) -> None:
    t, i = sch.loops("S")
    outer, inner = sch.split(t, (None, 3), tail="partition")
    sch.reorder(outer, inner, i)
    sch.unroll(inner)


def fused(sch: Schedule) -> None:
    sch.fuse(*sch.loops("S"))


def readers_below(sch: Schedule) -> None:
    t, i = sch.loops("S")
    sch.reverse_compute_at("Y", t)
    sch.vectorize(i)


def cut_in_two(sch: Schedule) -> None:
    sch.loop_partition(sch.loops("S")[0], (3,))


def copied(sch: Schedule) -> None:
    sch.cache_write("S", "S_made")


def own_storage(sch: Schedule) -> None:
    t, i = sch.loops("S")
    sch.reorder(i, t)
    sch.reverse_compute_at("Y", i)
    sch.set_scope("S", "thread")
    sch.parallel(i)


def doubled(m: int, n: int) -> PrimFunc:
    """Y = 2 S, S the running sums of X."""
    x = te.placeholder((m, n), "float32", name="X")
    state = te.state((m, n), "float32", name="S")
    first = te.compute((1, n), lambda t, i: x[t, i], name="first")
    step = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="step")
    s = te.scan(first, step, state)
    y = te.compute((m, n), lambda t, i: s[t, i] * 2.0, name="Y")
    return te.func(x, y, name="doubled")


def scan_above(sch: Schedule) -> None:
    t, i = sch.loops("Y")
    sch.reorder(i, t)
    sch.compute_at("S", i)


def lines_above(sch: Schedule) -> None:
    i, b, t = sch.loops("Y")
    sch.reorder(b, i, t)
    sch.compute_at("S", b)


def lines(steps: int, rows: int) -> PrimFunc:
    """Y = S turned, S steps of comparators between four lines, in each of some rows."""
    x = te.placeholder((rows, 4), "float32", name="X")
    state = te.state((steps, 4, rows), "float32", name="S")
    first = te.compute((1, 4, rows), lambda t, i, b: x[b, i], name="first")

    def compared(t: Expr, i: Expr, b: Expr) -> Expr:
        one, other = state[t - 1, i // 2, b], state[t - 1, i // 2 + 2, b]
        return te.select(te.eq(i % 2, 0), te.minimum(one, other), te.maximum(one, other))

    made = te.scan(first, te.compute((steps, 4, rows), compared, name="step"), state)
    y = te.compute((4, rows, steps), lambda i, b, t: made[t, i, b] * 2.0, name="Y")
    return te.func(x, y, name="lines")


def decay(m: int, n: int) -> PrimFunc:
    """S = half of the step before, and X: a multiply-add that waits for itself."""
    x = te.placeholder((m, n), "float32", name="X")
    state = te.state((m, n), "float32", name="S")
    first = te.compute((1, n), lambda t, i: x[t, i], name="first")
    step = te.compute((m, n), lambda t, i: state[t - 1, i] * 0.5 + x[t, i], name="step")
    return te.func(x, te.scan(first, step, state), name="decay")


def summed_products(m: int, n: int) -> PrimFunc:
    """S = the running sums, along the rows, of X W."""
    x = te.placeholder((m, n), "float32", name="X")
    w = te.placeholder((m, n), "float32", name="W")
    state = te.state((m, n), "float32", name="S")
    p = te.compute((m, n), lambda i, j: x[i, j] * w[i, j], name="P")
    first = te.compute((m, 1), lambda i, t: p[i, t], name="first")
    step = te.compute((m, n), lambda i, t: state[i, t - 1] + p[i, t], name="step")
    return te.func(x, w, te.scan(first, step, state, axis=1), name="summed")


def scan_below(sch: Schedule) -> None:
    sch.reverse_compute_at("S", sch.loops("P")[1])


def scan_below_turned(sch: Schedule) -> None:
    i, j = sch.loops("P")
    j = sch.split(j, (None, 2), tail="guard")
    sch.reorder(j[1], i, j[0])
    sch.reverse_compute_at("S", j[0])


RIGHT: dict[str, tuple[PrimFunc, Steps]] = {
    "panels": (running(5, 10), panels),
    "panels from the end": (running(5, 10, reverse=True), panels),
    "along rows": (running(5, 10, axis=1), rows),
    "along rows from the end": (running(5, 10, axis=1, reverse=True), rows),
    "a multiply-add": (decay(5, 10), panels),
    "steps in parts": (wave(8, 4), tiled_steps),
    "below what it reads": (summed_products(3, 4), scan_below),
    "one loop": (wave(4, 3), fused),
    "readers below": (wave(6, 5), readers_below),
    "above its reader": (doubled(4, 6), scan_above),
    "lines above their reader": (lines(3, 5), lines_above),
    "cut in two": (wave(6, 3), cut_in_two),
    "copied": (wave(5, 3), copied),
    "two states": (cell(5, 10), panels),
    "two states, one loop": (braid(4, 3), lambda sch: sch.fuse(*sch.loops("A"))),
    "two states, cut in two": (
        braid(6, 3),
        lambda sch: sch.loop_partition(sch.loops("A")[0], (3,)),
    ),
    "one step": (running(1, 5), panels),
    "no steps": (running(0, 5), panels),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_schedule_of_a_scan_is_proved(name: str) -> None:
    proved(*RIGHT[name])


def test_a_scan_has_storage_of_its_own_where_an_iteration_reads_no_other_one() -> None:
    text = body_of(proved(doubled(4, 6), own_storage))
    assert text.startswith('for i in parallel(6):\n    S = alloc(float32[4, 6], "thread")\n')


def swapped(sch: Schedule) -> None:
    t, i = sch.loops("S")
    sch.reorder(i, t)


def lanes_of_steps(sch: Schedule) -> None:
    t, i = sch.loops("S")
    sch.reorder(i, t)
    sch.vectorize(t)


def swapped_states(sch: Schedule) -> None:
    t, i = sch.loops("A")
    sch.reorder(i, t)


def parallel_steps(sch: Schedule) -> None:
    sch.parallel(sch.loops("S")[0])


def thread_of_steps(sch: Schedule) -> None:
    t, _ = sch.loops("S")
    sch.reverse_compute_at("Y", t)
    sch.set_scope("S", "thread")


WRONG: dict[str, tuple[PrimFunc, Steps]] = {
    "scan-order: reorder": (wave(4, 3), swapped),
    "scan-order: reverse_compute_at": (summed_products(3, 4), scan_below_turned),
    "scan-order: reorder: two states": (braid(4, 3), swapped_states),
    "scan-carries: parallel: two states": (
        braid(4, 3),
        lambda sch: sch.parallel(sch.loops("A")[0]),
    ),
    "scan-carries: parallel": (running(4, 3), parallel_steps),
    "scan-carries: vectorize": (running(4, 3), lanes_of_steps),
    "scope-carries: set_scope": (doubled(4, 3), thread_of_steps),
    "recompute-reduction: compute_at": (
        doubled(4, 3),
        lambda sch: sch.compute_at("S", sch.loops("Y")[0]),
    ),
    "scan-block: compute_inline": (doubled(4, 3), lambda sch: sch.compute_inline("S")),
    "scan-block: stage": (
        running(4, 3),
        lambda sch: sch.stage("S", "S", sch.loops("S")[0], "register"),
    ),
    "scan-block: transform_layout": (
        doubled(4, 3),
        lambda sch: sch.transform_layout("S", lambda t, i: (i, t)),
    ),
}


def test_refusals_of_steps_on_a_scan(golden: Callable[[str, str], None]) -> None:
    text = refusals(WRONG)
    for name in WRONG:
        assert f"[{name.split(':')[0]}]" in text
    golden("errors/scan_steps.txt", text)


def off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the checks of recurrences off."""
    for name in ("check_order", "check_carries_nothing", "carried"):
        replace_everywhere(monkeypatch, recurrence, name, lambda *_: None)


@pytest.mark.parametrize(
    "name", [name for name in WRONG if name.startswith("sc") and "block" not in name]
)
def test_what_is_refused_goes_wrong_when_the_rule_is_off(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func, steps = WRONG[name]
    off(monkeypatch)
    sch = Schedule(func).apply(steps)
    arrays = integers(func)
    try:
        results = interpret(sch.func, *arrays.values(), checked=True)
    except InterpreterError:
        results = None
    expected = [evaluate(func, arrays)[buffer.name] for buffer in func.outputs]
    assert results is None or not all(map(np.array_equal, results, expected))
    verdict = prove(lower_to_nest(sch.func), canonical_form(func))
    assert verdict.status == "refuted", str(verdict)


def test_data_in_an_index_leaves_the_order_open() -> None:
    x = te.placeholder((4, 3), "float32", name="X")
    at = te.placeholder((3,), "int64", name="at")
    state = te.state((4, 3), "float32", name="S")
    first = te.compute((1, 3), lambda t, i: x[t, i], name="first")
    step = te.compute(
        (4, 3), lambda t, i: state[t - 1, te.clamp_index(at[i], 3)] + x[t, i], name="step"
    )
    func = te.func(x, at, te.scan(first, step, state), name="jumping")
    assert refused(func, swapped).startswith(
        "ScheduleError: reorder: whether the steps of a recurrence stay in order cannot be shown: "
        "block 'S' reads 'S' at data while it sets it. [scan-undecided]\n"
    )


@pytest.mark.sampled(2)
@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", RIGHT)
def test_c_computes_a_scheduled_scan(name: str) -> None:
    func, steps = RIGHT[name]
    arrays = integers(func)
    results = tw.build(Schedule(func).apply(steps))(*arrays.values())
    listed = results if isinstance(results, tuple) else (results,)
    for buffer, result in zip(func.outputs, listed, strict=True):
        np.testing.assert_array_equal(result, evaluate(func, arrays)[buffer.name])


@pytest.mark.isa
@pytest.mark.needs_cc
def test_two_states_have_the_same_bits_on_any_number_of_threads() -> None:
    func = cell(9, 43)
    arrays = integers(func)
    kernel = tw.build(Schedule(func).apply(panels))
    one, two, three = (kernel(*arrays.values(), threads=n) for n in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
