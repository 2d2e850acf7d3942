"""Blocks of GGUF as levels, scales and offsets, whose values are those of ggml, bit for bit.

A row [K] of a tensor is a run of blocks; their layouts are those of ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...block_weights import BlockWeights, Bytes, packed_levels

Floats32 = NDArray[np.float32]


def _halves(data: Bytes) -> NDArray[np.float16]:
    """float16 numbers that lie in two bytes each."""
    return np.ascontiguousarray(data).view(np.float16)


def _weights(
    bits: int, levels: Bytes, scales: NDArray[np.floating], offsets: Floats32 | None = None
) -> BlockWeights:
    """Of levels uint8 [N, blocks, group], not yet packed, whose zeros are 2**(bits - 1)."""
    columns, blocks, group = levels.shape
    return BlockWeights(
        (blocks * group, columns),
        bits,
        group,
        packed_levels(levels, bits),
        scales.reshape(columns, blocks),
        offsets=None if offsets is None else offsets.reshape(columns, blocks),
    )


def _q4_0(blocks: Bytes) -> BlockWeights:
    """d of float16; byte j of 16 has the levels of weights j and j + 16; w = d (level - 8)."""
    quants = blocks[..., 2:]
    levels = np.concatenate([quants & 15, quants >> 4], axis=-1)
    return _weights(4, levels, _halves(blocks[..., :2]))


def _q8_0(blocks: Bytes) -> BlockWeights:
    """d of float16, 32 numbers of int8; w = d q. A level is q + 128."""
    return _weights(8, blocks[..., 2:] ^ np.uint8(128), _halves(blocks[..., :2]))


def _q4_k(blocks: Bytes) -> BlockWeights:
    """d and dmin of float16, 8 scales and minima of 6 bits, and for each 64 weights 32 bytes, the
    first 32 in their low bits; w = (d scale) level - (dmin minimum).
    """
    columns, count, _ = blocks.shape
    d, dmin = _halves(blocks[..., 0:2]), _halves(blocks[..., 2:4])
    first, second, third = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    scales = np.concatenate([first & 63, (third & 15) | ((first >> 2) & 48)], axis=-1)
    minima = np.concatenate([second & 63, (third >> 4) | ((second >> 2) & 48)], axis=-1)
    quants = blocks[..., 16:].reshape(columns, count, 4, 1, 32)
    levels = np.concatenate([quants & 15, quants >> 4], axis=-2)
    return _weights(
        4, levels.reshape(columns, count * 8, 32), _times(d, scales), _times(dmin, minima)
    )


def _q6_k(blocks: Bytes) -> BlockWeights:
    """Low 4 and high 2 bits of 256 levels, 16 scales of int8, d of float16; w = (d scale)
    (level - 32). Such a level, plus 96, is one of 8 bits.
    """
    columns, count, _ = blocks.shape
    low = blocks[..., :128].reshape(columns, count, 2, 1, 64)
    high = blocks[..., 128:192].reshape(columns, count, 2, 1, 32)
    four = np.concatenate([low & 15, low >> 4], axis=-2).reshape(columns, count, 2, 4, 32)
    two = (high >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    levels = (four | (two << 4)) + np.uint8(96)
    scales = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    return _weights(
        8, levels.reshape(columns, count * 16, 16), _times(_halves(blocks[..., 208:]), scales)
    )


def _times(whole: NDArray[np.float16], parts: NDArray[np.integer]) -> Floats32:
    with np.errstate(all="ignore"):  # the whole may be infinite, or no number
        product: Floats32 = whole.astype(np.float32) * parts.astype(np.float32)
    return product


READ: dict[str, Callable[[Bytes], BlockWeights]] = {  # of blocks uint8 [N, blocks, bytes]
    "Q4_0": _q4_0,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q6_K": _q6_k,
}
