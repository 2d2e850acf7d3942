"""schedule/trace/steps.py and what a schedule shows of itself: its nest, and the steps that led
there.
"""

from __future__ import annotations

import html
import re

import pytest

import tilewright as tw
from tilewright import te
from tilewright.tir.func import PrimFunc

STEPS = """\
B_packed = cache_read("C", "B", name="B_packed")
B_packed_0, B_packed_1, B_packed_2 = transform_layout("B_packed", index_map="lambda i0, i1: \
(i1 // 16, i0, i1 % 16)")
parallel(B_packed_0)
vectorize(B_packed_2)
i_0, i_1 = split(i, factors=(None, 4), tail="partition")
j_0, j_1 = split(j, factors=(None, 16), tail="mask")
8 = sample_categorical(candidates=(8, 4), default=0)
reorder(j_0, i_0, k, i_1, j_1)
f = fuse(j_0, i_0)
unroll(i_1)
vectorize(j_1)"""


@pytest.fixture
def matmul() -> PrimFunc:
    a = te.placeholder((32, 24), "float32", name="A")
    b = te.placeholder((24, 40), "float32", name="B", constant=True)
    k = te.reduce_axis(24, name="k")
    c = te.compute((32, 40), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")


@pytest.fixture
def schedule(matmul: PrimFunc) -> tw.Schedule:
    def steps(sch: tw.Schedule) -> None:
        sch.pack("B", width=16)
        i, j, k = sch.loops("C")
        i, ii = sch.split(i, (None, 4), tail="partition")
        j, jj = sch.split(j, (None, 16), tail="mask")
        sch.sample_categorical((8, 4))
        sch.reorder(j, i, k, ii, jj)
        sch.fuse(j, i)
        sch.unroll(ii)
        sch.vectorize(jj)

    return tw.Schedule(matmul).apply(steps)


def test_steps_read_like_the_lines_that_take_them(schedule: tw.Schedule) -> None:
    got = [re.sub(r"^\w+ = fuse", "f = fuse", line) for line in schedule.steps]
    assert "\n".join(got) == STEPS


def test_a_replayed_schedule_lists_the_same_steps(schedule: tw.Schedule) -> None:
    again = tw.Schedule.replay(schedule.original, schedule.trace)
    assert again.steps == schedule.steps


def test_show_prints_the_nest_and_the_steps(
    schedule: tw.Schedule, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule.show()
    lines = "".join(f"# {number}: {line}\n" for number, line in enumerate(schedule.steps))
    assert capsys.readouterr().out == f"{schedule.func}\n{lines}"


def test_the_html_of_a_schedule_holds_its_nest_and_its_steps(schedule: tw.Schedule) -> None:
    shown = html.unescape(re.sub("<[^>]*>", "", schedule._repr_html_()))
    assert shown.startswith(str(schedule.func))
    assert "11 steps so far" in shown
    assert ' 4  i_0, i_1 = split(i, factors=(None, 4), tail="partition")\n' in shown


def test_the_html_of_a_schedule_without_steps_is_the_nest_alone(matmul: PrimFunc) -> None:
    assert tw.Schedule(matmul)._repr_html_() == matmul._repr_html_()


def test_reset_takes_back_every_step(schedule: tw.Schedule, matmul: PrimFunc) -> None:
    kept = schedule.copy()
    assert schedule.reset() is schedule
    assert schedule.func is matmul
    assert schedule.steps == ()
    assert len(kept.steps) == 11


def test_compare_shows_the_nest_before_the_last_step_and_after_it(matmul: PrimFunc) -> None:
    sch = tw.Schedule(matmul)
    i, j, _ = sch.loops("C")
    sch.parallel(i)
    before = str(sch)
    sch.split(j, (None, 8))
    compared = sch.compare()
    assert (compared.before, compared.after) == (before, str(sch))
    assert compared.steps == ('j_0, j_1 = split(j, factors=(None, 8), tail="guard")',)


def test_compare_goes_back_as_many_steps_as_it_is_told(
    schedule: tw.Schedule, matmul: PrimFunc
) -> None:
    compared = schedule.compare(len(schedule.steps))
    assert (compared.before, compared.after) == (str(matmul), str(schedule))
    assert compared.steps == schedule.steps


@pytest.mark.parametrize("steps", [0, -1, 12, True, 1.0])
def test_compare_refuses_steps_that_were_not_taken(schedule: tw.Schedule, steps: int) -> None:
    with pytest.raises(tw.ScheduleError) as caught:
        schedule.compare(steps)
    assert str(caught.value) == (
        f"ScheduleError: compare: steps is {steps!r}; expected 1 to the number of steps so far, "
        "11. [compare-steps]"
    )


def test_the_line_of_rfactor_names_the_block_that_it_returns(matmul: PrimFunc) -> None:
    sch = tw.Schedule(matmul)
    k = sch.loops("C")[2]
    assert sch.rfactor("C", k) == "C_rf"
    assert sch.steps == ('C_rf = rfactor("C", k)',)
