"""A matrix product whose weights are levels of few bits, in blocks with a scale each.

The levels stay packed where they are stored and are unpacked in the kernel. A few rows of data are
summed block by block, so that a scale multiplies one sum and not each weight; for many rows the
weights become floating-point numbers first, of which a rule (`schedule/rules/products`) makes a
panel at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import largest, product_of
from ...tir.te import te
from ...tir.te.te import Tensor
from ..block_weights import Bytes, packed_levels, unpacked_levels
from ..types import FLOATS, Array, Floats, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    listed,
    product_work,
    refuse,
    shape_of,
)
from .matmul import with_zeros

WORD_BITS = 32
LONG_BLOCK = 256  # steps, beyond which a block is summed in pieces of half as many at most
SHORT_PIECE = 32  # steps, below which a block is not
FEW_ROWS = 16  # up to which the sums of blocks are scaled, and not the weights: measured


@dataclass(frozen=True, slots=True)
class BlockMatMul(Operator):
    """y[..., n] = sum over k of x[..., k] * (level[k, n] - zero[block, n]) * scale[block, n], where
    steps k of the sum lie in blocks of `group`.

    Inputs: x [..., K], of floats; levels int32 [blocks * group * bits / 32, N]: word w of a column
    has those of its steps from w * 32 / bits on, the first in the lowest bits; scales [blocks, N],
    in the type of x; and, or else 2**(bits - 1) everywhere, zeros [blocks, N], in the type of x or
    uint8. The last block may be longer than K: what it has beyond is not read.

    data: "int8" permits a build to round each block of x to levels of 8 bits
    (`graph/precision/blocks/rounded_data.py`); "" does not.
    """

    bits: int
    group: int
    data: str = ""

    role = OperatorRole.GENERAL
    operand_names = ("x", "levels", "scales", "zeros")

    @property
    def in_word(self) -> int:
        """Levels in a word."""
        return WORD_BITS // self.bits

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 4)
        if self.bits not in (2, 4, 8) or self.group < 1 or self.group % self.in_word:
            problem = (
                f"expected blocks of whole words of 2, 4 or 8 bits, got blocks of {self.group} of "
                f"{self.bits} bits"
            )
            refuse(self, problem, code="block-matmul-bits")
        x, levels, scales = types[:3]
        kinds = (x.dtype in FLOATS, levels.dtype == "int32", scales.dtype == x.dtype)
        if not all(kinds) or any(zeros.dtype not in (x.dtype, "uint8") for zeros in types[3:]):
            problem = (
                "expected x of floats, levels of int32, scales in the type of x and zeros in that "
                f"type or uint8, got {listed(types)}"
            )
            refuse(self, problem, code="block-matmul-types")
        if not _fits(types, self.group, self.in_word):
            problem = (
                f"expected x [..., K], levels [{self.group // self.in_word} * blocks, N] and "
                f"scales [blocks, N] with K in the last of the blocks of {self.group}, got "
                f"{listed(types)}"
            )
            refuse(self, problem, code="block-matmul-shape")
        return (TensorType(x.dtype, (*x.shape[:-1], levels.shape[-1])),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,) = self.infer(types)
        return product_work(
            Operator.work(self, types), largest(result.elements * types[0].shape[-1])
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, levels, scales, *zeros = arrays
        kind = np.float64 if x.dtype == np.float64 else np.float32  # float16 is rounded once
        weights = dequantised(
            self.bits, self.group, levels, cast(Floats, scales.astype(kind)), *zeros
        )
        product = np.matmul(x.astype(kind, copy=False), weights[: x.shape[-1]])
        return (product.astype(x.dtype, copy=False),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        rows = product_of(shape_of(tensors[0])[:-1])
        steps = largest(shape_of(tensors[2])[0]) * self.group
        whole = with_zeros(tensors[0], steps, -1, name)
        operands = (whole, *tensors[1:])
        if isinstance(rows, int) and rows <= FEW_ROWS:
            return (self._sums_of_blocks(operands, name),)
        return (self._product_of_weights(operands, name),)

    def _sums_of_blocks(self, tensors: tuple[Tensor, ...], name: str) -> Tensor:
        """The sums of a block, which are scaled, then added up; of a long block those of pieces of
        it, which threads of a GPU share out, and which round less.
        """
        x, levels, scales, *zeros = tensors
        (*outer, _), (whole, columns) = shape_of(x), shape_of(scales)
        pieces = _pieces(self.group // self.in_word, self.in_word)
        words, parts, blocks = self.group // self.in_word // pieces, self.in_word, whole * pieces
        word, part = te.reduce_axis(words, name="word"), te.reduce_axis(parts, name="part")
        block = te.reduce_axis(blocks, name="block")

        def own(piece: Expr) -> Expr:
            """The block of a piece."""
            return piece // pieces if pieces > 1 else piece

        def partial(*at: Expr) -> Expr:
            (*row, b, n), w = at, at[-2] * words + word
            number = self._number(levels[w, n], part, zeros, own(b), n, x)
            return te.sum(x[(*row, w * parts + part)] * number, axis=(word, part))

        sums = te.compute((*outer, blocks, columns), partial, name=f"{name}_sums")

        def element(*at: Expr) -> Expr:
            *row, n = at
            return te.sum(sums[(*row, block, n)] * scales[own(block), n], axis=block)

        return te.compute((*outer, columns), element, name=name)

    def _product_of_weights(self, tensors: tuple[Tensor, ...], name: str) -> Tensor:
        """The product of x and the weights as numbers."""
        x, levels, scales, *zeros = tensors
        (*outer, steps), (_, columns) = shape_of(x), shape_of(scales)

        def weight(k: Expr, n: Expr) -> Expr:
            b, part = k // self.group, k % self.in_word
            number = self._number(levels[k // self.in_word, n], part, zeros, b, n, x)
            return number * scales[b, n]

        weights = te.compute((steps, columns), weight, name=f"{name}_weights")
        k = te.reduce_axis(steps, name="k")

        def element(*at: Expr) -> Expr:
            *row, n = at
            return te.sum(x[(*row, k)] * weights[k, n], axis=k)

        return te.compute((*outer, columns), element, name=name)

    def _number(
        self, word: Expr, part: Expr, zeros: list[Tensor], block: Expr, column: Expr, x: Tensor
    ) -> Expr:
        """A level less its zero, in the type of x."""
        moved = word >> te.cast(part * self.bits, "int32")
        level = te.cast(moved & ((1 << self.bits) - 1), x.type)
        if not zeros:
            return level - float(1 << (self.bits - 1))
        return level - te.cast(zeros[0][block, column], x.type)


def dequantised(bits: int, group: int, words: Array, scales: Floats, *zeros: Array) -> Floats:
    """The weights [blocks * group, N] of a BlockMatMul, in the type of the scales."""
    zero = zeros or (np.full(scales.shape, 1 << (bits - 1), np.uint8),)
    return block_weights(group, unpacked_words(words, bits), scales, *zero)


def block_weights(group: int, levels: Array, scales: Floats, zeros: Array) -> Floats:
    """(level - zero) * scale, in the type of the scales; levels [blocks * group, N], the others
    [blocks, N].
    """
    blocks, columns = scales.shape
    numbers = cast(Floats, levels.astype(scales.dtype)).reshape(blocks, group, columns)
    centred = numbers - cast(Floats, zeros.astype(scales.dtype))[:, None, :]
    return np.multiply(centred, scales[:, None, :]).reshape(-1, columns)


def packed_words(levels: Array, bits: int) -> Array:
    """Levels [K, N] below 2**bits as words int32 [K * bits / 32, N], those of the first steps in
    the lowest bits.
    """
    packed = np.ascontiguousarray(packed_levels(cast(Bytes, levels.astype(np.uint8)).T, bits))
    return cast(Array, np.ascontiguousarray(packed.view("<i4").T))


def unpacked_words(words: Array, bits: int) -> Array:
    """The levels, uint8 [K, N], of `packed_words`."""
    packed = np.ascontiguousarray(words.T).astype("<i4", copy=False).view(np.uint8)
    return cast(Array, np.ascontiguousarray(unpacked_levels(packed, bits).T))


def _pieces(words: int, in_word: int) -> int:
    """In how many sums of whole words a block is summed."""
    if words * in_word <= LONG_BLOCK:
        return 1
    fitting = (n for n in range(1, words + 1) if words % n == 0)
    pieces = next(n for n in fitting if words // n * in_word <= LONG_BLOCK // 2)
    return pieces if words // pieces * in_word >= SHORT_PIECE else 1


def _fits(types: tuple[TensorType, ...], group: int, in_word: int) -> bool:
    x, levels, scales, *zeros = types
    if not x.rank or levels.rank != 2 or scales.rank != 2:
        return False
    steps, (words, columns), (blocks, _) = x.shape[-1], levels.shape, scales.shape
    if any(not isinstance(size, int) for size in (steps, words, columns, blocks)):
        return False
    alike = all(other.shape == (blocks, columns) for other in (scales, *zeros))
    inside = (blocks - 1) * group < steps <= blocks * group
    return alike and inside and words * in_word == blocks * group
