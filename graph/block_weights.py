"""Weights of few bits: levels, in blocks along the sum that has a scale and a zero each.

What every format of such weights becomes: MatMulNBits of ONNX, tensors of GPTQ and of AWQ, blocks
of GGUF. The levels stay packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..tir.text.size import bytes_text
from .errors import ModelError
from .types import Array

Bytes = NDArray[np.uint8]
_FLOATS = ("float16", "bfloat16", "float32")
_ZEROS = ("uint8", "int16", *_FLOATS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockWeights:
    """A matrix w [K, N] by which rows of K numbers are multiplied.

    A column n of it has its levels in blocks of `group`, each with a scale and a zero or an offset:

        w[k, n] = scales[n, b] * (level[n, i] - zeros[n, b])
        w[k, n] = scales[n, b] * level[n, i] - offsets[n, b]      with offsets

    where b = i // group, and i = k without `order`. All operands become float32 first, and each
    operation rounds to float32.

    shape: (K, N).
    bits: of a level: 2, 4 or 8.
    levels: uint8 [N, blocks, group * bits / 8]; a byte has the first of its levels in its lowest
        bits. The last block may reach beyond K.
    scales: float16, bfloat16 or float32 [N, blocks].
    zeros: uint8, int16 or a type of scales [N, blocks]; None, with no offsets, for 2**(bits - 1).
    offsets: a type of scales [N, blocks], in place of zeros.
    order: int32 [K], where levels lie in another order than rows: i has those of row order[i].

    Raises: ModelError where these do not fit together.
    """

    shape: tuple[int, int]
    bits: int
    group: int
    levels: Array
    scales: Array
    zeros: Array | None = None
    offsets: Array | None = None
    order: Array | None = None

    def __post_init__(self) -> None:
        if self.bits not in (2, 4, 8) or self.group < 1 or self.group * self.bits % 8:
            raise ModelError(
                f"block weights: blocks of {self.group} levels of {self.bits} bits; expected whole "
                "bytes of levels of 2, 4 or 8 bits.",
                code="block-weights-bits",
            )
        if self.zeros is not None and self.offsets is not None:
            raise ModelError(
                "block weights: zeros and offsets are given; expected one of them.",
                code="block-weights-zeros",
            )
        (steps, columns), bytes_ = self.shape, self.group * self.bits // 8
        blocks = -(-steps // self.group)
        self._check("levels", self.levels, ("uint8",), (columns, blocks, bytes_))
        self._check("scales", self.scales, _FLOATS, (columns, blocks))
        self._check("zeros", self.zeros, _ZEROS, (columns, blocks))
        self._check("offsets", self.offsets, _FLOATS, (columns, blocks))
        self._check("order", self.order, ("int32",), (steps,))
        if self.order is not None and not _is_permutation(cast(NDArray[np.int32], self.order)):
            raise ModelError(
                f"block weights: 'order' is no permutation of 0 to {steps - 1}.",
                code="block-weights-order",
            )

    def _check(
        self, name: str, array: Array | None, dtypes: tuple[str, ...], shape: tuple[int, ...]
    ) -> None:
        if array is None or (array.dtype.name in dtypes and array.shape == shape):
            return
        raise ModelError(
            f"block weights: '{name}' is {array.dtype.name}{list(array.shape)}; expected "
            f"{' or '.join(dtypes)} of shape {list(shape)} for {self.bits} bits, blocks of "
            f"{self.group} and a matrix of {self.shape[0]} x {self.shape[1]}.",
            code="block-weights-array",
        )

    def __repr__(self) -> str:
        ordered = ", rows in an order of their own" if self.order is not None else ""
        return (
            f"weights {list(self.shape)} of {self.bits} bits in blocks of {self.group}, "
            f"{bytes_text(self.nbytes)}{ordered}"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of levels, scales, zeros, offsets and order."""
        arrays = (self.levels, self.scales, self.zeros, self.offsets, self.order)
        return sum(array.nbytes for array in arrays if array is not None)

    def dequantized(self) -> NDArray[np.float32]:
        """The matrix, float32 [K, N]; a column lies densely in memory."""
        steps, columns = self.shape
        numbers = unpacked_levels(cast(Bytes, self.levels), self.bits).astype(np.float32)
        scales = self.scales.astype(np.float32)[:, :, None]
        with np.errstate(all="ignore"):  # scales of a file may be infinite, or no numbers
            if self.offsets is not None:
                numbers *= scales
                numbers -= self.offsets.astype(np.float32)[:, :, None]
            else:
                middle = np.full((1, 1), 1 << (self.bits - 1))
                zeros = middle if self.zeros is None else self.zeros
                numbers -= zeros.astype(np.float32)[:, :, None]
                numbers *= scales
        rows = numbers.reshape(columns, -1)[:, :steps]
        if self.order is not None:
            placed = np.empty((columns, steps), np.float32)
            placed[:, self.order] = rows
            rows = placed
        return rows.T


def packed_levels(levels: Bytes, bits: int) -> Bytes:
    """Levels, uint8 [..., n] below 2**bits, in bytes [..., n * bits / 8]."""
    count = 8 // bits
    packed = levels[..., ::count].copy()
    for place in range(1, count):
        packed |= levels[..., place::count] << np.uint8(place * bits)
    return packed


def unpacked_levels(packed: Bytes, bits: int) -> Bytes:
    """The levels, uint8 [..., n], of bytes that `packed_levels` made."""
    count, mask = 8 // bits, np.uint8((1 << bits) - 1)
    levels = np.empty((*packed.shape[:-1], packed.shape[-1] * count), np.uint8)
    for place in range(count):
        levels[..., place::count] = (packed >> np.uint8(place * bits)) & mask
    return levels


def _is_permutation(order: NDArray[np.int32]) -> bool:
    seen = np.zeros(order.size, bool)
    inside = (order >= 0) & (order < order.size)
    seen[order[inside]] = True
    return bool(inside.all() and seen.all())
