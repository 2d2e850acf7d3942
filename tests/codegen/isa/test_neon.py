"""codegen/isa/neon.py: the same schedules, for 64-bit ARM, give the interpreter's bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tilewright.codegen.isa.isa import isa
from tilewright.driver.fuzz.case import Case, draw
from tilewright.driver.fuzz.examine import LoweredCase, differing, examine
from tilewright.driver.fuzz.steps import Tally
from tilewright.driver.lower import lower_function
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...driver.kernels import KERNELS
from ...schedule.programs import chain
from ..c.emulated import need_emulator, run_emulated

TARGET = Target.parse("c:neon")


def test_operands_stand_where_the_instruction_wants_them() -> None:
    tables = isa(TARGET)
    wide = FLOAT32.with_lanes(4)
    assert tables.apply("fma", wide, "a", "b", "c") == "vfmaq_f32(c, a, b)"
    assert tables.apply("blend", wide, "m", "a", "b") == "vbslq_f32(m, a, b)"
    assert tables.apply("ne", FLOAT64.with_lanes(2), "a", "b") == (
        "veorq_u64(vceqq_f64(a, b), vdupq_n_u64(~(uint64_t)0))"
    )
    assert tables.mask_type(4) == "uint32x4_t"
    assert not tables.has("load_masked", wide)
    assert not tables.has("mul", INT64.with_lanes(2))
    assert tables.has("mul", INT32.with_lanes(4))


def test_a_tail_runs_one_after_the_other_behind_the_vectors() -> None:
    sch = Schedule(chain(2, 11))
    for block in sch.blocks():
        sch.vectorize(sch.loops(block)[1])
    text = str(lower_function(sch, TARGET).parts.run)
    assert "ramp(" in text
    assert "for j in range(3):" in text
    assert "mask" not in text


def check(cases: Sequence[LoweredCase], folder: Path) -> None:
    for lowered in cases:
        got = run_emulated(lowered.parts, lowered.target, lowered.given, folder)
        for name, expected in lowered.outputs.items():
            assert not differing(got[name], expected), f"{name}\n{lowered.parts.run}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_schedules_give_the_interpreters_bits(first: int, tmp_path: Path) -> None:
    need_emulator()
    lowered: list[LoweredCase] = []
    for seed in range(first, first + 20):
        found = examine(draw(seed, Tally()).case, ("neon",))
        assert found.failure is None, f"case {seed}: {found.failure}"
        lowered += found.lowered
    assert len(lowered) > 10
    check(lowered, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_rules_make_kernels_that_give_the_interpreters_bits(name: str, tmp_path: Path) -> None:
    need_emulator()
    check(_by_rule(KERNELS[name]()), tmp_path)


def _by_rule(func: PrimFunc) -> list[LoweredCase]:
    trace = Trace(lower_function(func, TARGET).schedule.trace.steps)
    found = examine(Case(func, trace), ("neon",))
    assert found.failure is None, str(found.failure)
    return found.lowered
