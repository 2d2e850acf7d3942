"""Indices that a model computes of ranges, as exporters write them to move elements: what walks
over an axis in even steps is no gather, whoever decides the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....tir.sizes import AnySize, product_of
from ...ir.build import GraphBuilder
from ...ir.ir import GraphNode
from ...ops import arithmetic, functions, movement, repetition, size_values
from ...types import Shape, array_of

_MOST_CONSTANT = 1 << 16  # elements of a constant that is looked at


@dataclass(frozen=True, slots=True)
class IndexWalk:
    """Integers of `shape`: the one at i is offset + the sum of strides[d] * i[d].

    others: what stands behind it along one more axis, the last one, in order.
    """

    shape: Shape
    offset: AnySize
    strides: Shape
    others: tuple[IndexWalk, ...] = ()

    def seen(self, shape: Shape) -> IndexWalk:
        """The walk broadcast to a shape."""
        lead = len(shape) - len(self.shape)
        pairs = zip((1,) * lead + self.shape, (0,) * lead + self.strides, strict=True)
        strides = tuple(0 if size == 1 else stride for size, stride in pairs)
        return IndexWalk(shape, self.offset, strides)

    def plus(self, other: IndexWalk, sign: int = 1) -> IndexWalk:
        """The sum, or the difference, of two walks of one shape."""
        pairs = zip(self.strides, other.strides, strict=True)
        strides = tuple(a + b * sign for a, b in pairs)
        return IndexWalk(self.shape, self.offset + other.offset * sign, strides)

    def times(self, number: AnySize) -> IndexWalk:
        """The walk in larger steps."""
        strides = tuple(stride * number for stride in self.strides)
        return IndexWalk(self.shape, self.offset * number, strides)

    def places(self, extents: Sequence[AnySize]) -> IndexWalk:
        """The row-major places among axes of `extents`, of which it names one index for each."""
        total = replace(self, others=()).times(product_of(extents[1:]))
        for n, other in enumerate(self.others, 1):
            total = total.plus(other.times(product_of(extents[n + 1 :])))
        return total

    @property
    def is_row_major(self) -> bool:
        """Whether it walks from its offset on one by one, in row-major order."""
        step: AnySize = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step = step * size
        return True


def note_walk(node: GraphNode, builder: GraphBuilder, walks: dict[str, IndexWalk]) -> None:
    """Keep what a node's only output is, where it is a walk."""
    found = _walk_of(node, builder, walks) if len(node.outputs) == 1 else None
    if found is not None:
        walks[node.outputs[0]] = found


def _walk_of(
    node: GraphNode, builder: GraphBuilder, noted: Mapping[str, IndexWalk]
) -> IndexWalk | None:
    (type_,) = node.infer(builder.types)
    if type_.dtype not in ("int32", "int64"):
        return None
    match node.op:
        case size_values.SizeRange(start, _, step):
            return IndexWalk(type_.shape, start, (step,))
        case size_values.SizeValues(values) if len(values) == 1:
            return IndexWalk(type_.shape, values[0], (0,) * type_.rank)
    walks = [noted.get(value) or _constant(builder, value) for value in node.inputs]
    known = [walk for walk in walks if walk is not None]
    if not known or len(known) < len(walks):
        return None
    first = known[0]
    match node.op:
        case movement.Identity() | functions.Cast():
            return first
        case repetition.Expand() if not first.others:
            return first.seen(type_.shape)
        case movement.Reshape(shape) if not first.others:
            return _reshaped(first, shape)
        case movement.Concat(axis) if axis == len(type_.shape) - 1:
            return _side_by_side(known)
        case arithmetic.Add() | arithmetic.Sub() if not any(walk.others for walk in known):
            a, b = (walk.seen(type_.shape) for walk in known)
            return a.plus(b, 1 if isinstance(node.op, arithmetic.Add) else -1)
        case arithmetic.Mul() if not any(walk.others for walk in known):
            a, b = (walk.seen(type_.shape) for walk in known)
            if any(stride != 0 for stride in b.strides):
                a, b = b, a
            return None if any(stride != 0 for stride in b.strides) else a.times(b.offset)
    return None


def _constant(builder: GraphBuilder, value: str) -> IndexWalk | None:
    """A constant whose integers go in even steps along each axis; None where it is another one."""
    constant = builder.constants.get(value)
    if constant is None or not 0 < math.prod(constant.shape) <= _MOST_CONSTANT:
        return None
    array = array_of(constant)
    if not (np.isfinite(array).all() and (array == np.trunc(array)).all()):
        return None
    numbers = array.astype(np.int64)
    offset = numbers.reshape(-1)[0]
    strides: list[int] = []
    walked = np.full(numbers.shape, offset)
    for axis, size in enumerate(numbers.shape):
        beside = numbers[tuple(int(d == axis and size > 1) for d in range(numbers.ndim))]
        strides.append(int(beside - offset))
        steps = np.arange(size) * strides[-1]
        walked += steps.reshape(-1, *(1,) * (numbers.ndim - axis - 1))
    is_even = bool((numbers == walked).all())
    return IndexWalk(numbers.shape, int(offset), tuple(strides)) if is_even else None


def _reshaped(walk: IndexWalk, shape: Shape) -> IndexWalk | None:
    """The walk under a shape that differs in axes of one element alone; None under another one."""
    pairs = zip(walk.shape, walk.strides, strict=True)
    long = [(size, stride) for size, stride in pairs if size != 1]
    if [size for size, _ in long] != [size for size in shape if size != 1]:
        return None
    rest = iter(long)
    strides = tuple(0 if size == 1 else next(rest)[1] for size in shape)
    return IndexWalk(shape, walk.offset, strides)


def _side_by_side(walks: Sequence[IndexWalk]) -> IndexWalk | None:
    """Walks with a last axis of one element, one beside the other along it."""
    if any(walk.others or walk.shape[-1] != 1 for walk in walks):
        return None
    parts = [IndexWalk(w.shape[:-1], w.offset, w.strides[:-1]) for w in walks]
    if any(part.shape != parts[0].shape for part in parts):
        return None
    return replace(parts[0], others=tuple(parts[1:]))
