"""Where in its buffer a Load reads, at many points at once: one flat index for each.

An index such as 2*y + ky is a sum of parts that vary along different axes of the points (y along
one, ky along another). Each part is computed along its own axis alone, and its least and greatest
values say whether the sum stays inside; the points as a whole take one addition for each axis more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..buffer import Load
from ..dtype import INT64
from ..expr import Expr
from .linear import linear

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Indices = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Axes = frozenset[int]
Parts = dict[Axes, Array]


def offsets(load: Load, value: Callable[[Expr], Array]) -> Indices | None:
    """The flat indices of the elements that a Load reads, dense and row-major; None where an index
    leaves its dimension, or may.

    value: the value of an expression at all points, an array that broadcasts against others.
    """
    parts = offset_parts(load, value)
    if parts is None:
        return None
    flat, *others = sorted(parts.values(), key=np.size)
    for other in others:
        flat = np.add(flat, other)
    return flat.astype(np.int64, copy=False)


def offset_parts(load: Load, value: Callable[[Expr], Array]) -> Parts | None:
    """The flat indices that `offsets` gives, as the arrays that they are sums of: each varies along
    axes of its own.
    """
    whole: Parts = {frozenset(): np.asarray(0)}
    for index, size in zip(load.indices, load.buffer.shape, strict=True):
        if index.dtype != INT64:
            return None
        parts = _parts(index, value)
        if parts is None or not _inside(parts, size):
            return None
        whole = {axes: part * size for axes, part in whole.items()}
        for axes, part in parts.items():
            _put(whole, axes, part)
    return whole


def _parts(index: Expr, value: Callable[[Expr], Array]) -> Parts | None:
    """An index as a sum of arrays that vary along different axes."""
    form = linear(index)
    parts: Parts = {frozenset(): np.asarray(form.constant)}
    for atom, coefficient in form.terms:
        found = np.asarray(value(atom))
        if found.size == 0:
            return None
        axes = frozenset(axis - found.ndim for axis, size in enumerate(found.shape) if size > 1)
        _put(parts, axes, found if coefficient == 1 else np.multiply(found, coefficient))
    return parts


def _put(parts: Parts, axes: Axes, part: Array) -> None:
    """Add a part to those that vary along its axes."""
    for other in [other for other in parts if other == axes or not other.isdisjoint(axes)]:
        axes, part = axes | other, np.add(parts.pop(other), part)
    parts[axes] = part


def _inside(parts: Parts, size: int) -> bool:
    """Whether every sum is an index of a dimension of `size` elements."""
    low = sum(int(part.min()) for part in parts.values())
    high = sum(int(part.max()) for part in parts.values())
    return low >= 0 and high < size
