from __future__ import annotations

from tilewright.codegen.lower.lower import lower_parts, lower_to_nest
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target import Target

from ...tiny_program import add, matmul


def test_what_depends_on_constants_alone_becomes_a_function_of_its_own() -> None:
    schedule = Schedule(matmul("mm"))
    schedule.cache_read("C", "B", "global")
    parts = lower_parts(lower_to_nest(schedule.func), Target.parse("c:scalar"))
    assert parts.prepare is not None
    assert [p.role for p in parts.prepare.parameters] == ["constant", "output"]
    assert [p.role for p in parts.run.parameters] == ["input", "prepared", "output"]


def test_a_function_without_constants_stays_whole() -> None:
    parts = lower_parts(lower_to_nest(add()), Target.parse("c:scalar"))
    assert parts.prepare is None
    assert [p.role for p in parts.run.parameters] == ["input", "input", "output"]
