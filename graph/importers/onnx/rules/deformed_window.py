"""Rules of windows whose elements data move or add up again: DeformConv, Col2Im."""

from __future__ import annotations

import math

import numpy as np

from .....tir.sizes import closed, closed_shape
from ....errors import ModelError
from ....ops.arithmetic import Add, Mul
from ....ops.folding import Col2Im
from ....ops.matmul import MatMul
from ....ops.movement import Reshape, Transpose
from ....ops.sampling import SampleAt
from ..node import NodeReader
from .rule import ImportRule, Result
from .slicing import AxisWalk, add, part_of


def _deform_conv(node: NodeReader) -> Result:
    """Values between the elements of the data, as rows of a matrix product."""
    x, w, out = node.type(0), node.type(1), closed_shape(node.type(2).shape[2:])
    kernel = closed_shape(w.shape[2:])
    n, taps, places = len(kernel), math.prod(kernel), math.prod(out)
    groups, shared = node.integer("group", 1), node.integer("offset_group", 1)
    fits = x.rank == w.rank >= 3 and min(groups, shared) > 0 and len(out) == n
    channels, outputs = closed(x.shape[1]) if fits else 0, closed(w.shape[0])
    offsets = (x.shape[0], shared * taps * n, *out)
    masks = (x.shape[0], shared * taps, *out)
    if (
        not fits
        or channels % shared
        or outputs % groups
        or channels != closed(w.shape[1]) * groups
        or node.type(2).shape != offsets
        or (node.has(4) and node.type(4).shape != masks)
        or node.integers("kernel_shape", kernel) != kernel
    ):
        raise ModelError(
            f"model: {node.title} has input {x}, weights {w}, offsets {node.type(2)}, group "
            f"{groups} and offset_group {shared}, which do not fit.",
            code="onnx-deform-conv",
        )
    images = x.shape[0] * shared
    flat = (taps * places, *(1,) * (n - 1))
    data = node.emit(Reshape((images, channels // shared, *x.shape[2:])), node.value(0))
    at = node.emit(Reshape((images, *flat, n)), _places(node, kernel, out, shared))
    found = node.emit(SampleAt(), data, at)
    if node.has(4):
        mask = node.emit(Reshape((images, 1, *flat)), node.value(4))
        found = node.emit(Mul(), found, mask)
    rows = channels // groups * taps
    columns = node.emit(Reshape((x.shape[0], groups, rows, places)), found)
    weights = node.emit(Reshape((groups, outputs // groups, rows)), node.value(1))
    product = node.emit(MatMul(), weights, columns)
    whole = Reshape((x.shape[0], outputs, *out))
    if not node.has(3):
        return whole, (product,)
    bias = node.emit(Reshape((outputs, *(1,) * n)), node.value(3))
    return Add(), (node.emit(whole, product), bias)


def _places(node: NodeReader, kernel: tuple[int, ...], out: tuple[int, ...], shared: int) -> str:
    """Where each tap of each window reads: [images, taps, windows..., axes], the coordinate along
    the last axis first.
    """
    offset, n, taps = node.type(2), len(kernel), math.prod(kernel)
    strides, dilations = node.as_many("strides", (1,) * n), node.as_many("dilations", (1,) * n)
    before = node.as_many("pads", (0,) * (2 * n))[:n]
    shape = (offset.shape[0] * shared, taps, n, *out)
    split = node.emit(Reshape(shape), node.value(2))
    turned = add(node, part_of(split, shape, {2: AxisWalk(n - 1, n, -1)}))
    last = node.emit(Transpose((0, 1, *range(3, 3 + n), 2)), turned)
    steps = np.moveaxis(np.indices(kernel), 0, -1).reshape(taps, *(1,) * n, n)
    starts = np.moveaxis(np.indices(out), 0, -1) * strides - before
    found = last
    for name, table in (("taps", steps * dilations), ("windows", starts)):
        numbers = table[..., ::-1].astype(offset.dtype)
        found = node.emit(Add(), found, node.table(name, numbers))
    return found


def _col2im(node: NodeReader) -> Result:
    sizes, kernel = node.sizes(1), node.sizes(2)
    n = len(sizes)
    op = Col2Im(
        sizes,
        kernel,
        node.as_many("strides", (1,) * n),
        node.as_many("pads", (0,) * (2 * n)),
        node.as_many("dilations", (1,) * n),
    )
    return op, node.inputs[:1]


RULES: dict[str, ImportRule] = {
    "Col2Im": ImportRule((18,), ("dilations", "pads", "strides"), _col2im),
    "DeformConv": ImportRule(
        (19, 22),
        ("dilations", "group", "kernel_shape", "offset_group", "pads", "strides"),
        _deform_conv,
    ),
}
