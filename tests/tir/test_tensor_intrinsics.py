"""tir/tensor_intrinsics.py: each does what NumPy says its definition does, lane by lane."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tilewright.tir.interpreter import interpret
from tilewright.tir.parser import parse
from tilewright.tir.tensor_intrinsics import TENSOR_INTRINSICS, VPDPBUSD
from tilewright.tir.verify import Stage, VerificationError, verify

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


def test_one_lane_is_a_number() -> None:
    assert int(VPDPBUSD.meaning(1, 0x01FF, 0x0280)) == 1 + 255 * -128 + 2


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
