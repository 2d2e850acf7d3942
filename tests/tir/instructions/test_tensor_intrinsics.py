"""tir/instructions/tensor_intrinsics.py: each does what exact arithmetic, rounded as it says, does
in a lane.
"""

from __future__ import annotations

import pickle
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilewright.tir.instructions.tensor_intrinsics import (
    SDOT,
    TENSOR_INTRINSICS,
    UDOT,
    USDOT,
    VDPBF16PS,
    VPDPBUSD,
    VPDPWSSD,
    VPMADDWD,
    TensorIntrinsic,
)
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, VerificationError, verify

LOWERED = """
def dot(a: uint8[4], b: int8[64], c: output(int32[16])):
    c[ramp(0, 1, 16)] = broadcast(int32(5), 16)
    c[ramp(0, 1, 16)] = vpdpbusd(c[ramp(0, 1, 16)], broadcast(reinterpret(a[ramp(0, 1, 4)], \
"int32"), 16), reinterpret(b[ramp(0, 1, 64)], "int32x16"))
"""


@pytest.mark.parametrize("lanes", VPDPBUSD.lanes)
def test_vpdpbusd_adds_four_products_and_wraps_around(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    a = rng.integers(0, 256, (lanes, 4)).astype(np.uint8)
    b = rng.integers(-128, 128, (lanes, 4)).astype(np.int8)
    a[0], b[0] = 255, 127
    c = rng.integers(-5, 5, lanes).astype(np.int32)
    c[0] = 2**31 - 1
    result = VPDPBUSD.meaning(c, a.view(np.int32)[:, 0], b.view(np.int32)[:, 0])
    expected = c + np.sum(a.astype(np.int32) * b.astype(np.int32), axis=1, dtype=np.int32)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.int32


@pytest.mark.parametrize("lanes", VPDPWSSD.lanes)
def test_vpdpwssd_adds_two_products_and_wraps_around(lanes: int) -> None:
    """Two products of -2**15 by itself are 2**31, one more than an int32 holds."""
    rng = np.random.default_rng(lanes)
    a, b = (rng.integers(-(2**15), 2**15, (lanes, 2)).astype(np.int16) for _ in range(2))
    c = rng.integers(-(2**31), 2**31, lanes).astype(np.int32)
    a[0], b[0], c[0] = -(2**15), -(2**15), 5
    result = VPDPWSSD.meaning(c, a.view(np.int32)[:, 0], b.view(np.int32)[:, 0])
    exact = c + np.sum(a.astype(np.int64) * b.astype(np.int64), axis=1)
    np.testing.assert_array_equal(result, exact.astype(np.int32))
    assert (result.dtype, result[0]) == (np.int32, 5 - 2**31)


@pytest.mark.parametrize(
    ("intrinsic", "left", "right"),
    [(USDOT, np.uint8, np.int8), (SDOT, np.int8, np.int8), (UDOT, np.uint8, np.uint8)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_products_of_arm_add_four_products_and_wrap_around(
    intrinsic: TensorIntrinsic, left: type, right: type
) -> None:
    rng = np.random.default_rng(0)
    ends = [(np.iinfo(kind).min, np.iinfo(kind).max) for kind in (left, right)]
    a, b = (
        rng.integers(low, high, (4, 4), kind, endpoint=True)
        for kind, (low, high) in zip((left, right), ends, strict=True)
    )
    a[0], b[0] = ends[0][1], ends[1][1]
    a[1], b[1] = ends[0][1], ends[1][0]
    c = np.array([2**31 - 1, -5, 5, 0], np.int32)
    result = intrinsic.meaning(c, a.view(np.int32)[:, 0], b.view(np.int32)[:, 0])
    exact = c + np.sum(a.astype(np.int64) * b.astype(np.int64), axis=1)
    np.testing.assert_array_equal(result, exact.astype(np.int32))
    assert intrinsic.lanes == (4,)


@pytest.mark.parametrize(
    ("name", "lanes", "features"),
    [
        ("c:avx512+vnni+bf16", (16, 8, 4), ("vnni",)),
        ("c:avx2+vnni", (8, 4), ("vnni",)),
    ],
)
def test_lanes_are_those_that_the_registers_of_a_target_hold(
    name: str, lanes: tuple[int, ...], features: tuple[str, ...]
) -> None:
    target = Target.parse(name)
    assert VPDPBUSD.lanes_on(target) == lanes
    assert VPDPBUSD.features_on(target) == features
    assert VPMADDWD.features_on(Target.parse("c:avx2+vnni")) == ()
    assert not VPDPBUSD.is_on(Target.parse("c:avx2"))
    assert VPDPBUSD.needs == "c:avx512+vnni or c:avx2+vnni"


def test_one_lane_is_a_number() -> None:
    assert int(VPDPBUSD.meaning(1, 0x01FF, 0x0280)) == 1 + 255 * -128 + 2
    assert int(VPDPWSSD.meaning(1, 0x0001FFFF, 0x00030002)) == 1 - 2 + 3
    assert float(VDPBF16PS.meaning(np.float32(1), *pair((2, 3), (4, 5)))) == 1 + 2 * 4 + 3 * 5


SMALLEST = Fraction(2) ** -126  # of the normal numbers


def pair(*operands: tuple[float, float]) -> tuple[np.ndarray, ...]:
    """The bits of one lane of each operand."""
    return tuple(np.array(v, ml_dtypes.bfloat16).view(np.int32)[0] for v in operands)


def normal(value: Fraction) -> Fraction:
    """A value rounded to 24 bits, ties to even; 0 where it lies below the normal numbers then."""
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while value and abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - 23)
    rounded = round(value / step) * step
    return rounded if abs(rounded) >= SMALLEST else Fraction(0)


def two_steps(c: float, a: np.ndarray, b: np.ndarray) -> Fraction:
    """c + a[1]*b[1], then + a[0]*b[0], each rounded once."""
    x, y = ([normal(Fraction(float(v))) for v in operand] for operand in (a, b))
    return normal(normal(normal(Fraction(c)) + x[1] * y[1]) + x[0] * y[0])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("lanes", VDPBF16PS.lanes)
@pytest.mark.parametrize("size", [0, -63])
def test_vdpbf16ps_rounds_each_of_two_steps_once(size: int, lanes: int) -> None:
    """Products of about the size of the accumulators, or of their last bits; at -63 all that is
    about the smallest normal number.
    """
    rng = np.random.default_rng(lanes)
    for _ in range(40):
        lower = rng.choice([0, -12], (lanes, 2))
        values = [
            np.ldexp(rng.uniform(-2, 2, (lanes, 2)), size + lower + rng.integers(-2, 3, (lanes, 2)))
            for _ in range(2)
        ]
        a, b = (v.astype(ml_dtypes.bfloat16) for v in values)
        c = np.ldexp(rng.uniform(-2, 2, lanes), 2 * size).astype(np.float32)
        result = VDPBF16PS.meaning(c, a.view(np.int32)[:, 0], b.view(np.int32)[:, 0])
        assert result.dtype == np.float32
        expected = [two_steps(float(c[lane]), a[lane], b[lane]) for lane in range(lanes)]
        assert [Fraction(float(value)) for value in result] == expected


def test_vdpbf16ps_adds_the_second_product_first() -> None:
    large, tiny = 2.0**30, 1.0
    assert float(VDPBF16PS.meaning(np.float32(-large), *pair((tiny, large), (1, 1)))) == 1.0
    assert float(VDPBF16PS.meaning(np.float32(-large), *pair((large, tiny), (1, 1)))) == 0.0


@pytest.mark.parametrize(
    ("c", "a", "b", "expected"),
    [
        (1e-39, (0, 0), (0, 0), 0.0),
        (-1e-39, (-0.0, -0.0), (0, 0), -0.0),
        (0.0, (1e-39, 0), (1e30, 0), 0.0),
        (-0.0, (-1e-39, 0), (1e30, -0.0), -0.0),
        (0.0, (2.0**-100, 0), (-(2.0**-100), 0), -0.0),
        (2.0**-126, (2.0**-75, 0), (-(2.0**-75) * 0.5, 0), 2.0**-126),  # a tie: to even
        (2.0**-126, (2.0**-75, 0), (-(2.0**-75) * 0.75, 0), 0.0),  # the nearest is 2**-126
        (1.0, (1e-39, 0), (np.inf, 0), np.nan),
        (-np.inf, (1, 0), (np.inf, 0), np.nan),
        (0.0, (3e38, 0), (3e38, 0), np.inf),
        (-np.inf, (3e38, 1), (3e38, 1), -np.inf),
        (np.nan, (1, 1), (1, 1), np.nan),
    ],
)
def test_vdpbf16ps_takes_subnormal_numbers_as_zeros_of_their_sign(
    c: float, a: tuple[float, float], b: tuple[float, float], expected: float
) -> None:
    result = VDPBF16PS.meaning(np.float32(c), *pair(a, b))
    np.testing.assert_array_equal(result, np.float32(expected))
    if expected == 0:
        assert np.signbit(result) == np.signbit(expected)


def test_lowered_code_reads_the_bits_of_neighbours() -> None:
    func = parse(LOWERED)
    verify(func, Stage.LOWERED)
    assert str(parse(str(func))) == str(func)
    a = np.array([255, 1, 2, 3], np.uint8)
    b = np.arange(-32, 32).astype(np.int8)
    for checked in (False, True):
        (c,) = interpret(func, a, b, checked=checked)
        expected = 5 + b.reshape(16, 4).astype(np.int32) @ a.astype(np.int32)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("wrong", ['"int32x8"), 16', '"float32x16"), 16'])
def test_operands_of_another_type_are_refused(wrong: str) -> None:
    text = LOWERED.replace('"int32x16"))', f"{wrong.split(')')[0]}))")
    with pytest.raises(VerificationError):
        verify(parse(text), Stage.LOWERED)


@pytest.mark.parametrize("name", TENSOR_INTRINSICS)
def test_an_intrinsic_goes_through_pickle_as_itself(name: str) -> None:
    intrinsic = TENSOR_INTRINSICS[name]
    assert pickle.loads(pickle.dumps(intrinsic)) is intrinsic


def test_a_tensorized_loop_names_its_intrinsic() -> None:
    text = (
        "def f(a: output(int32[4])):\n"
        '    for i in tensorized(4, intrinsic="vpdpbssd"):\n'
        '        with block("a", vi=spatial(4, i)):\n'
        "            a[vi] = int32(0)\n"
    )
    with pytest.raises(VerificationError) as caught:
        verify(parse(text), Stage.SCHEDULED)
    assert str(caught.value) == (
        "VerificationError: verify: loop 'i' is tensorized and has intrinsic 'vpdpbssd'; expected "
        "a known one on a tensorized loop, and none elsewhere. [verify-intrinsic]\n"
        "  in f, stage scheduled:\n"
        '      for i in tensorized(4, intrinsic="vpdpbssd"):\n'
        '          with block("a", vi=spatial(4, i)):\n'
        "              a[vi] = int32(0)\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )
