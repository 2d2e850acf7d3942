"""Work: how many floating-point operations a function's definition takes, and how many bytes it
must move.

Counted on the definition, whatever a schedule makes of it:
- an addition, subtraction, multiplication, division, minimum, maximum or call on floats is one
  operation, an Fma two; of the two sides of a Select the longer one counts; index arithmetic,
  comparisons and conversions are free;
- an element is moved once, however often it is read: `bytes_moved` is what remains with a cache of
  unlimited size. Padding that a Select skips lies outside the buffer and is not counted. Dimensions
  are taken one by one, so a diagonal (two indices that move together) counts as the box around it;
- an index that is data is taken to reach as many elements as it has values, or all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .array_expr import evaluate_expr
from .buffer import Buffer, Load
from .expr import Add, Call, Const, Div, Expr, Max, Min, Mul, Select, Sub, Var
from .func import PrimFunc
from .lowered import Fma
from .node import Node
from .stmt import Block, Role, Store
from .visit import free_vars, loads, stores

MOST_POINTS = (
    1 << 20
)  # values of one index that are listed; beyond, it is taken to reach everything
_ARITHMETIC = (Add, Sub, Mul, Div, Min, Max)
Values = NDArray[np.int64]
Box = tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class BlockWork:
    """What one block does, over its whole domain.

    points: how often its body runs; operations: floating-point operations.
    read: bytes of each tensor that it reads, without the one that it accumulates in; written: bytes
    that it stores.
    """

    points: int
    operations: int
    read: tuple[tuple[Buffer, int], ...]
    written: int


def operations(func: PrimFunc) -> int:
    """Floating-point operations of a function."""
    return sum(block_operations(block) for block in func.blocks if block.role is Role.COMPUTE)


def bytes_moved(func: PrimFunc) -> int:
    """Bytes of parameters that a function must read and write at least."""
    boxes: dict[Buffer, list[Box]] = {p.buffer: [] for p in func.parameters}
    for block in func.blocks:
        target = stores(block.body)[0]
        accesses: tuple[Load | Store, ...] = (target, *loads(block.body))
        for access in accesses:
            if access.buffer in boxes:
                boxes[access.buffer].append(touched(access.buffer, access.indices, block))
    return sum(_union(buffer, found) * buffer.type.bytes for buffer, found in boxes.items())


def block_work(block: Block) -> BlockWork:
    """What one block does."""
    target = stores(block.body)[0]
    read: dict[Buffer, list[Box]] = {}
    for load in loads(block.body):
        if load.buffer is not target.buffer:
            box = touched(load.buffer, load.indices, block)
            read.setdefault(load.buffer, []).append(box)
    moved = tuple((b, _union(b, boxes) * b.type.bytes) for b, boxes in read.items())
    written = touched(target.buffer, target.indices, block)
    size = math.prod(len(values) for values in written) * target.buffer.type.bytes
    return BlockWork(points_of(block), block_operations(block), moved, size)


def points_of(block: Block) -> int:
    """How often the body of a block runs."""
    return math.prod(axis.extent for axis in block.iters)


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


def touched(buffer: Buffer, indices: Iterable[Expr], block: Block) -> Box:
    """For each dimension of `buffer`, the indices that a block uses, ascending."""
    extents = {axis.var: axis.extent for axis in block.iters}
    return tuple(
        _values(index, extents, size) for index, size in zip(indices, buffer.shape, strict=True)
    )


def _values(index: Expr, extents: dict[Var, int], size: int) -> Values:
    if isinstance(index, Var) and index in extents:
        return np.arange(min(extents[index], size))
    moving = sorted(free_vars(index) & extents.keys(), key=list(extents).index)
    if math.prod(extents[var] for var in moving) > MOST_POINTS:
        return np.arange(size)
    if loads(index):  # data: at most one element for each value that it depends on
        return np.arange(min(size, math.prod(extents[var] for var in moving)))
    rank = len(moving)
    axes = {
        var: np.arange(extents[var]).reshape([-1 if d == axis else 1 for d in range(rank)])
        for axis, var in enumerate(moving)
    }
    found: Values = np.unique(evaluate_expr(index, axes)).astype(np.int64)
    return found[(found >= 0) & (found < size)]


def _union(buffer: Buffer, boxes: list[Box]) -> int:
    """Elements in at least one of the boxes."""
    distinct = {tuple(values.tobytes() for values in box): box for box in boxes}
    if len(distinct) <= 1:
        return sum(math.prod(len(values) for values in box) for box in distinct.values())
    if any(all(len(v) == n for v, n in zip(box, buffer.shape, strict=True)) for box in boxes):
        return buffer.size
    marked = np.zeros(buffer.shape, dtype=np.bool_)
    for box in distinct.values():
        marked[np.ix_(*box)] = True
    return int(np.count_nonzero(marked))
