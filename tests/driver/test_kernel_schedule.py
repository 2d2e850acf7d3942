"""driver/build_kernel.py: a kernel keeps the schedule that it was built by."""

from __future__ import annotations

import pickle

import pytest

import tilewright as tw
from tilewright import te
from tilewright.tir.func import PrimFunc


def scaled() -> PrimFunc:
    X = te.placeholder((64,), "float32", name="X")
    return te.func(X, te.compute((64,), lambda i: X[i] * 2.0, name="Y"), name="scaled")


def split() -> tw.Schedule:
    schedule = tw.Schedule(scaled())
    schedule.split(schedule.loops("Y")[0], (None, 8))
    return schedule


@pytest.mark.needs_cc
def test_a_schedule_by_hand_is_kept_as_it_was() -> None:
    schedule = split()
    kernel = tw.build(schedule, "c:scalar")
    before = schedule.steps
    schedule.vectorize(schedule.loops("Y")[1])
    assert kernel.schedule is not None
    assert kernel.schedule.steps == before


@pytest.mark.needs_cc
def test_a_step_on_what_it_gives_changes_nothing_of_the_kernel() -> None:
    kernel = tw.build(split(), "c:scalar")
    shown, tried = kernel.source._repr_html_(), kernel.schedule
    assert isinstance(tried, tw.Schedule)
    tried.unroll(tried.loops("Y")[1])
    assert kernel.schedule is not None
    assert len(kernel.schedule.steps) == len(tried.steps) - 1
    assert kernel.source._repr_html_() == shown


@pytest.mark.needs_cc
def test_the_schedule_of_a_rule_builds_the_same_kernel_again() -> None:
    kernel = tw.build(scaled(), "c:avx2", verify="off")
    schedule = kernel.schedule
    assert isinstance(schedule, tw.Schedule)
    assert schedule.origin == "rule"
    assert any("vectorize" in step for step in schedule.steps)
    assert tw.build(schedule, "c:avx2", verify="off").source == kernel.source
    replayed = tw.Schedule.replay(scaled(), schedule.trace)
    assert str(replayed.func) == str(schedule.func)


def test_an_interpreter_has_no_schedule() -> None:
    assert tw.build(scaled(), "python").schedule is None


@pytest.mark.needs_cc
def test_a_pickled_kernel_leaves_it_behind() -> None:
    kernel = tw.build(split(), "c:scalar")
    loaded = pickle.loads(pickle.dumps(kernel))
    assert loaded.schedule is None
    assert loaded.source == kernel.source
    assert loaded.source._repr_html_() != kernel.source._repr_html_()
