"""What each ONNX operator means in core operators: one rule for each, for all versions since 7.

A rule reads a node and returns the core operator with its inputs, or the constant that the node is.
What depends only on types is decided here: automatic padding, omitted attributes, shapes given as
values. A rule lists the versions whose meaning it knows, so a version that a later ONNX brings is
refused instead of misread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import ModelError
from ..ops import elementwise, matmul, movement, normalisation, pooling, softmax
from ..ops.base import Operator, normal_axis
from ..ops.convolution import Conv
from ..types import Constant, Splat, TensorType, frozen
from .limits import checked_type
from .onnx_node import NodeReader, NotSupported

Result = tuple[Operator, tuple[str, ...]] | Constant


@dataclass(frozen=True, slots=True)
class Rule:
    """How to import one operator.

    versions: as ONNX counts them; attributes: the names that `build` understands.
    """

    versions: tuple[int, ...]
    attributes: tuple[str, ...]
    build: Callable[[NodeReader], Result]


def _plain(op: Operator) -> Callable[[NodeReader], Result]:
    return lambda node: (op, node.inputs)


def _windows(
    node: NodeReader, kernel: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, pads and dilations of windows of `kernel` taps; automatic padding is resolved."""
    n = len(kernel)
    sizes = node.type(0).shape[2:]
    strides = node.integers("strides", (1,) * n)
    dilations = node.integers("dilations", (1,) * n)
    mode = node.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return strides, node.integers("pads", (0,) * (2 * n)), dilations
    if mode == "VALID":
        return strides, (0,) * (2 * n), dilations
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotSupported(f"auto_pad is '{mode}'")
    if not len(sizes) == len(strides) == len(dilations) == n or min((1, *strides)) < 1:
        return strides, (0,) * (2 * n), dilations  # malformed: the operator's own check says how
    extents = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    totals = [
        max(0, (-(-size // stride) - 1) * stride + extent - size)
        for size, stride, extent in zip(sizes, strides, extents, strict=True)
    ]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = (*small, *large) if mode == "SAME_UPPER" else (*large, *small)
    return strides, pads, dilations


def _conv(node: NodeReader) -> Result:
    kernel = node.type(1).shape[2:]
    stated = node.integers("kernel_shape", kernel)
    if stated != kernel:
        raise ModelError(
            f"model: {node.title} has kernel_shape {list(stated)} and weights {node.type(1)}.",
            code="onnx-kernel-shape",
        )
    strides, pads, dilations = _windows(node, kernel)
    return Conv(strides, pads, dilations, node.integer("group", 1)), node.inputs


def _max_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    return pooling.MaxPool(kernel, *_windows(node, kernel), node.flag("ceil_mode")), node.inputs


def _average_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    windows = _windows(node, kernel)
    ceil, include = node.flag("ceil_mode"), node.flag("count_include_pad")
    return pooling.AveragePool(kernel, *windows, ceil, include), node.inputs


def _batch_normalization(node: NodeReader) -> Result:
    if node.integer("spatial", 1) != 1:
        raise NotSupported("spatial is 0")
    if node.flag("training_mode"):
        raise NotSupported("training_mode is 1")
    return normalisation.BatchNormalization(node.real("epsilon", 1e-5)), node.inputs


def _lrn(node: NodeReader) -> Result:
    alpha, beta, bias = node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0)
    return normalisation.LRN(node.integer("size"), alpha, beta, bias), node.inputs


def _gemm(node: NodeReader) -> Result:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    return matmul.Gemm(alpha, beta, node.flag("transA"), node.flag("transB")), node.inputs


def _matmul(node: NodeReader) -> Result:
    if min(node.type(0).rank, node.type(1).rank) < 2:
        raise NotSupported(
            f"an operand has less than two dimensions: {node.type(0)}, {node.type(1)}"
        )
    return matmul.MatMul(), node.inputs


def _softmax(node: NodeReader) -> Result:
    rank = node.type(0).rank
    old = node.version < 13
    op = softmax.Softmax(())
    axis = normal_axis(op, node.integer("axis", 1 if old else -1), rank)
    return softmax.Softmax(tuple(range(axis, rank)) if old else (axis,)), node.inputs


def _dropout(node: NodeReader) -> Result:
    if node.has(2) and bool(node.constant(2, 1).any()):
        raise NotSupported("training_mode is true")
    return movement.Identity(), node.inputs[:1]


def _concat(node: NodeReader) -> Result:
    axis = normal_axis(movement.Concat(0), node.integer("axis"), node.type(0).rank)
    return movement.Concat(axis), node.inputs


def _reshaped(node: NodeReader, shape: tuple[int, ...]) -> Result:
    return movement.Reshape(shape), node.inputs[:1]


def _reshape(node: NodeReader) -> Result:
    source, shape = node.type(0).shape, list(node.sizes(1))
    if not node.flag("allowzero"):
        shape = [
            source[d] if size == 0 and d < len(source) else size for d, size in enumerate(shape)
        ]
    if -1 in shape:
        known = math.prod(size for size in shape if size != -1)
        elements = math.prod(source)
        if shape.count(-1) > 1 or known <= 0 or elements % known:
            raise ModelError(
                f"model: {node.title} cannot fit {node.type(0)} into shape {list(node.sizes(1))}.",
                code="onnx-reshape",
            )
        shape[shape.index(-1)] = elements // known
    return _reshaped(node, tuple(shape))


def _flatten(node: NodeReader) -> Result:
    shape = node.type(0).shape
    axis = node.integer("axis", 1)
    if axis != len(shape):
        axis = normal_axis(movement.Identity(), axis, len(shape))
    return _reshaped(node, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _axes(node: NodeReader, rank: int) -> set[int] | None:
    """The axes of a Squeeze or Unsqueeze, an attribute or an input; None when not given."""
    if node.given("axes"):
        axes = node.integers("axes")
    elif node.has(1):
        axes = node.sizes(1)
    else:
        return None
    chosen = {normal_axis(movement.Identity(), axis, rank) for axis in axes}
    if len(chosen) != len(axes):
        raise ModelError(
            f"model: {node.title} names an axis twice: {list(axes)}.", code="onnx-axes"
        )
    return chosen


def _unsqueeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    count = len(node.integers("axes")) if node.given("axes") else len(node.sizes(1))
    axes = _axes(node, len(source) + count) or set()
    sizes = iter(source)
    return _reshaped(
        node, tuple(1 if d in axes else next(sizes) for d in range(len(source) + count))
    )


def _squeeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    axes = _axes(node, len(source))
    if axes is None:
        axes = {d for d, size in enumerate(source) if size == 1}
    if any(source[d] != 1 for d in axes):
        raise ModelError(
            f"model: {node.title} removes axes {sorted(axes)} of {node.type(0)}, which are not all "
            "of size 1.",
            code="onnx-squeeze",
        )
    return _reshaped(node, tuple(size for d, size in enumerate(source) if d not in axes))


def _transpose(node: NodeReader) -> Result:
    rank = node.type(0).rank
    return movement.Transpose(node.integers("perm", tuple(reversed(range(rank))))), node.inputs


def _constant(node: NodeReader) -> Result:
    if node.given("value"):
        return node.tensor("value")
    if node.given("value_float"):
        return frozen(np.asarray(node.real("value_float", 0.0), dtype=np.float32))
    if node.given("value_int"):
        return frozen(np.asarray(node.integer("value_int"), dtype=np.int64))
    if node.given("value_floats"):
        return frozen(np.asarray(node.reals("value_floats"), dtype=np.float32))
    return frozen(np.asarray(node.integers("value_ints"), dtype=np.int64))


def _constant_of_shape(node: NodeReader) -> Result:
    shape = node.sizes(0)
    value = node.tensor("value") if node.given("value") else np.zeros(1, dtype=np.float32)
    if value.size != 1:
        what = TensorType(value.dtype.name, value.shape)
        raise ModelError(
            f"model: {node.title} has value {what}; expected one element.",
            code="onnx-constant-of-shape",
        )
    type_ = checked_type(
        f"the result of {node.title}", value.dtype.name, shape, node.tensors.limits
    )
    return Splat(value.item(), type_.dtype, type_.shape)


_WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")
_MOVES = (
    13,
    21,
    23,
    24,
    25,
)  # versions of the operators that move data: each only adds element types

RULES: dict[str, Rule] = {
    "Add": Rule((7, 13, 14), (), _plain(elementwise.Add())),
    "AveragePool": Rule(
        (7, 10, 11, 19, 22), (*_WINDOW, "ceil_mode", "count_include_pad"), _average_pool
    ),
    "BatchNormalization": Rule(
        (7, 9, 14, 15), ("epsilon", "momentum", "spatial", "training_mode"), _batch_normalization
    ),
    "Concat": Rule((4, 11, 13), ("axis",), _concat),
    "Constant": Rule(
        (1, 9, 11, 12, 19, *_MOVES),
        ("value", "value_float", "value_int", "value_floats", "value_ints"),
        _constant,
    ),
    "ConstantOfShape": Rule((9, 20, 21, 23, 24, 25), ("value",), _constant_of_shape),
    "Conv": Rule((1, 11, 22), (*_WINDOW, "group"), _conv),
    "Dropout": Rule((7, 10, 12, 13, 22), ("ratio", "seed"), _dropout),
    "Flatten": Rule((1, 9, 11, *_MOVES), ("axis",), _flatten),
    "Gemm": Rule((7, 9, 11, 13), ("alpha", "beta", "transA", "transB"), _gemm),
    "GlobalAveragePool": Rule((1, 22), (), _plain(pooling.GlobalAveragePool())),
    "Identity": Rule((1, 14, 16, 19, *_MOVES), (), _plain(movement.Identity())),
    "LRN": Rule((1, 13), ("alpha", "beta", "bias", "size"), _lrn),
    "MatMul": Rule((1, 9, 13), (), _matmul),
    "MaxPool": Rule((1, 8, 10, 11, 12, 22), (*_WINDOW, "ceil_mode", "storage_order"), _max_pool),
    "Mul": Rule((7, 13, 14), (), _plain(elementwise.Mul())),
    "Relu": Rule((6, 13, 14), (), _plain(elementwise.Relu())),
    "Reshape": Rule((5, 14, 19, *_MOVES), ("allowzero",), _reshape),
    "Softmax": Rule((1, 11, 13), ("axis",), _softmax),
    "Squeeze": Rule((1, 11, *_MOVES), ("axes",), _squeeze),
    "Sum": Rule((6, 8, 13), (), _plain(elementwise.Sum())),
    "Transpose": Rule((1, *_MOVES), ("perm",), _transpose),
    "Unsqueeze": Rule((1, 11, *_MOVES), ("axes",), _unsqueeze),
}
