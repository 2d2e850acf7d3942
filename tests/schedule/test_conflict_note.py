"""schedule/conflict_note.py: the two iterations of a refusal, as values and drawn."""

from __future__ import annotations

import pickle
import re

import pytest

from tilewright import te
from tilewright.schedule.conflict_note import ConflictNote
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import Iteration

FIRST = Iteration("P", (("i", 2), ("j", 40)))
SECOND = Iteration("Q<b>", (("i", 31), ("j", 7)))
NOTE = ConflictNote.of("both touch it.", FIRST, SECOND, "P[2, 40]")


def refusal() -> ScheduleError:
    """The vectorization of a reduction."""
    A = te.placeholder((4, 8), "float32", name="A")
    k = te.reduce_axis(8, name="k")
    S = te.compute((4,), lambda i: te.sum(A[i, k], k), name="S")
    schedule = Schedule(te.func(A, S, name="rows"))
    with pytest.raises(ScheduleError) as caught:
        schedule.vectorize(schedule.loops("S")[1])
    return caught.value


def test_a_refused_conflict_has_its_iterations_as_values() -> None:
    error = refusal()
    assert error.conflict == "iterations (i=0, k=0) and (i=0, k=1) both write S[0]."
    assert error.conflict.first == Iteration("S", (("i", 0), ("k", 0)))
    assert error.conflict.second == Iteration("S", (("i", 0), ("k", 1)))
    assert error.conflict.element == "S[0]"
    assert ScheduleError("a", code="b", notes=("c",)).conflict is None


@pytest.mark.parametrize("step", ["reorder", "parallel"])
def test_a_refused_step_of_a_recurrence_has_its_iterations_as_values(step: str) -> None:
    state = te.state((4, 8), "float32", name="S")
    X = te.placeholder((8,), "float32", name="X")
    first = te.compute((1, 8), lambda t, i: X[i], name="first")
    update = te.compute((4, 8), lambda t, i: state[t - 1, te.minimum(i + 1, 7)], name="update")
    schedule = Schedule(te.func(X, te.scan(first, update, state), name="shift"))
    t, i = schedule.loops("S")
    with pytest.raises(ScheduleError) as caught:
        schedule.reorder(i, t) if step == "reorder" else schedule.parallel(t)
    conflict = caught.value.conflict
    assert conflict is not None
    assert conflict.first.values["t"] < conflict.second.values["t"]
    assert conflict.element == f"S[0, {conflict.first.values['i']}]"
    assert "<svg" in caught.value._repr_html_()


def test_the_iterations_survive_pickling() -> None:
    again = pickle.loads(pickle.dumps(refusal()))
    assert again.conflict.second == Iteration("S", (("i", 0), ("k", 1)))
    assert str(again) == str(refusal())


def test_the_refusal_is_drawn_below_its_text() -> None:
    shown = refusal()._repr_html_()
    assert shown.startswith("<pre ")
    assert shown.count("<svg") == 1
    assert ">both touch S[0]</text>" in shown


def test_far_iterations_are_drawn_with_what_lies_between_left_out() -> None:
    drawn = NOTE.picture().svg
    assert drawn.count(">\u2026</text>") == 3  # twice along i, once along j
    assert "1: P(i=2, j=40)" in drawn
    assert "2: Q&lt;b&gt;(i=31, j=7)" in drawn
    assert "<polyline" in drawn


def test_runs_without_a_common_loop_share_one_place() -> None:
    other = ConflictNote.of("x", Iteration("P", (("i", 1),)), Iteration("Q", (("j", 1),)), "P[1]")
    assert ">1, 2</text>" in other.picture().svg


def test_rows_and_columns_are_the_innermost_loops_that_differ() -> None:
    one = Iteration("P", (("i", 1), ("j", 0), ("k", 0), ("l", 5)))
    other = Iteration("Q", (("i", 2), ("j", 3), ("k", 1), ("l", 5)))
    drawn = ConflictNote.of("x", one, other, "P[1]").picture().svg
    assert [loop for loop in "ijkl" if f">{loop}</text>" in drawn] == ["j", "k"]


def test_an_arrow_leads_from_the_first_run_to_the_second_unless_they_are_neighbours() -> None:
    first, near, far = (Iteration("P", (("i", 0), ("j", at))) for at in (0, 1, 3))
    assert "<polyline" not in ConflictNote.of("x", first, near, "P[0]").picture().svg
    for one, other in ((first, far), (far, first)):
        drawn = ConflictNote.of("x", one, other, "P[0]").picture().svg
        shaft = re.findall(r'<polyline points="([^"]*)"', drawn)[0].split()
        start, end = (float(point.split(",")[0]) for point in shaft)
        assert (start < end) == (one is first)
