"""graph/ops/block_matmul.py: what its words stand for, its reference beside a product in float64,
and what does not fit.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.block_matmul import (
    BlockMatMul,
    block_weights,
    dequantised,
    packed_words,
    unpacked_words,
)
from tilewright.graph.types import Array, TensorType
from tilewright.tir.interpreter.interpreter import interpret

from ...driver.kernels import block_matmul


def test_the_first_steps_lie_in_the_lowest_bits() -> None:
    levels = np.arange(8, dtype=np.uint8)[:, None]
    assert packed_words(levels, 4).view(np.uint32).tolist() == [[0x76543210]]
    assert packed_words(levels, 8).view(np.uint32).tolist() == [[0x03020100], [0x07060504]]
    levels = (np.arange(16, dtype=np.uint8) % 4)[:, None]
    assert packed_words(levels, 2).view(np.uint32).tolist() == [[0xE4E4E4E4]]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_levels_are_unpacked_as_they_were_packed(bits: int) -> None:
    levels = np.random.default_rng(bits).integers(0, 1 << bits, (64, 5), np.uint8)
    assert (unpacked_words(packed_words(levels, bits), bits) == levels).all()


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["", "uint8", "float32"])
@pytest.mark.parametrize("steps", [64, 50, 33])
def test_the_reference_is_a_product_of_the_weights_in_float64(
    bits: int, zeros: str, steps: int
) -> None:
    rng = np.random.default_rng(steps)
    levels = rng.integers(0, 1 << bits, (64, 5))
    scales, zero = rng.random((2, 5), np.float32), np.full((2, 5), float(1 << (bits - 1)))
    given: tuple[Array, ...] = ()
    if zeros:
        zero = rng.integers(0, 1 << bits, (2, 5)) + (0.5 if zeros == "float32" else 0.0)
        given = (zero.astype(zeros),)
    x = rng.standard_normal((3, steps))
    weights = np.zeros((64, 5))
    for k in range(64):
        weights[k] = (levels[k] - zero[k // 32]) * scales[k // 32]
    words = packed_words(levels, bits)
    op = BlockMatMul(bits, 32)
    (found,) = op.reference(x, words, scales.astype(np.float64), *given)
    np.testing.assert_allclose(found, x @ weights[:steps], rtol=1e-12, atol=1e-12)
    narrow = dequantised(bits, 32, words, scales, *given)
    assert narrow.dtype == np.float32
    assert (narrow == block_weights(32, levels, scales, zero)).all()


@pytest.mark.parametrize(
    ("bits", "group", "pieces"),
    [
        *((4, 32, 1), (8, 256, 1), (8, 1024, 8), (4, 768, 6), (8, 260, 5), (8, 4 * 67, 1)),
        *((2, 4096, 32), (4, 8 * 41, 1)),  # of 41 words one would be a piece: too short
    ],
)
def test_a_long_block_is_summed_in_pieces_of_whole_words(
    bits: int, group: int, pieces: int
) -> None:
    op = BlockMatMul(bits, group)
    func = block_matmul(op, 2, 2 * group - 3, 5, "uint8")
    (sums,) = (block for block in func.blocks if block.name == "blocks_sums")
    assert [it.extent for it in sums.iters] == [
        *(2, 2 * pieces, 5),
        *(group // op.in_word // pieces, op.in_word),
    ]


@pytest.mark.parametrize("zeros", ["", "uint8", "float32"])
def test_pieces_have_the_scale_and_the_zero_of_their_block(zeros: str) -> None:
    op, rng = BlockMatMul(8, 512), np.random.default_rng(0)
    func = block_matmul(op, 2, 1000, 3, zeros)
    given: dict[str, Array] = {
        "X": rng.integers(-4, 5, (2, 1000)).astype(np.float32),
        "W": rng.integers(-(1 << 31), 1 << 31, (256, 3)).astype(np.int32),
        "S": rng.integers(1, 5, (2, 3)).astype(np.float32),
        "bias": np.zeros(3, np.float32),
    }
    if zeros:
        given["Z"] = rng.integers(0, 200, (2, 3)).astype(zeros)
    (found,) = interpret(func, *(given[p.name] for p in func.parameters if p.role != "output"))
    tables = (given["S"], *((given["Z"],) if zeros else ()))
    (wanted,) = op.reference(given["X"], given["W"], *tables)
    np.testing.assert_array_equal(found, wanted)  # of whole numbers every sum is exact


FLOATS, WORDS = TensorType("float32", (3, 50)), TensorType("int32", (8, 5))
SCALES = TensorType("float32", (2, 5))


def test_the_result_has_the_rows_of_the_data_and_the_columns_of_the_weights() -> None:
    assert BlockMatMul(4, 32).infer((FLOATS, WORDS, SCALES)) == (TensorType("float32", (3, 5)),)
    stack = TensorType("float32", (2, 3, 64))
    zeros = TensorType("uint8", (2, 5))
    found = BlockMatMul(4, 32).infer((stack, WORDS, SCALES, zeros))
    assert found == (TensorType("float32", (2, 3, 5)),)


@pytest.mark.parametrize(
    ("op", "types", "text"),
    [
        (
            BlockMatMul(3, 32),
            (FLOATS, WORDS, SCALES),
            "BlockMatMul: expected blocks of whole words of 2, 4 or 8 bits, got blocks of 32 of 3 "
            "bits. [block-matmul-bits]",
        ),
        (
            BlockMatMul(4, 20),
            (FLOATS, WORDS, SCALES),
            "BlockMatMul: expected blocks of whole words of 2, 4 or 8 bits, got blocks of 20 of 4 "
            "bits. [block-matmul-bits]",
        ),
        (
            BlockMatMul(4, 32),
            (FLOATS, TensorType("uint8", (8, 5)), SCALES),
            "BlockMatMul: expected x of floats, levels of int32, scales in the type of x and zeros "
            "in that type or uint8, got float32[3, 50], uint8[8, 5], float32[2, 5]. "
            "[block-matmul-types]",
        ),
        (
            BlockMatMul(4, 32),
            (TensorType("float32", (3, 32)), WORDS, SCALES),
            "BlockMatMul: expected x [..., K], levels [4 * blocks, N] and scales [blocks, N] with "
            "K in the last of the blocks of 32, got float32[3, 32], int32[8, 5], float32[2, 5]. "
            "[block-matmul-shape]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    op: BlockMatMul, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"


@pytest.mark.parametrize(
    "changed",
    [
        (TensorType("float32", (3, 65)), WORDS, SCALES),
        (FLOATS, TensorType("int32", (9, 5)), SCALES),
        (FLOATS, WORDS, TensorType("float32", (2, 4))),
        (FLOATS, WORDS, SCALES, TensorType("uint8", (1, 5))),
        (TensorType("float32", ()), WORDS, SCALES),
    ],
)
def test_other_shapes_are_refused(changed: tuple[TensorType, ...]) -> None:
    with pytest.raises(ModelError, match="block-matmul-shape"):
        BlockMatMul(4, 32).infer(changed)
