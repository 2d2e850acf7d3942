"""Work: how many operations a function's definition takes, on floats and on integers, and how many
bytes it must move.

Counted on the definition, whatever a schedule makes of it:
- an addition, subtraction, multiplication, division, minimum, maximum or call on floats is one
  operation, an Fma two; of the two sides of a Select the longer one counts; index arithmetic,
  comparisons and conversions are free;
- an operation on integers counts where data is among its operands: an addition, subtraction,
  multiplication, division, remainder, minimum, maximum, shift, or one of bits; apart from those on
  floats, since a processor's limit is another one;
- an element is moved once, however often it is read: `bytes_moved` is what remains with a cache of
  unlimited size. Padding that a Select skips lies outside the buffer and is not counted. Dimensions
  are taken one by one, so a diagonal (two indices that move together) counts as the box around it,
  and so does what the points of a reduction read that count;
- an index that is data is taken to reach as many elements as it has values, or all;
- a call of a C function is no operation, since nobody knows what it does; it reads and writes whole
  tensors;
- a size that a call decides counts as its upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..analysis.specialise import at_most
from ..buffer import Buffer, Load
from ..expr import (
    TRUE,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from ..func import PrimFunc
from ..lowered import Fma
from ..node import Node
from ..stmt import Block, IterVar, Role, Store
from ..visit import free_vars, loads, stores, walk
from .index_set import Box, box_size, index_set, union_size
from .point_count import count_points

_ARITHMETIC = (Add, Sub, Mul, Div, Min, Max)
_OF_INTEGERS = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)
_OF_BITS = (BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight)


@dataclass(frozen=True, slots=True)
class BlockWork:
    """What one block does, over its whole domain.

    points: how often its body runs; operations: floating-point operations.
    read: bytes of each tensor that it reads, without the one that it accumulates in; written: bytes
    that it stores, to each of its tensors in `written_to`.
    """

    points: int
    operations: int
    read: tuple[tuple[Buffer, int], ...]
    written_to: tuple[tuple[Buffer, int], ...]

    @property
    def written(self) -> int:
        """Bytes that it stores."""
        return sum(count for _, count in self.written_to)


def operations(func: PrimFunc) -> int:
    """Floating-point operations of a function."""
    return sum(block_operations(block) for block in func.blocks if block.role is Role.COMPUTE)


def integer_operations(func: PrimFunc) -> int:
    """Operations of a function on integers that are data."""
    return sum(
        points_of(block) * sum(_integers(store.value)[0] for store in stores(block.body))
        for block in func.blocks
        if block.role is Role.COMPUTE
    )


def bytes_moved(func: PrimFunc) -> int:
    """Bytes of parameters that a function must read and write at least."""
    boxes: dict[Buffer, list[Box]] = {p.buffer: [] for p in func.parameters}
    for block in func.blocks:
        accesses: tuple[Load | Store, ...] = (*stores(block.body), *loads(block.body))
        extents = _extents(block)
        for access in accesses:
            if access.buffer in boxes:
                boxes[access.buffer].append(touched(access.buffer, access.indices, extents))
    return sum(union_size(found, b.shape) * b.type.bytes for b, found in boxes.items())


def block_work(block: Block) -> BlockWork:
    """What one block does."""
    targets = stores(block.body)
    own = {target.buffer for target in targets}
    extents = _extents(block)
    read: dict[Buffer, list[Box]] = {}
    for load in loads(block.body):
        if load.buffer not in own:
            box = touched(load.buffer, load.indices, extents)
            read.setdefault(load.buffer, []).append(box)
    moved = tuple((b, union_size(boxes, b.shape) * b.type.bytes) for b, boxes in read.items())
    written = []
    for target in targets:
        box = touched(target.buffer, target.indices, extents)
        written.append((target.buffer, box_size(box) * target.buffer.type.bytes))
    return BlockWork(points_of(block), block_operations(block), moved, tuple(written))


def points_of(block: Block) -> int:
    """How often the body of a block runs."""
    if block.counts == TRUE:
        return math.prod(axis.extent for axis in block.iters)
    counts = at_most(block.counts)
    used = free_vars(counts)
    moving = [axis for axis in block.iters if axis.var in used]
    return count_points(counts, moving) * math.prod(
        axis.extent for axis in block.iters if axis.var not in used
    )


def block_operations(block: Block) -> int:
    """Floating-point operations of a block."""
    return points_of(block) * sum(
        expression_operations(store.value) for store in stores(block.body)
    )


def expression_operations(expr: Node) -> int:
    """Floating-point operations of one value."""
    match expr:
        case Load() | Const() | Var():
            return 0
        case Select(condition, on_true, on_false):
            longer = max(expression_operations(on_true), expression_operations(on_false))
            return expression_operations(condition) + longer
    own = 0
    if isinstance(expr, Expr) and expr.dtype.is_float:
        own = 2 if isinstance(expr, Fma) else int(isinstance(expr, (*_ARITHMETIC, Call)))
    return own + sum(map(expression_operations, expr.children()))


def _integers(expr: Node) -> tuple[int, bool]:
    """Operations on integers in one value, and whether data is in it."""
    match expr:
        case Load():
            return 0, True
        case Const() | Var():
            return 0, False
        case Select(condition, on_true, on_false):
            asked, *sides = (_integers(part) for part in (condition, on_true, on_false))
            return asked[0] + max(side[0] for side in sides), any(side[1] for side in sides)
    found = [_integers(child) for child in expr.children()]
    count, has_data = sum(part[0] for part in found), any(part[1] for part in found)
    is_own = isinstance(expr, (*_OF_INTEGERS, *_OF_BITS)) and expr.dtype.is_integer and has_data
    return count + int(is_own), has_data


def _extents(block: Block) -> dict[Var, int]:
    """How many values each variable has that a block binds."""
    return {axis.var: axis.extent for axis in walk(block) if isinstance(axis, IterVar)}


def touched(buffer: Buffer, indices: Iterable[Expr], extents: Mapping[Var, int]) -> Box:
    """For each dimension of `buffer`, the indices that are used while variables run below their
    extents.
    """
    return tuple(
        index_set(at_most(index), extents, size)
        for index, size in zip(indices, buffer.shape, strict=True)
    )
