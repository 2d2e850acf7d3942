"""codegen/isa/neon.py: the same schedules, for 64-bit ARM, give the interpreter's bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.c.emit import emit_function
from tilewright.codegen.isa.isa import isa
from tilewright.driver.fuzz.case import Case, draw
from tilewright.driver.fuzz.examine import LoweredCase, differing, examine
from tilewright.driver.fuzz.steps import Tally
from tilewright.driver.lower import lower_function
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64, dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import tensor_intrinsic
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...driver.kernels import KERNELS
from ...schedule.programs import chain
from ...schedule.rules.products.test_dots import EDGES, product
from ..c.emulated import need_emulator, run_emulated
from .test_narrow_vectors import conversion, mixed, numbers

TARGET = Target.parse("c:neon")
MASKED = """
def f(x: int8[4], y: output(int8[4])):
    y[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(2, 4), x[ramp(0, 1, 4)], \
broadcast(int8(-128), 4))
"""
PAIRED = (  # products of two rows or more, of whole groups of eight points
    *("whole vectors on NEON", "an odd row on NEON", "two rows on NEON", "a long sum on NEON"),
    *("weights of each call on NEON", "a 1x1 convolution on NEON"),
    *("a 3x3 convolution of whole groups on NEON", "a 3x3 convolution of stride 2 on NEON"),
    *("pairs of rows of signed bytes", "pairs of rows of unsigned bytes"),
)
BYTE_PAIRS = [
    pair
    for kind in ("int8", "uint8")
    for other in ("float32", "int32")
    for pair in ((kind, other), (other, kind))
]


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
        lowered += [one for one in found.lowered if not one.parts.run.dims]  # the emulator has none
    assert len(lowered) > 5
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name, (_, t) in EDGES.items() if t.isa == "neon"])
def test_products_of_bytes_give_the_interpreters_bits(name: str, tmp_path: Path) -> None:
    func, target = EDGES[name]
    trace = Trace(lower_function(func, target).schedule.trace.steps)
    found = examine(Case(func, trace), (target.instructions,))
    assert found.failure is None, str(found.failure)
    (lowered,) = found.lowered
    text = emit_function(lowered.parts.run, target, "product")
    in_pairs = name in PAIRED
    assert ("mmlaq_" in text) == in_pairs
    assert in_pairs or ("vusdotq_s32(" if target.features == ("i8mm",) else "vdotq_") in text
    need_emulator()
    check([lowered], tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "weights"),
    [
        *(("usdot", data, weights) for data in (0, 255) for weights in (-128, 127)),
        *(("sdot", data, weights) for data in (-128, 127) for weights in (-128, 127)),
        ("udot", 255, 255),
        *(("usmmla", data, weights) for data in (0, 255) for weights in (-128, 127)),
        *(("smmla", data, weights) for data in (-128, 127) for weights in (-128, 127)),
        ("ummla", 255, 255),
    ],
)
def test_products_of_bytes_at_the_ends_of_their_range_are_exact(
    name: str, data: int, weights: int, tmp_path: Path
) -> None:
    need_emulator()
    intrinsic = tensor_intrinsic(name)
    left, right = (buffer.type for buffer in intrinsic.define(4).inputs)
    func = product(3, 8, 64, (str(left), str(right), "int32"))
    target = Target.parse(f"c:{intrinsic.targets[0]}")
    lowered = lower_function(func, target)
    given = {"A": np.full((3, 64), data, left.numpy), "B": np.full((64, 8), weights, right.numpy)}
    got = run_emulated(lowered.parts, target, given, tmp_path)
    np.testing.assert_array_equal(got["C"], np.full((3, 8), 64 * data * weights, np.int32))


@pytest.mark.parametrize(("source", "to"), BYTE_PAIRS)
def test_bytes_are_converted_in_vectors_as_they_mean(source: str, to: str, tmp_path: Path) -> None:
    """With numbers beyond the ends of their range, and a tail."""
    func, x = conversion(source, to, 103), numbers(source, 103)
    lowered = lower_function(func, TARGET)
    assert "vmov" in emit_function(lowered.parts.run, TARGET, "convert")
    (expected,) = interpret(func, x)
    (found,) = interpret(lowered.parts.run, x, checked=True)
    np.testing.assert_array_equal(found, expected)
    need_emulator()
    got = run_emulated(lowered.parts, TARGET, {"x": x}, tmp_path)
    np.testing.assert_array_equal(got["y"], expected)


def test_a_register_of_bytes_keeps_the_lanes_that_a_store_leaves_out() -> None:
    """Whatever the sign of a byte, a mask is as wide as one of float32."""
    tables = isa(TARGET)
    for kind in ("int8", "uint8"):
        assert tables.apply("blend", dtype(kind).with_lanes(4), "m", "a", "b") == (
            "vbsl_u8((uint8x8_t)vmovn_u16(vcombine_u16(vmovn_u32(m), vdup_n_u16(0))), a, b)"
        )
    func = parse(MASKED)
    text = emit_function(func, TARGET, "f")
    assert "vbsl_u8(" in text


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_bytes_are_computed_with_in_vectors(kind: str, tmp_path: Path) -> None:
    func = mixed(kind)
    given = {"a": numbers(kind, 77), "b": numbers(kind, 77)[::-1].copy()}
    lowered = lower_function(func, TARGET)
    text = emit_function(lowered.parts.run, TARGET, "mixed")
    assert "vadd_u8(" in text
    assert ("vmin_s8(" if kind == "int8" else "vmin_u8(") in text
    need_emulator()
    got = run_emulated(lowered.parts, TARGET, given, tmp_path)
    np.testing.assert_array_equal(got["y"], interpret(func, *given.values())[0])
