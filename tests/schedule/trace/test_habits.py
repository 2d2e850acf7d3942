"""schedule/trace/habits.py: arguments as other systems take them are answered with ours."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace

from ..programs import matmul


def refusal(step: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as caught:
        step()
    return str(caught.value)


def test_one_factor_is_answered_with_all_of_them() -> None:
    sch = Schedule(matmul(16, 16, 16))
    i, *_ = sch.loops("C")
    text = (
        "ArgumentFormError: split: got {}; expected the extents of all new loops, outermost first, "
        "of which one may be None. [split-form]\n"
        "  Hint: in tilewright: outer, inner = sch.split(i, {})."
    )
    assert refusal(lambda: sch.split(i, 8)) == text.format("factors=8", "(None, 8)")  # type: ignore[arg-type]
    assert refusal(lambda: sch.split(i, factor=4)) == text.format("factor=4", "(None, 4)")  # type: ignore[arg-type]
    assert refusal(lambda: sch.split(i, nparts=2)) == text.format("nparts=2", "(2, None)")  # type: ignore[arg-type]
    assert refusal(lambda: sch.split(i, (2, None), nparts=2)) == text.format(  # type: ignore[arg-type]
        "factors=(2, None), nparts=2", "(2, None)"
    )
    assert refusal(lambda: sch.split(i)) == text.format("no factors", "(None, 8)")
    assert not sch.steps


@pytest.mark.parametrize(
    ("scope", "ours"),
    [("local", "register"), ("shared", "shared"), ("shared.dyn", "shared"), ("team", "shared")],
)
def test_a_scope_is_no_name_of_a_copy(scope: str, ours: str) -> None:
    sch = Schedule(matmul(16, 16, 16))
    assert refusal(lambda: sch.cache_write("C", scope)) == (
        f"ArgumentFormError: cache_write: the name of the copy is '{scope}', which is a scope of "
        "memory; expected another name, or none. [cache-name]\n"
        "  Hint: in tilewright: sch.cache_write(...) makes the copy, and "
        f"sch.set_scope(copy, '{ours}') says where it lies."
    )
    assert "cache_read: the name of the copy" in refusal(lambda: sch.cache_read("C", "A", scope))
    assert not sch.steps


def test_a_trace_with_such_a_name_is_replayed() -> None:
    func = matmul(4, 4, 4)
    sch = Schedule(func)
    sch.cache_write("C", "kept")
    text = json.dumps(sch.trace.to_json()).replace('"kept"', '"local"')
    trace = Trace.from_json(json.loads(text))
    assert "local" in Schedule.replay(func, trace).blocks()
