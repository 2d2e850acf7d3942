"""Work: how many floating-point operations a function's definition takes, and how many bytes it
must move.

Counted on the definition, whatever a schedule makes of it:
- an addition, subtraction, multiplication, division, minimum, maximum or call on floats is one
  operation, an Fma two; of the two sides of a Select the longer one counts; index arithmetic,
  comparisons and conversions are free;
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .array_expr import evaluate_expr
from .buffer import Buffer, Load
from .expr import TRUE, Add, Call, Const, Div, Expr, Max, Min, Mul, Select, Sub, Var
from .func import PrimFunc
from .lowered import Fma
from .node import Node
from .specialise import at_most
from .stmt import Block, IterVar, Role, Store
from .visit import free_vars, loads, stores, walk

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


def bytes_moved(func: PrimFunc) -> int:
    """Bytes of parameters that a function must read and write at least."""
    boxes: dict[Buffer, list[Box]] = {p.buffer: [] for p in func.parameters}
    for block in func.blocks:
        accesses: tuple[Load | Store, ...] = (*stores(block.body), *loads(block.body))
        for access in accesses:
            if access.buffer in boxes:
                boxes[access.buffer].append(touched(access.buffer, access.indices, block))
    return sum(_union(buffer, found) * buffer.type.bytes for buffer, found in boxes.items())


def block_work(block: Block) -> BlockWork:
    """What one block does."""
    targets = stores(block.body)
    own = {target.buffer for target in targets}
    read: dict[Buffer, list[Box]] = {}
    for load in loads(block.body):
        if load.buffer not in own:
            box = touched(load.buffer, load.indices, block)
            read.setdefault(load.buffer, []).append(box)
    moved = tuple((b, _union(b, boxes) * b.type.bytes) for b, boxes in read.items())
    written = []
    for target in targets:
        box = touched(target.buffer, target.indices, block)
        size = math.prod(len(values) for values in box)
        written.append((target.buffer, size * target.buffer.type.bytes))
    return BlockWork(points_of(block), block_operations(block), moved, tuple(written))


def points_of(block: Block) -> int:
    """How often the body of a block runs."""
    if block.counts == TRUE:
        return math.prod(axis.extent for axis in block.iters)
    counts = at_most(block.counts)
    used = free_vars(counts)
    moving = [axis for axis in block.iters if axis.var in used]
    return _counted(counts, moving) * math.prod(
        axis.extent for axis in block.iters if axis.var not in used
    )


def _counted(condition: Expr, axes: Sequence[IterVar]) -> int:
    """The points of `axes` at which a condition holds, some values of the first axis at a time."""
    first, *others = axes
    step = max(1, MOST_POINTS // max(1, math.prod(axis.extent for axis in others)))
    shape = [1] * len(axes)
    rest = {
        axis.var: np.arange(axis.extent).reshape([*shape[:d], -1, *shape[d + 1 :]])
        for d, axis in enumerate(others, 1)
    }
    count = 0
    for low in range(0, first.extent, step):
        part = np.arange(low, min(low + step, first.extent)).reshape([-1, *shape[1:]])
        held = evaluate_expr(condition, {first.var: part, **rest})
        whole = (part.size, *(axis.extent for axis in others))
        count += int(np.count_nonzero(np.broadcast_to(held, whole)))
    return count


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
    extents = {axis.var: axis.extent for axis in walk(block) if isinstance(axis, IterVar)}
    return tuple(
        _values(at_most(index), extents, size)
        for index, size in zip(indices, buffer.shape, strict=True)
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
