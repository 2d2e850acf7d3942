"""Products of weights of few bits with data that are rounded to bytes, block by block: what
MatMulNBits of com.microsoft permits at accuracy level 4.

A block of weights and its data have a scale each. Between them stands a sum of integers, which is
exact, and of which processors have instructions for four or two products at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...tir.expr import Expr
from ...tir.reference.arithmetic import convert_array
from ...tir.sizes import largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Floats, TensorType
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
from .block_matmul import WORD_BITS, unpacked_words
from .matmul import with_zeros

Words = NDArray[np.int32]
LARGEST = 127.0  # a level of data
LEAST = 2.0**-126  # a scale of data that has a reciprocal; with a smaller one all levels are 0
MOST_STEPS = 1 << 16  # of a block, so that sums of products stay below 2**31
POINTS = {"int8": 4, "int16": 2}  # levels of data that a lane of an instruction multiplies at once


@dataclass(frozen=True, slots=True)
class RoundBlocks(Operator):
    """levels, scales and sums of blocks of `group` numbers along the last axis.

    x [..., K], float32 -> levels, int8 or int16 by `kind`, [..., blocks * group], 0 behind the last
    number; scales [..., blocks]; and the sum of the levels of each block, a float [..., blocks].

    scale = max |x| / 127 over the block, level = round(x * (1 / scale)), halves to even, each
    operation in the type of x. Where a scale is below 2**-126, which has no reciprocal, levels are
    0. What is no number, and a block with an infinite one, has the level 0 and a scale that is no
    finite number. The sums are exact: they are integers below 2**24.
    """

    group: int
    kind: str = "int8"

    role = OperatorRole.GENERAL
    output_count = 3

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        (x,) = types
        if x.dtype not in ("float32", "float64") or not x.rank or self.kind not in POINTS:
            problem = f"expected rows of float32 as int8 or int16, got {x} as {self.kind}"
            refuse(self, problem, code="round-blocks-types")
        if not isinstance(x.shape[-1], int) or self.group < 1:
            problem = f"expected blocks of a size, along an axis of a known one, got {self.group}"
            refuse(self, f"{problem} and {x}", code="round-blocks-shape")
        *outer, steps = x.shape
        blocks = -(-largest(steps) // self.group)
        return (
            TensorType(self.kind, (*outer, blocks * self.group)),
            TensorType(x.dtype, (*outer, blocks)),
            TensorType(x.dtype, (*outer, blocks)),
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = cast(Floats, arrays[0])
        *outer, steps = x.shape
        blocks = -(-steps // self.group)
        missing = [(0, 0)] * len(outer) + [(0, blocks * self.group - steps)]
        parts = np.pad(x, missing).reshape(*outer, blocks, self.group)
        with np.errstate(all="ignore"):
            scales = np.abs(parts).max(axis=-1) / x.dtype.type(LARGEST)
            usual = ~(scales < LEAST)
            inverse = np.divide(1, scales, out=np.zeros_like(scales), where=usual)
            levels = convert_array(np.rint(parts * inverse[..., None]), np.dtype(self.kind))
        sums = levels.astype(x.dtype).sum(axis=-1)
        return levels.reshape(*outer, blocks * self.group), scales, sums

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        blocks = -(-largest(shape_of(tensors[0])[-1]) // self.group)
        x = with_zeros(tensors[0], blocks * self.group, -1, name)
        *outer, _ = shape_of(x)
        of_blocks = (*outer, blocks)

        def peak(*at: Expr) -> Expr:
            *row, b = at
            i = te.reduce_axis(self.group, name="i")
            return te.max(te.abs(x[(*row, b * self.group + i)]), axis=i)

        peaks = te.compute(of_blocks, peak, name=f"{name}_peaks")
        scales = te.compute(
            (*outer, blocks), lambda *at: peaks[at] / LARGEST, name=f"{name}_scales"
        )

        def reciprocal(*at: Expr) -> Expr:
            one, nothing = te.const(1.0, x.type), te.const(0.0, x.type)
            return te.select(scales[at] < te.const(LEAST, x.type), nothing, one / scales[at])

        inverse = te.compute(of_blocks, reciprocal, name=f"{name}_inverse")

        def level(*at: Expr) -> Expr:
            *row, k = at
            return te.cast(te.round(x[at] * inverse[(*row, k // self.group)]), self.kind)

        levels = te.compute((*outer, blocks * self.group), level, name=name)

        def total(*at: Expr) -> Expr:
            *row, b = at
            i = te.reduce_axis(self.group, name="i")
            return te.sum(te.cast(levels[(*row, b * self.group + i)], x.type), axis=i)

        sums = te.compute(of_blocks, total, name=f"{name}_sums")
        return levels, scales, sums


@dataclass(frozen=True, slots=True)
class RoundedBlockMatMul(Operator):
    """y[..., n] = sum over blocks b of (x_scale[..., b] * scale[b, n])
    * (sum over steps k of b of x_level[..., k] * level[k, n] - zero[b, n] * x_sum[..., b]).

    The sum over k is one of int32, exact; it becomes a float, and all else is of floats.

    Inputs: what RoundBlocks gives; levels int32 [blocks * group * bits / 32, N], as `lane_words`
    orders them; scales [blocks, N], in the type of those of x; and, or else 2**(bits - 1)
    everywhere, zeros [blocks, N], in that type.
    """

    bits: int
    group: int

    role = OperatorRole.GENERAL
    operand_names = ("x", "x_scales", "x_sums", "levels", "scales", "zeros")

    @property
    def in_word(self) -> int:
        """Levels in a word."""
        return WORD_BITS // self.bits

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 5, 6)
        whole = self.bits in (2, 4, 8) and self.group % self.in_word == 0
        if not whole or not 0 < self.group <= MOST_STEPS:
            problem = (
                f"expected blocks of whole words of 2, 4 or 8 bits, of {MOST_STEPS} at most, got "
                f"blocks of {self.group} of {self.bits} bits"
            )
            refuse(self, problem, code="rounded-blocks-bits")
        x, x_scales, _, words, scales, *_ = types
        kinds = {one.dtype for one in (*types[1:3], *types[4:])}
        if x.dtype not in POINTS or words.dtype != "int32" or kinds not in _KINDS:
            problem = (
                "expected levels of x of int8 or int16, levels of int32, and scales, sums and "
                f"zeros of float32, got {listed(types)}"
            )
            refuse(self, problem, code="rounded-blocks-types")
        if not _fits(types, self.group, self.in_word):
            problem = (
                f"expected x [..., {self.group} * blocks], its scales and sums [..., blocks], "
                f"levels [{self.group // self.in_word} * blocks, N] and scales and zeros "
                f"[blocks, N], got {listed(types)}"
            )
            refuse(self, problem, code="rounded-blocks-shape")
        return (TensorType(x_scales.dtype, (*x.shape[:-1], scales.shape[-1])),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (result,) = self.infer(types)
        return product_work(
            Operator.work(self, types), largest(result.elements * types[0].shape[-1])
        )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, x_scales, x_sums, words, scales, *zeros = arrays
        kind, (blocks, columns) = x_scales.dtype, scales.shape
        levels = unpacked_words(plain_words(words, self.bits, POINTS[x.dtype.name]), self.bits)
        sums = np.einsum(
            "...bk,bkn->...bn",
            x.reshape(*x.shape[:-1], blocks, self.group).astype(np.float64),
            levels.reshape(blocks, self.group, columns).astype(np.float64),
            optimize=True,
        ).astype(kind)  # integers, exact in float64
        middle = np.full((1, 1), float(1 << (self.bits - 1)), kind)
        zero = cast(Floats, zeros[0] if zeros else middle)
        factors = cast(Floats, x_scales)[..., None] * cast(Floats, scales)
        terms = factors * (sums - zero * cast(Floats, x_sums)[..., None])
        return (terms.sum(axis=-2, dtype=kind),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, x_scales, x_sums, levels, scales, *zeros = tensors
        (*outer, _), (blocks, columns) = shape_of(x), shape_of(scales)
        points = POINTS[str(x.dtype)]
        width, parts, words = (
            WORD_BITS // points,
            self.in_word // points,
            self.group // self.in_word,
        )
        word, part = te.reduce_axis(words, name="word"), te.reduce_axis(parts, name="part")
        point, block = te.reduce_axis(points, name="point"), te.reduce_axis(blocks, name="block")

        def partial(*at: Expr) -> Expr:
            *row, b, n = at
            step = ((b * words + word) * parts + part) * points + point
            moved = levels[b * words + word, n] >> te.cast(
                point * width + part * self.bits, "int32"
            )
            number = moved & ((1 << self.bits) - 1)
            return te.sum(te.cast(x[(*row, step)], "int32") * number, axis=(word, part, point))

        sums = te.compute((*outer, blocks, columns), partial, name=f"{name}_sums")

        def element(*at: Expr) -> Expr:
            *row, n = at
            here = (*row, block)
            zero = (
                zeros[0][block, n] if zeros else te.const(float(1 << (self.bits - 1)), x_sums.type)
            )
            whole = te.cast(sums[(*here, n)], x_sums.type)
            factor = x_scales[here] * scales[block, n]
            return te.sum((whole - zero * x_sums[here]) * factor, axis=block)

        return (te.compute((*outer, columns), element, name=name),)


_KINDS = ({"float32"}, {"float64"})


def lane_words(words: Array, bits: int, points: int) -> Array:
    """Words of levels, as BlockMatMul has them, in the order of RoundedBlockMatMul for instructions
    that multiply `points` levels in a lane: step part * points + point of a word has the bits from
    point * 32 / points + part * bits on. So a shift and a mask make an operand of a word.
    """
    return _moved(words, bits, [(at, to) for at, to in _places(bits, points)])


def plain_words(words: Array, bits: int, points: int) -> Array:
    """The words that `lane_words` was given."""
    return _moved(words, bits, [(at, to) for to, at in _places(bits, points)])


def _places(bits: int, points: int) -> list[tuple[int, int]]:
    """The bit at which each step of a word begins: as BlockMatMul has it, and for instructions."""
    parts, width = WORD_BITS // bits // points, WORD_BITS // points
    return [
        ((part * points + point) * bits, point * width + part * bits)
        for part in range(parts)
        for point in range(points)
    ]


def _moved(words: Array, bits: int, places: list[tuple[int, int]]) -> Array:
    """Words whose levels are moved from one bit to another."""
    given, mask = cast(Words, words).view(np.uint32), np.uint32((1 << bits) - 1)
    made = np.zeros_like(given)
    for at, to in places:
        made |= ((given >> np.uint32(at)) & mask) << np.uint32(to)
    return made.view(np.int32)


def _fits(types: tuple[TensorType, ...], group: int, in_word: int) -> bool:
    x, x_scales, x_sums, levels, scales, *zeros = types
    if not x.rank or levels.rank != 2 or scales.rank != 2:
        return False
    (*outer, steps), (words, columns), (blocks, _) = x.shape, levels.shape, scales.shape
    if any(not isinstance(size, int) for size in (steps, words, columns, blocks)):
        return False
    alike = all(other.shape == (blocks, columns) for other in (scales, *zeros))
    of_rows = all(other.shape == (*outer, blocks) for other in (x_scales, x_sums))
    return alike and of_rows and steps == blocks * group and words * in_word == steps
