"""Sources of schedules: a protocol, and a callable as one."""

from __future__ import annotations

import pytest

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import ScheduleSource, as_source, schedule_from
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

TARGET = Target.parse("c:avx512")


def relu() -> PrimFunc:
    x = te.placeholder((8,), "float32", name="x")
    y = te.compute((8,), lambda i: te.maximum(x[i], 0.0), name="y")
    return te.func(x, y, name="relu")


class Log:
    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return 1.5


def test_an_object_with_both_methods_is_a_source() -> None:
    log = Log()
    assert as_source(log) is log
    assert isinstance(log, ScheduleSource)


def test_none_stays_none() -> None:
    assert as_source(None) is None


def test_a_callable_becomes_a_source_that_knows_no_times() -> None:
    func = relu()
    chosen = Schedule(func)
    source = as_source(lambda f, target: chosen if f is func else None)
    assert source is not None
    assert source.schedule(func, TARGET) is chosen
    assert source.schedule(relu(), TARGET) is None
    assert source.seconds(func, TARGET) is None


def test_anything_else_is_refused() -> None:
    with pytest.raises(ScheduleError) as caught:
        as_source(3)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "ScheduleError: schedules: 3 is no source of schedules; expected methods 'schedule' and "
        "'seconds', or a function of (func, target). [source-kind]\n"
        "  Hint: schedules=tilewright.TuningLog(path) takes those of a tuning log."
    )


def test_a_schedule_of_an_equal_function_is_taken() -> None:
    func = relu()
    for given in (func, relu()):
        source = as_source(lambda *_, given=given: Schedule(given, TARGET))
        assert source is not None
        found = schedule_from(source, func, TARGET)
        assert found is not None
        assert found.original is given


def test_a_schedule_of_another_function_is_refused() -> None:
    x = te.placeholder((8,), "float32", name="x")
    other = te.func(x, te.compute((8,), lambda i: x[i] * 2, name="y"), name="twice")
    source = as_source(lambda *_: Schedule(other, TARGET))
    assert source is not None
    with pytest.raises(ScheduleError) as caught:
        schedule_from(source, relu(), TARGET)
    assert str(caught.value) == (
        "ScheduleError: schedules: for 'relu' the source returned a schedule of 'twice', another "
        "function; expected one of the function that it was given. [source-function]\n"
        "  Hint: begin with tw.Schedule(func, target), of the source's own argument."
    )


def test_what_is_no_schedule_is_refused() -> None:
    source = as_source(lambda func, _: func)
    assert source is not None
    with pytest.raises(ScheduleError) as caught:
        schedule_from(source, relu(), TARGET)
    assert str(caught.value) == (
        "ScheduleError: schedules: for 'relu' the source returned a PrimFunc; expected a Schedule "
        "of it, or None. [source-result]\n"
        "  Hint: tw.Schedule(func, target) is one that takes no step."
    )
