"""graph/ops/rounded_blocks.py: the levels of data, the order of words, the references beside
products in float64, and what does not fit.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.block_matmul import packed_words, unpacked_words
from tilewright.graph.ops.rounded_blocks import (
    RoundBlocks,
    RoundedBlockMatMul,
    lane_words,
    plain_words,
)
from tilewright.graph.types import TensorType


def test_a_block_has_its_largest_magnitude_at_level_127() -> None:
    x = np.array([[0.5, -4.0, 1.0, 0.0, 2.5, 127.0, -3.5, 1.5, 8.0]], np.float32)
    levels, scales, sums = RoundBlocks(4).reference(x)
    assert scales[0, 0] == np.float32(4) / np.float32(127)
    assert scales[0, 1] == 1.0
    assert levels.dtype == np.int8
    # 1.5 and 2.5 go to the even neighbour; behind the last number are zeros
    assert levels.tolist() == [[16, -127, 32, 0, 2, 127, -4, 2, 127, 0, 0, 0]]
    assert sums.tolist() == [[-79.0, 127.0, 127.0]]


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_levels_are_within_half_a_step(kind: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 2, 70)).astype(np.float32)
    levels, scales, sums = RoundBlocks(32, kind).reference(x)
    assert levels.dtype == kind
    assert np.abs(levels).max() == 127
    numbers = levels.reshape(3, 2, 3, 32) * scales[..., None].astype(float)
    apart = np.abs(numbers.reshape(3, 2, 96)[..., :70] - x)
    assert (apart <= np.repeat(scales, 32, axis=-1)[..., :70] * 0.50001).all()
    assert (sums == levels.reshape(3, 2, 3, 32).sum(axis=-1)).all()


def special(kind: type[np.floating] = np.float32) -> np.ndarray:
    """Blocks of zeros, of numbers whose scale has no reciprocal, of NaN, of infinity."""
    x = np.ones((5, 4), kind)
    x[0], x[1], x[2, 1], x[3, 1], x[4, 2] = 0.0, 1e-38, np.nan, np.inf, 1e-36
    return x


def test_blocks_without_a_scale_are_zeros() -> None:
    levels, scales, sums = RoundBlocks(4).reference(special())
    assert (levels[:2] == 0).all()
    assert scales[0, 0] == 0
    assert 0 < scales[1, 0] < 2.0**-126
    assert not np.isfinite(scales[2:4]).any()
    assert (levels[2:4] == 0).all()
    assert levels[4].tolist() == [127, 127, 0, 127]
    assert (sums[:4] == 0).all()


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", ["c:avx2", "c:scalar", ""])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_a_kernel_gives_the_bits_of_the_reference(kind: str, target: str) -> None:
    op = RoundBlocks(4, kind)
    random = (
        np.random.default_rng(1).standard_normal((7, 4)) * 10.0 ** np.arange(-36, 34, 10)[:, None]
    )
    halves = np.arange(28).reshape(7, 4) / 2
    for given in (special(), random.astype(np.float32), halves.astype(np.float32)):
        x = te.placeholder(given.shape, "float32", name="x")
        func = te.func(x, *op.express(x, name="rounded"), name="round_blocks")
        found = tw.build(func, target or None)(given)
        for own, expected in zip(found, op.reference(given), strict=True):
            np.testing.assert_array_equal(own, expected)


@pytest.mark.parametrize("points", [2, 4])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_words_for_instructions_have_the_levels_of_the_others(bits: int, points: int) -> None:
    levels = np.random.default_rng(bits).integers(0, 1 << bits, (64, 5), np.uint8)
    words = packed_words(levels, bits)
    found = lane_words(words, bits, points)
    assert (plain_words(found, bits, points) == words).all()
    parts = found.view(np.uint32)[:, None, None, :]
    at = np.arange(points)[:, None] * (32 // points)
    moved = np.arange(32 // bits // points)[:, None, None] * bits + at
    apart = (parts >> moved[None].astype(np.uint32)) & ((1 << bits) - 1)
    assert (apart.reshape(64, 5) == levels).all()


def test_low_nibbles_are_four_steps_and_high_nibbles_the_next_four() -> None:
    words = packed_words(np.arange(8, dtype=np.uint8)[:, None], 4)
    assert lane_words(words, 4, 4).view(np.uint32).tolist() == [[0x73625140]]
    assert lane_words(words, 4, 2).view(np.uint32).tolist() == [[0x75316420]]
    assert lane_words(packed_words(np.arange(4)[:, None], 8), 8, 4).tolist() == [[0x03020100]]


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_reference_is_a_product_of_what_levels_stand_for(
    bits: int, zeros: bool, kind: str
) -> None:
    rng = np.random.default_rng(bits)
    x = rng.standard_normal((2, 3, 70))
    levels, x_scales, sums = RoundBlocks(32, kind).reference(x)
    words = rng.integers(-(1 << 31), 1 << 31, (96 * bits // 32, 5)).astype(np.int32)
    scales, zero = rng.random((3, 5)), np.full((3, 5), float(1 << (bits - 1)))
    given = (rng.integers(0, 1 << bits, (3, 5)) + 0.25,) if zeros else ()
    zero = given[0] if zeros else zero
    ordered = lane_words(words, bits, 4 if kind == "int8" else 2)
    op = RoundedBlockMatMul(bits, 32)
    (found,) = op.reference(levels, x_scales, sums, ordered, scales, *given)
    weights = unpacked_words(words, bits).astype(float).reshape(3, 32, 5) - zero[:, None]
    numbers = levels.reshape(2, 3, 3, 32) * x_scales[..., None]
    expected = numbers.reshape(2, 3, 96) @ (weights * scales[:, None]).reshape(96, 5)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


X, OF_X = TensorType("int8", (3, 64)), TensorType("float32", (3, 2))
WORDS, OF_W = TensorType("int32", (8, 5)), TensorType("float32", (2, 5))


def test_types_are_those_of_rows_and_columns() -> None:
    found = RoundBlocks(32).infer((TensorType("float32", (3, 50)),))
    assert list(map(str, found)) == ["int8[3, 64]", "float32[3, 2]", "float32[3, 2]"]
    op = RoundedBlockMatMul(4, 32)
    assert op.infer((X, OF_X, OF_X, WORDS, OF_W)) == (TensorType("float32", (3, 5)),)
    assert op.infer((X, OF_X, OF_X, WORDS, OF_W, OF_W)) == (TensorType("float32", (3, 5)),)


@pytest.mark.parametrize(
    ("op", "types", "text"),
    [
        (
            RoundBlocks(32),
            (TensorType("float16", (3, 64)),),
            "RoundBlocks: expected rows of float32 as int8 or int16, got float16[3, 64] as int8. "
            "[round-blocks-types]",
        ),
        (
            RoundBlocks(0),
            (TensorType("float32", (3, 64)),),
            "RoundBlocks: expected blocks of a size, along an axis of a known one, got 0 and "
            "float32[3, 64]. [round-blocks-shape]",
        ),
        (
            RoundedBlockMatMul(4, 1 << 17),
            (X, OF_X, OF_X, WORDS, OF_W),
            "RoundedBlockMatMul: expected blocks of whole words of 2, 4 or 8 bits, of 65536 at "
            "most, got blocks of 131072 of 4 bits. [rounded-blocks-bits]",
        ),
        (
            RoundedBlockMatMul(4, 32),
            (TensorType("uint8", (3, 64)), OF_X, OF_X, WORDS, OF_W),
            "RoundedBlockMatMul: expected levels of x of int8 or int16, levels of int32, and "
            "scales, sums and zeros of float32, got uint8[3, 64], float32[3, 2], float32[3, 2], "
            "int32[8, 5], float32[2, 5]. [rounded-blocks-types]",
        ),
        (
            RoundedBlockMatMul(4, 32),
            (TensorType("int8", (3, 50)), OF_X, OF_X, WORDS, OF_W),
            "RoundedBlockMatMul: expected x [..., 32 * blocks], its scales and sums [..., "
            "blocks], levels [4 * blocks, N] and scales and zeros [blocks, N], got int8[3, 50], "
            "float32[3, 2], float32[3, 2], int32[8, 5], float32[2, 5]. [rounded-blocks-shape]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    op: RoundBlocks | RoundedBlockMatMul, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"
