"""Weights in blocks mean what their description says, and what does not fit together is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tilewright as tw
from tilewright.graph.block_weights import packed_levels, unpacked_levels
from tilewright.graph.errors import ModelError
from tilewright.graph.types import numpy_type

Golden = Callable[[str, str], None]
SCALES = ("float16", "bfloat16", "float32")


def _random(
    steps: int, columns: int, bits: int, group: int, scales: str = "float32", **more: object
) -> tw.BlockWeights:
    """Weights of random levels, whose bytes are random."""
    rng, blocks = np.random.default_rng(steps * columns + bits), -(-steps // group)
    levels = rng.integers(0, 256, (columns, blocks, group * bits // 8), dtype=np.uint8)
    made = rng.standard_normal((columns, blocks)).astype(numpy_type(scales))
    return tw.BlockWeights((steps, columns), bits, group, levels, made, **more)


def _level(weights: tw.BlockWeights, column: int, place: int) -> int:
    """A level, by its bits."""
    data = weights.levels[column].tobytes()
    return (int.from_bytes(data, "little") >> (place * weights.bits)) % (1 << weights.bits)


def _by_definition(weights: tw.BlockWeights) -> NDArray[np.float32]:
    """The matrix, number by number."""
    steps, columns = weights.shape
    made = np.empty((steps, columns), np.float32)
    for n in range(columns):
        for place in range(steps):
            b = place // weights.group
            level = np.float32(_level(weights, n, place))
            scale = np.float32(weights.scales[n, b])
            if weights.offsets is not None:
                number = np.float32(scale * level) - np.float32(weights.offsets[n, b])
            else:
                zero = 1 << (weights.bits - 1)
                if weights.zeros is not None:
                    zero = weights.zeros[n, b]
                number = scale * (level - np.float32(zero))
            made[place if weights.order is None else weights.order[place], n] = number
    return made


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("bits", "group"), [(2, 16), (4, 32), (8, 16), (4, 6), (8, 1)])
def test_numbers_by_definition(bits: int, group: int, scales: str) -> None:
    weights = _random(36, 3, bits, group, scales)
    assert np.array_equal(weights.dequantized(), _by_definition(weights))
    assert weights.dequantized().dtype == np.float32


@pytest.mark.parametrize(
    "zeros",
    [
        np.array([[3, 9], [0, 15], [7, 8]], np.uint8),
        np.array([[16, 9], [0, 256], [7, 8]], np.int16),
        np.array([[3.25, 9], [0, 15], [7, -8]], np.float32),
    ],
    ids=lambda zeros: zeros.dtype.name,
)
def test_zeros(zeros: NDArray[np.generic]) -> None:
    weights = _random(32, 3, 4, 16, zeros=zeros)
    assert np.array_equal(weights.dequantized(), _by_definition(weights))


def test_offsets_and_an_order() -> None:
    rng = np.random.default_rng(0)
    offsets = rng.standard_normal((3, 2)).astype(np.float32)
    order = rng.permutation(32).astype(np.int32)
    weights = _random(32, 3, 4, 16, offsets=offsets, order=order)
    assert np.array_equal(weights.dequantized(), _by_definition(weights))


def test_it_shows_itself() -> None:
    weights = _random(4096, 8, 4, 32)
    assert repr(weights) == "weights [4096, 8] of 4 bits in blocks of 32, 20 KiB"
    assert weights.nbytes == 4096 * 8 // 2 + 4 * 128 * 8
    ordered = replace(weights, order=np.arange(4096, dtype=np.int32))
    assert "in an order of their own" in repr(ordered)


@given(st.sampled_from((2, 4, 8)), st.binary(min_size=1, max_size=40))
def test_packing_undoes_unpacking(bits: int, data: bytes) -> None:
    packed = np.frombuffer(data, np.uint8)
    levels = unpacked_levels(packed, bits)
    assert levels.max() < 1 << bits
    assert packed_levels(levels, bits).tobytes() == data


def test_the_first_level_has_the_lowest_bits() -> None:
    assert packed_levels(np.array([1, 2, 3, 0], np.uint8), 2).tolist() == [0b00111001]
    assert packed_levels(np.array([1, 2], np.uint8), 4).tolist() == [0x21]


MISFITS: dict[str, dict[str, object]] = {
    "bits": {"bits": 3},
    "group": {"group": 3, "bits": 4},
    "zeros": {"zeros": np.zeros((3, 2), np.uint8), "offsets": np.zeros((3, 2), np.float32)},
    "levels": {"levels": np.zeros((3, 2, 9), np.uint8)},
    "scales": {"scales": np.zeros((3, 2), np.int32)},
    "order": {"order": np.zeros(32, np.int32)},
    "order_negative": {"order": np.arange(-1, 31, dtype=np.int32)},
    "order_outside": {"order": np.arange(1, 33, dtype=np.int32)},
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused(name: str, golden: Golden) -> None:
    with pytest.raises(ModelError) as caught:
        replace(_random(32, 3, 4, 16), **MISFITS[name])
    golden(f"errors/block_weights_{name}.txt", str(caught.value))
