"""Sources of schedules: a protocol, and a callable as one."""

from __future__ import annotations

import pytest

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import ScheduleSource, as_source
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
        "'seconds', or a function of (func, target). [source-kind]"
    )
