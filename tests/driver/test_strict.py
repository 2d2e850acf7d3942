"""driver/lower.py, strict: the roundings of the definition, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.lower import lower_function
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import VDPBF16PS, VPDPBUSD
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.target.target import Target

from ..schedule.programs import conv, in_instructions, matmul, matmul_relu, packed_dots
from ..schedule.rules.test_rows import layer_norm, reduced

AVX512 = Target.parse("c:avx512")
VNNI, BF16 = Target.parse("c:avx512+vnni"), Target.parse("c:avx512+bf16")


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "func",
    [
        matmul_relu(5, 33, 40),
        matmul(2, 17, 1031),
        matmul(6, 20, 1536),
        conv(5, 5, 24, 20),
        reduced("sum", 3, 130),
        layer_norm(4, 37),
    ],
    ids=lambda func: str([b.size for b in func.inputs]),
)
def test_a_strict_kernel_has_the_bits_of_the_definition(func: PrimFunc) -> None:
    rng = np.random.default_rng(3)
    given = {
        p.name: rng.standard_normal(p.buffer.shape).astype(p.dtype.numpy)
        for p in func.parameters
        if p.role != "output"
    }
    constants = {p.name: given[p.name] for p in func.parameters if p.role == "constant"}
    kernel = tw.build(func, strict=True, constants=constants)
    got = kernel(*(given[p.name] for p in func.parameters if p.role == "input"))
    (expected,) = interpret(func, *given.values())
    assert np.asarray(got).tobytes() == expected.tobytes()


def _halves_exchanged(sch: Schedule) -> None:
    outer, inner = sch.split(sch.loops("C")[2], (None, 2))
    sch.reorder(inner, outer)


def _parts(sch: Schedule) -> None:
    sch.rfactor("C", sch.split(sch.loops("C")[2], (None, 2))[0])


def refused(sch: Schedule, target: Target = AVX512) -> str:
    with pytest.raises(ScheduleError) as caught:
        lower_function(sch, target, strict=True)
    assert lower_function(sch, target).verdict.status == "proved"
    return str(caught.value)


def test_a_schedule_that_reorders_a_sum_is_refused() -> None:
    assert refused(Schedule(matmul(1, 1, 4)).apply(_halves_exchanged)) == (
        "ScheduleError: build: the schedule of 'matmul' changes the order of a sum: block 'C' adds "
        "point (vi=0, vj=0, vk=2) before (vi=0, vj=0, vk=1); expected that of its definition, "
        "since the build is strict. [strict-order]\n"
        "  in matmul:\n"
        "  def matmul(A: float32[1, 4], B: float32[4, 1], C: output(float32[1, 1])):\n"
        "      for i in range(1):\n"
        "          for j in range(1):\n"
        "              for k_1 in range(2):\n"
        "                  for k_0 in range(2):\n"
        '                      with block("C", vi=spatial(1, i), vj=spatial(1, j), '
        "vk=reduce(4, k_0 * 2 + k_1)):\n"
        "                          with init():\n"
        "                              C[vi, vj] = 0.0\n"
        "                          C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n"
        "  Note: C(k_1=0, k_0=1) runs before C(k_1=1, k_0=0).\n"
        "  Hint: leave out the steps that reorder its reduction or take it in parts, or build "
        "without strict."
    )


def test_a_schedule_that_sums_in_parts_is_refused() -> None:
    text = refused(Schedule(matmul(2, 3, 4)).apply(_parts))
    assert text.startswith(
        "ScheduleError: build: the schedule of 'matmul' changes the order of a sum: block 'C' is "
        "summed in parts; expected that of its definition, since the build is strict. "
        "[strict-order]\n"
    )
    assert "Note:" not in text


def _one_instruction(sch: Schedule) -> None:
    in_instructions(sch, VDPBF16PS, 4)


def test_an_instruction_that_rounds_in_its_own_way_is_refused() -> None:
    sch = Schedule(packed_dots(VDPBF16PS, 1, 4, 2)).apply(_one_instruction)
    first, *_, last = refused(sch, BF16).splitlines()
    assert first == (
        "ScheduleError: build: loop 'j_1' of 'dots' is computed by 'vdpbf16ps', which adds the "
        "second of two products first and takes subnormal numbers as zero; expected the order and "
        "the roundings of the definition, since the build is strict. [strict-intrinsic]"
    )
    assert last == '  Hint: leave out tensorize(..., "vdpbf16ps"), or build without strict.'


def test_an_instruction_of_integers_is_strict() -> None:
    sch = Schedule(packed_dots(VPDPBUSD, 1, 4, 4))
    in_instructions(sch, VPDPBUSD, 4)
    assert lower_function(sch, VNNI, strict=True).verdict.status == "proved"


def test_rules_take_long_sums_in_parts_only_where_the_build_is_not_strict() -> None:
    func = matmul(8, 33, 2048)
    made = default_schedule(func, AVX512)
    assert any("rfactor" in step for step in made.steps)
    assert refused(made)
    strict = lower_function(func, AVX512, strict=True)
    assert strict.rule == "contraction"
    assert not any("rfactor" in step for step in strict.schedule.steps)
