"""Rules of weights in blocks of few bits, each block with a scale and a zero point of its own.

They stay packed: those of a product are unpacked in its kernel, and the rows that a Gather takes
become floating-point numbers in each call.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from .....block_weights import Bytes, unpacked_levels
from .....errors import ModelError
from .....ops import arithmetic, movement
from .....ops.base import normal_axis
from .....ops.block_matmul import WORD_BITS, BlockMatMul, block_weights
from .....ops.functions import Cast
from .....ops.slicing import Slice
from .....types import Array, Floats
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result
from .spelling import number_like

_BITS = (2, 4, 8)  # of an element
_NIBBLE, _SIGN = 4, 8
_OF_BYTES = 4  # the accuracy level at which data may be rounded to bytes
_MOST = 1 << 31  # elements of a constant, whose own limit is that of the model


def _matmul(node: NodeReader) -> Result:
    """A @ W + bias, where column n of W are the blocks of B[n]; at accuracy level 4 data may be
    rounded, in blocks, where these are whole words.
    """
    if node.has(4):
        raise NotSupported("it has the input g_idx")
    if node.integer("weight_prepacked", 0):
        raise NotSupported(f"weight_prepacked is {node.integer('weight_prepacked')}")
    bits, size = _checked_bits(node), node.integer("block_size")
    packed, scales, zeros = _blocks(node, bits, size)
    if size * bits % WORD_BITS:  # no whole words
        levels = unpacked_levels(packed, bits).T
        zero = zeros or (np.full(scales.shape, 1 << (bits - 1), np.uint8),)
        weights = block_weights(size, levels, scales, *zero)[: node.integer("K")]
        y = node.spell("MatMul", node.value(0), node.table("weights", weights))
        return arithmetic.Add() if node.has(5) else movement.Identity(), (
            (y, node.value(5)) if node.has(5) else (y,)
        )
    words = np.ascontiguousarray(packed.view("<i4").T)
    tables = (words, scales, *zeros)
    product = (node.value(0), *(node.table("blocks", table) for table in tables))
    op = BlockMatMul(bits, size, "int8" if node.integer("accuracy_level", 0) == _OF_BYTES else "")
    if not node.has(5):
        return op, product
    return arithmetic.Add(), (node.emit(op, *product), node.value(5))


def _blocks(node: NodeReader, bits: int, size: int) -> tuple[Bytes, Floats, tuple[Array, ...]]:
    """The bytes of each column; scales and zeros, if there are some, by blocks and columns."""
    rows, columns = node.integer("K"), node.integer("N")
    count = -(-rows // size) if size > 0 else 0
    packed, scales = node.constant(1, _MOST), cast(Floats, node.constant(2, _MOST))
    expected = columns * count
    whole = expected * size * bits % 8 == 0 and packed.size == expected * size * bits // 8
    if not expected or not whole or scales.size != expected or packed.size % columns:
        raise ModelError(
            f"model: {node.title} has weights {node.type(1)} and scales {node.type(2)}; expected "
            f"{columns} columns of {count} blocks of {size} elements of {bits} bits.",
            code="onnx-blocks",
        )
    zeros: tuple[Array, ...] = ()
    if node.has(3):
        given = node.constant(3, _MOST)
        own = -(-count * bits // 8) if given.dtype == "uint8" else count
        if given.size != columns * own:
            raise ModelError(
                f"model: {node.title} has zero points {node.type(3)}; expected {columns} times "
                f"{own} for {count} blocks of {bits} bits.",
                code="onnx-block-zeros",
            )
        parts = given.reshape(columns, -1)
        if given.dtype == "uint8":
            parts = unpacked_levels(cast(Bytes, parts), bits)
        zeros = (np.ascontiguousarray(parts[:, :count].T),)
    own_scales = cast(Floats, np.ascontiguousarray(scales.reshape(columns, count).T))
    levels = cast(Bytes, np.ascontiguousarray(packed).reshape(columns, -1))
    return levels, own_scales, zeros


def _checked_bits(node: NodeReader) -> int:
    bits = node.integer("bits", 4)
    if bits not in _BITS:
        raise NotSupported(f"bits is {bits}; known are {', '.join(map(str, _BITS))}")
    return bits


def _gather(node: NodeReader) -> Result:
    """The rows that indices name, as (level - zero) * scale of the block of each element. Data of 4
    bits are packed as those of bytes are.

    An index out of range refuses a run; onnxruntime takes zeros.
    """
    data, bits = node.type(0), _checked_bits(node)
    if data.dtype not in ("uint8", "int4", "uint4"):
        raise NotSupported(f"its data are {data}; known are packed uint8, int4 and uint4")
    if data.dtype != "uint8" and bits != _NIBBLE:
        raise NotSupported(f"its data are {data}, and bits is {bits}")
    gathered = normal_axis(movement.Identity(), node.integer("gather_axis", 0), data.rank)
    along = normal_axis(movement.Identity(), node.integer("quantize_axis", 1), data.rank)
    if gathered or along != data.rank - 1 or data.rank < 2:
        raise NotSupported(
            f"it takes along axis {gathered} of {data} with blocks along axis {along}; known are "
            "the first axis and the last"
        )
    scales = _taken(node, 2)
    (*outer, count), kind = node.builder.types[scales].shape, node.builder.types[scales].dtype
    levels = node.emit(Cast(kind), _levels(node, 0, bits))
    width, size = node.builder.types[levels].shape[-1], node.integer("block_size", 128)
    if width != count * size:
        raise NotSupported(f"its {width} elements are not {count} blocks of {size}")
    blocks = node.emit(movement.Reshape((*outer, count, size)), levels)
    zeros = number_like(node, scales, 0 if data.dtype == "uint4" else 1 << (bits - 1))
    if node.has(3):
        zeros = node.emit(Cast(kind), _levels(node, 3, bits))
        whole = node.builder.types[zeros].shape
        if whole[-1] != count:  # the last byte is not full
            part = Slice((0,) * len(whole), (*outer, count), (1,) * len(whole))
            zeros = node.emit(part, zeros)
        zeros = node.emit(movement.Reshape((*outer, count, 1)), zeros)
    centred = node.emit(arithmetic.Sub(), blocks, zeros)
    own = node.emit(movement.Reshape((*outer, count, 1)), scales)
    y = node.emit(arithmetic.Mul(), centred, own)
    return movement.Reshape((*outer, width)), (y,)


def _levels(node: NodeReader, position: int, bits: int) -> str:
    """The rows of an input, its levels without a sign: those of int4 are 8 higher."""
    kind = node.type(position).dtype
    if kind == "uint8":
        return _elements(node, _taken(node, position), bits)
    array = node.constant(position, _MOST).astype(np.int8)
    own = np.zeros((*array.shape[:-1], array.shape[-1] + array.shape[-1] % 2), np.uint8)
    own[..., : array.shape[-1]] = array + _SIGN if kind == "int4" else array
    packed = node.table("packed", own[..., ::2] | own[..., 1::2] << _NIBBLE)
    taken = node.spell("Gather", packed, node.value(1), axis=0)
    return _elements(node, taken, _NIBBLE)


def _taken(node: NodeReader, position: int) -> str:
    return node.spell("Gather", node.value(position), node.value(1), axis=0)


def _elements(node: NodeReader, packed: str, bits: int) -> str:
    """`unpacked_levels`, of a value that a run computes."""
    if bits == 8:
        return packed
    shape = node.builder.types[packed].shape
    shifts = node.table("shifts", np.arange(0, 8, bits, dtype=np.uint8))
    apart = node.emit(movement.Reshape((*shape, 1)), packed)
    moved = node.spell("BitShift", apart, shifts, direction="RIGHT")
    found = node.spell("BitwiseAnd", moved, number_like(node, packed, (1 << bits) - 1))
    return node.emit(movement.Reshape((*shape[:-1], shape[-1] * (8 // bits))), found)


RULES: dict[str, ImportRule] = {
    "com.microsoft.GatherBlockQuantized": ImportRule(
        (1,), ("bits", "block_size", "gather_axis", "quantize_axis"), _gather
    ),
    "com.microsoft.MatMulNBits": ImportRule(
        (1,), ("K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"), _matmul
    ),
}
