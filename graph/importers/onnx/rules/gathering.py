"""Rules of the operators that read where another tensor says.

Constant indices are checked while the model is read; where they walk in even steps, they are a
Slice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .....graph.importers.onnx.index_walks import IndexWalk
from .....graph.importers.onnx.rules.rule import Application
from .....tir.sizes import AnySize, Size, at_most, closed, closed_shape, largest, product_of
from ....errors import ModelError
from ....ops import gathering
from ....ops.base import normal_axis
from ....ops.movement import Reshape
from ....types import Array, Shape, array_of
from ..node import NodeReader
from .rule import ImportRule, Result
from .slicing import AxisWalk, add, part_of

_CHECKED = 1 << 24  # indices, at most, that are checked while a model is read


def _gather(node: NodeReader) -> Result:
    shape = node.type(0).shape
    axis = normal_axis(gathering.Gather(0), node.integer("axis", 0), len(shape))
    over = node.walks.get(node.value(1))
    if over is not None and not over.others and (made := _walked(node, shape, axis, over)):
        return made
    walk = _constant_walk(node, shape[axis])
    if walk is None:
        return gathering.Gather(axis), node.inputs
    taken = add(node, part_of(node.value(0), shape, {axis: walk}))
    return Reshape((*shape[:axis], *node.type(1).shape, *shape[axis + 1 :])), (taken,)


def _constant_walk(node: NodeReader, size: AnySize) -> AxisWalk | None:
    """The places of an axis of `size` that constant indices name, where they walk in even steps."""
    indices = constant_indices(node, size)
    if indices is not None:
        steps = _even_steps(indices)
        return None if steps is None else AxisWalk.along(steps)
    given = _constant(node)
    if given is None or not given.size or not isinstance(size, Size):
        return None
    steps = _even_steps(given)
    if steps is None or not (-size.low <= given.min() and given.max() < 0):
        return None
    return AxisWalk(size + steps.start, len(steps), steps.step)  # from the end of an open axis


def _walked(
    node: NodeReader, shape: Shape, axis: int, walk: IndexWalk, value: str = ""
) -> Application | None:
    """What a gather along `axis` is whose indices walk over it one by one; None where they do not,
    or may leave it.
    """
    count = product_of(walk.shape)
    inside = at_most(0, walk.offset) and at_most(walk.offset + count, shape[axis])
    if not walk.is_row_major or not inside:
        return None
    part = part_of(value or node.value(0), shape, {axis: AxisWalk(walk.offset, count)})
    return Reshape((*shape[:axis], *walk.shape, *shape[axis + 1 :])), (add(node, part),)


def _gather_elements(node: NodeReader) -> Result:
    shape = node.type(0).shape
    axis = normal_axis(gathering.GatherElements(0), node.integer("axis", 0), len(shape))
    constant_indices(node, shape[axis])
    return gathering.GatherElements(axis), node.inputs


def _gather_nd(node: NodeReader) -> Result:
    shape, batch = node.type(0).shape, node.integer("batch_dims", 0)
    op = gathering.GatherND(batch)
    op.infer((node.type(0), node.type(1)))
    depth = closed(node.type(1).shape[-1])
    sizes, rest = shape[batch : batch + depth], shape[batch + depth :]
    over = node.walks.get(node.value(1))
    if over is not None and not batch and len(over.others) == depth - 1:
        flat = (product_of(sizes), *rest)
        made = _walked(node, flat, 0, over.places(sizes), node.emit(Reshape(flat), node.value(0)))
        if made is not None:
            return made
    indices = constant_indices(node, sizes)
    if indices is None or batch:
        return op, node.inputs
    places = np.asarray(
        np.ravel_multi_index(tuple(np.moveaxis(indices, -1, 0)), closed_shape(sizes))
    )
    walk = _even_steps(places)
    if walk is None:
        return op, node.inputs
    joined = (product_of(sizes), *rest)
    rows = node.emit(Reshape(joined), node.value(0))
    return Reshape((*places.shape, *rest)), (
        add(node, part_of(rows, joined, {0: AxisWalk.along(walk)})),
    )


def constant_indices(node: NodeReader, open_sizes: AnySize | Shape) -> Array | None:
    """Indices that the model gives, counted from the front; None where it computes them, where they
    are so many that a run looks at them, or where its sizes decide what they name.

    open_sizes: of the axis that they are for, or of one axis for each element of their last one.
    Raises: ModelError when one lies outside in every run.
    """
    indices = _constant(node)
    if indices is None:
        return None
    listed = open_sizes if isinstance(open_sizes, tuple) else (open_sizes,)
    sizes = np.array([largest(size) for size in listed])
    least = np.array([size.low if isinstance(size, Size) else size for size in listed])
    outside = (indices < -sizes) | (indices >= sizes)
    if outside.any():
        wrong, size = indices[outside][0], np.broadcast_to(sizes, indices.shape)[outside][0]
        raise ModelError(
            f"model: {node.title} has index {wrong}; expected {-size} to {size - 1}.",
            code="onnx-index",
        )
    if ((least < sizes) & ((indices < 0) | (indices >= least))).any():
        return None
    return np.where(indices < 0, indices + sizes, indices)


def _constant(node: NodeReader) -> NDArray[np.int64] | None:
    """The indices that the model gives, if it does and they are not too many."""
    constant, type_ = node.builder.constants.get(node.value(1)), node.type(1)
    if constant is None or not np.issubdtype(type_.dtype, np.integer):
        return None
    return array_of(constant).astype(np.int64) if largest(type_.elements) <= _CHECKED else None


def _even_steps(indices: Array) -> range | None:
    """The indices, in row-major order, as a range; None where they do not walk in even steps."""
    listed = indices.reshape(-1)
    if listed.size < 2:
        return range(int(listed[0]), int(listed[0]) + 1) if listed.size else range(0)
    first, step = int(listed[0]), int(listed[1] - listed[0])
    if step == 0 or not np.array_equal(listed, first + step * np.arange(listed.size)):
        return None
    return range(first, first + step * listed.size, step)


RULES: dict[str, ImportRule] = {
    "Gather": ImportRule((1, 11, 13), ("axis",), _gather),
    "GatherElements": ImportRule((11, 13), ("axis",), _gather_elements),
    "GatherND": ImportRule((11, 12, 13), ("batch_dims",), _gather_nd),
}
