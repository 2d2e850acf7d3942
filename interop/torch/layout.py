"""Tensors whose elements are dense but in another order than their axes say, as after a transpose
or with the channels last: the order of the axes in which they are contiguous.
"""

from __future__ import annotations

from typing import Any


def hint(size: Any) -> int:
    """A size as it was when the graph was made; no guard comes of asking."""
    if isinstance(size, int):
        return size
    found = size.node.hint
    return 1 if found is None else int(found)


def stored_order(tensor: Any) -> tuple[int, ...] | None:
    """The axes of a tensor by falling strides where its elements are dense in that order, and not
    in its own; None where it is contiguous, or not dense at all.
    """
    sizes, strides = [hint(n) for n in tensor.shape], [hint(n) for n in tensor.stride()]
    real = [axis for axis, size in enumerate(sizes) if size != 1]
    falling = sorted(real, key=lambda axis: -strides[axis])
    expected = 1
    for axis in reversed(falling):
        if strides[axis] != expected:
            return None
        expected *= sizes[axis]
    if falling == real:
        return None
    order, places = list(range(len(sizes))), iter(falling)
    return tuple(next(places) if axis in real else axis for axis in order)
