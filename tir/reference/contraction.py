"""Sums of products on whole arrays: factors broadcast over common axes, the leading ones summed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..expr import Expr, Mul

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def factors_of(value: Expr) -> tuple[Expr, ...]:
    """The expressions whose product `value` is."""
    if isinstance(value, Mul):
        return factors_of(value.a) + factors_of(value.b)
    return (value,)


def contract(factors: Sequence[Array], extents: Sequence[int], summed: int) -> Array:
    """The product of `factors`, summed over the first `summed` axes, by matrix products.

    factors: arrays with an axis per extent, of that size, or of size 1 where they do not depend on
    it. Returns the remaining axes; of size 1 where no factor depends on one.
    """
    left = list(factors)
    while len(left) > 2:
        pairs = [(i, j) for i in range(len(left)) for j in range(i)]
        i, j = min(pairs, key=lambda p: _joint_size(left[p[0]], left[p[1]]))
        a, b = left.pop(i), left.pop(j)
        left.append(np.multiply(a, b))
    if len(left) == 1:
        left.append(np.ones((1,) * len(extents), dtype=left[0].dtype))
    return _contract_pair(left[0], left[1], extents, summed)


def _joint_size(a: Array, b: Array) -> int:
    return math.prod(max(n, m) for n, m in zip(a.shape, b.shape, strict=True))


def _sum(array: Array, axes: tuple[int, ...]) -> Array:
    return np.add.reduce(array, axis=axes, keepdims=True, dtype=array.dtype) if axes else array


def _contract_pair(a: Array, b: Array, extents: Sequence[int], summed: int) -> Array:
    rank = len(extents)
    in_a = [a.shape[axis] > 1 for axis in range(rank)]
    in_b = [b.shape[axis] > 1 for axis in range(rank)]
    inner = range(summed)
    outer = range(summed, rank)
    a = _sum(a, tuple(axis for axis in inner if in_a[axis] and not in_b[axis]))
    b = _sum(b, tuple(axis for axis in inner if in_b[axis] and not in_a[axis]))
    repeats = math.prod(extents[axis] for axis in inner if not in_a[axis] and not in_b[axis])
    common = [axis for axis in inner if in_a[axis] and in_b[axis]]
    batch = [axis for axis in outer if in_a[axis] and in_b[axis]]
    rows = [axis for axis in outer if in_a[axis] and not in_b[axis]]
    columns = [axis for axis in outer if in_b[axis] and not in_a[axis]]
    x = _matrices(a, batch, rows, common)
    y = _matrices(b, batch, common, columns)
    product = np.matmul(x, y)
    order = [*batch, *rows, *columns]
    product = product.reshape([extents[axis] for axis in order])
    product = product.transpose([order.index(axis) for axis in sorted(order)])
    shape = [extents[axis] if in_a[axis] or in_b[axis] else 1 for axis in outer]
    result: Array = product.reshape(shape)
    if repeats != 1:
        result = np.multiply(result, np.asarray(repeats).astype(result.dtype))
    return result


def _matrices(
    array: Array, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Array:
    """`array`, of size 1 in all other axes, as a batch of matrices."""
    order = [*batch, *rows, *columns]
    rest = [axis for axis in range(array.ndim) if axis not in order]
    sizes = [[array.shape[axis] for axis in group] for group in (batch, rows, columns)]
    return array.transpose(order + rest).reshape([math.prod(size) for size in sizes])
