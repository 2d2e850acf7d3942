"""Rules of the operators that write where another tensor says.

Where the model gives the places, of rows or of many single elements, they are turned around while
it is read: each element of the result then reads the update that it takes, if there is one.
"""

from __future__ import annotations

import numpy as np

from .....tir.scatter import COMBININGS, Combining
from .....tir.sizes import closed, closed_shape, is_closed, largest, product_of
from ....errors import ModelError
from ....ops import arithmetic, scattering
from ....ops.base import listed, normal_axis
from ....ops.gathering import Gather
from ....ops.logic import Where
from ....ops.movement import Identity, Reshape
from ....types import Array, Shape, TensorType
from ..node import NodeReader, NotSupported
from .gathering import constant_indices
from .rule import Application, ImportRule, Result
from .slicing import add

_TURNED = 1 << 22  # elements of a result, at most, whose updates are looked for in advance
_FEW = 3  # elements to an update, from which on to write these is faster than to read places of all
_PAIRS = {
    "add": arithmetic.Add(),
    "mul": arithmetic.Mul(),
    "max": arithmetic.Max(),
    "min": arithmetic.Min(),
}


def _combining(node: NodeReader) -> Combining:
    name = node.text("reduction", "none")
    if name not in COMBININGS:
        raise NotSupported(f"reduction is '{name}'")
    return COMBININGS[name]


def _scatter_elements(node: NodeReader) -> Result:
    x, indices = node.type(0), node.type(1)
    axis = normal_axis(Identity(), node.integer("axis", 0), x.rank)
    op = scattering.ScatterElements(_combining(node), axis)
    op.infer((x, indices, node.type(2)))
    known = constant_indices(node, x.shape[axis])
    if known is not None and _is_small(x.shape) and closed(x.elements) < _FEW * known.size:
        at = np.indices(known.shape)
        at[axis] = known
        places = np.ravel_multi_index(tuple(at), closed_shape(x.shape))
        elements = [node.emit(Reshape((t.elements,)), v) for t, v in _data(node)]
        made = _turned(node, op.combining, np.asarray(places).reshape(-1), elements)
        if made is not None:
            return Reshape(x.shape), (add(node, made),)
    return op, node.inputs


def _scatter_nd(node: NodeReader) -> Result:
    x, indices, updates = node.type(0), node.type(1), node.type(2)
    depth = closed(indices.shape[-1]) if indices.rank else 0
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    if not 0 < depth <= x.rank or updates.shape != wanted:
        types = listed((x, indices, updates))
        raise ModelError(
            f"model: {node.title} has data, indices and updates {types}; expected indices "
            "[*k, d] into the first d axes of data, and updates [*k, *rest].",
            code="onnx-scatter",
        )
    sizes, count = x.shape[:depth], product_of(indices.shape[:-1])
    row = product_of(x.shape[depth:])
    op = scattering.ScatterND(_combining(node))
    known = constant_indices(node, sizes)
    if known is not None and _is_small(sizes):
        places = np.ravel_multi_index(tuple(np.moveaxis(known, -1, 0)), closed_shape(sizes))
        rows = [
            node.emit(Reshape((count_, row)), v)
            for (_, v), count_ in zip(_data(node), (product_of(sizes), count), strict=True)
        ]
        made = _turned(node, op.combining, np.asarray(places).reshape(-1), rows)
        if made is not None:
            return Reshape(x.shape), (add(node, made),)
    data, at, new = (
        node.emit(Reshape(shape), node.value(position))
        for position, shape in enumerate(((*sizes, row), (count, depth), (count, row)))
    )
    return Reshape(x.shape), (node.emit(op, data, at, new),)


def _is_small(shape: Shape) -> bool:
    """Whether the model says how many places there are, and they are not too many."""
    return is_closed(shape) and largest(product_of(shape)) <= _TURNED


def _turned(
    node: NodeReader, combining: str, places: Array, columns: list[str]
) -> Application | None:
    """The first of two arrays [n, ...], [k, ...] with the rows of the second one at `places`, of
    which the last one stays where several meet; None where they would have to be combined.
    """
    x, updates = columns
    count, *row = node.builder.types[x].shape
    if not places.size:
        return Identity(), (x,)
    if combining != "none" and len(np.unique(places)) < places.size:
        return None
    source = np.full(closed(count), -1, np.int64)
    source[places.astype(np.int64)] = np.arange(places.size)
    taken = source >= 0
    rows = node.emit(Gather(0), updates, node.table("source", np.maximum(source, 0)))
    if combining != "none":
        rows = node.emit(_PAIRS[combining], x, rows)
    if taken.all():
        return Identity(), (rows,)
    return Where(), (node.table("taken", taken.reshape(-1, *[1] * len(row))), rows, x)


def _data(node: NodeReader) -> list[tuple[TensorType, str]]:
    return [(node.type(position), node.value(position)) for position in (0, 2)]


def _tensor_scatter(node: NodeReader) -> Result:
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise NotSupported(f"mode is '{mode}'")
    axis = normal_axis(Identity(), node.integer("axis", -2), node.type(0).rank)
    return scattering.CacheUpdate(axis, mode == "circular"), node.inputs


def _reverse_sequence(node: NodeReader) -> Result:
    rank = node.type(0).rank
    time = normal_axis(Identity(), node.integer("time_axis", 0), rank)
    batch = normal_axis(Identity(), node.integer("batch_axis", 1), rank)
    return scattering.ReverseSequence(time, batch), node.inputs


RULES: dict[str, ImportRule] = {
    "ReverseSequence": ImportRule((10, 28), ("batch_axis", "time_axis"), _reverse_sequence),
    "Scatter": ImportRule((9, 11), ("axis",), _scatter_elements),
    "ScatterElements": ImportRule((11, 13, 16, 18), ("axis", "reduction"), _scatter_elements),
    "ScatterND": ImportRule((11, 13, 16, 18), ("reduction",), _scatter_nd),
    "TensorScatter": ImportRule((24,), ("axis", "mode"), _tensor_scatter),
}
