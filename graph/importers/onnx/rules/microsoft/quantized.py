"""Rules of operators of integers that stand for floating-point numbers, but for products: they are
computed as these, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

from .....errors import ModelError
from .....ops import activation, arithmetic, logic, movement, pooling
from .....ops.base import Operator, normal_axis
from .....ops.softmax import Softmax
from ...node import NodeReader
from ..rule import ImportRule, Result
from ..window import stated
from .levels import levels, real
from .spelling import channels_first, channels_last, whole_list

_POOLING = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


def _quantize(node: NodeReader) -> Result:
    dtype = node.type(2).dtype if node.has(2) else "uint8"
    axis = node.integer("axis", 1)
    y = levels(node, node.value(0), node.value(1), node.optional(2), dtype, axis)
    return movement.Identity(), (y,)


def _dequantize(node: NodeReader) -> Result:
    return movement.Identity(), (_real(node, 0, node.integer("axis", 1)),)


def _real(node: NodeReader, position: int, axis: int = 1) -> str:
    """An input, its scale and zero behind it, as a floating-point number."""
    scale, zero = node.value(position + 1), node.optional(position + 2)
    return real(node, node.value(position), scale, zero, axis)


def _rounded(node: NodeReader, value: str, position: int, like: int = 0) -> Result:
    """The result in the levels of a scale and a zero, and in the type of an input."""
    scale, zero = node.value(position), node.optional(position + 1)
    return movement.Identity(), (levels(node, value, scale, zero, node.type(like).dtype),)


def _binary(op: Operator) -> Callable[[NodeReader], Result]:
    return lambda node: _rounded(node, node.emit(op, _real(node, 0), _real(node, 3)), 6)


def _sigmoid(node: NodeReader) -> Result:
    return _rounded(node, node.emit(activation.Sigmoid(), _real(node, 0)), 3)


def _leaky_relu(node: NodeReader) -> Result:
    op = activation.LeakyRelu(node.real("alpha", 0.01))
    return _rounded(node, node.emit(op, _real(node, 0)), 3)


def _softmax(node: NodeReader) -> Result:
    """Over one axis, or before opset 13 over this one and all behind it."""
    rank = node.type(0).rank
    axis = normal_axis(movement.Identity(), node.integer("axis", -1), rank)
    axes = (axis,) if node.integer("opset") >= 13 else tuple(range(axis, rank))
    return _rounded(node, node.emit(Softmax(axes), _real(node, 0)), 3)


def _where(node: NodeReader) -> Result:
    op = logic.Where()
    return _rounded(node, node.emit(op, node.value(0), _real(node, 1), _real(node, 4)), 7, like=1)


def _mean(node: NodeReader) -> Result:
    axes = whole_list(node, node.integers("axes"))
    y = node.spell("ReduceMean", _real(node, 0), axes, keepdims=node.integer("keepdims"))
    return _rounded(node, y, 3)


def _concat(node: NodeReader) -> Result:
    """Behind the scale and the zero of the result: each input with its own."""
    count = len(node.inputs)
    if count < 5 or count % 3 != 2:
        raise ModelError(
            f"model: {node.title} has {count} inputs; expected a scale and a zero point, then "
            "three for each part.",
            code="onnx-concat-levels",
        )
    parts = [_real(node, n) for n in range(2, count, 3)]
    y = node.spell("Concat", *parts, axis=node.integer("axis"))
    return _rounded(node, y, 0, like=2)


def _average_pool(node: NodeReader) -> Result:
    return _pooled(node, lambda value: node.spell("AveragePool", value, **stated(node, _POOLING)))


def _global_average_pool(node: NodeReader) -> Result:
    return _pooled(node, lambda value: node.emit(pooling.GlobalAveragePool(), value))


def _pooled(node: NodeReader, pool: Callable[[str], str]) -> Result:
    """A pooling of data whose channels may come last."""
    last = node.flag("channels_last")
    value = _real(node, 0)
    y = pool(channels_first(node, value) if last else value)
    return _rounded(node, channels_last(node, y) if last else y, 3)


RULES: dict[str, ImportRule] = {
    "com.microsoft.DequantizeLinear": ImportRule((1,), ("axis",), _dequantize),
    "com.microsoft.QLinearAdd": ImportRule((1,), (), _binary(arithmetic.Add())),
    "com.microsoft.QLinearAveragePool": ImportRule(
        (1,), (*_POOLING, "channels_last"), _average_pool
    ),
    "com.microsoft.QLinearConcat": ImportRule((1,), ("axis",), _concat),
    "com.microsoft.QLinearGlobalAveragePool": ImportRule(
        (1,), ("channels_last",), _global_average_pool
    ),
    "com.microsoft.QLinearLeakyRelu": ImportRule((1,), ("alpha",), _leaky_relu),
    "com.microsoft.QLinearMul": ImportRule((1,), (), _binary(arithmetic.Mul())),
    "com.microsoft.QLinearReduceMean": ImportRule((1,), ("axes", "keepdims"), _mean),
    "com.microsoft.QLinearSigmoid": ImportRule((1,), (), _sigmoid),
    "com.microsoft.QLinearSoftmax": ImportRule((1,), ("axis", "opset"), _softmax),
    "com.microsoft.QLinearWhere": ImportRule((1,), (), _where),
    "com.microsoft.QuantizeLinear": ImportRule((1,), ("axis",), _quantize),
}
