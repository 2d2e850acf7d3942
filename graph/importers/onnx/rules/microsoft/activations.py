"""Rules of activations and of what onnxruntime puts before them: a bias, a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .....ops import activation, arithmetic, movement
from .....ops.base import normal_axis
from .....ops.softmax import Softmax
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result, plain

_QUICK = 1.702  # of QuickGelu, where the node does not say another
# what may follow a product or a convolution, and what it calls its numbers, in order
_FOLLOWING = {
    "Celu": ("alpha",),
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


def activated(
    node: NodeReader, value: str, numbers: Mapping[str, float] | Sequence[float] = ()
) -> str:
    """What the activation that a node names makes of `value`; that itself where it names none.

    numbers: of the activation, by name or in order. Raises: NotSupported where it is not known.
    """
    name = node.text("activation", "")
    if not name:
        return value
    if name not in _FOLLOWING:
        raise NotSupported(f"activation is '{name}'; known are {', '.join(_FOLLOWING)}")
    if not isinstance(numbers, Mapping):
        numbers = dict(zip(_FOLLOWING[name], numbers, strict=False))
    if name == "Clip":
        bounds = (node.number(numbers[end]) if end in numbers else "" for end in ("min", "max"))
        return node.spell(name, value, *bounds)
    return node.spell(name, value, **{n: numbers[n] for n in _FOLLOWING[name] if n in numbers})


def _bias_gelu(node: NodeReader) -> Result:
    """Gelu(a + b)"""
    return activation.Gelu(False), (node.emit(arithmetic.Add(), node.value(0), node.value(1)),)


def _fast_gelu(node: NodeReader) -> Result:
    """Gelu(x + bias) with the approximation by tanh; the bias may be missing."""
    value = node.value(0)
    if node.has(1):
        value = node.emit(arithmetic.Add(), value, node.value(1))
    return activation.Gelu(True), (value,)


def _quick_gelu(node: NodeReader) -> Result:
    """x * Sigmoid(alpha * x)"""
    scaled = node.emit(arithmetic.Mul(), node.value(0), node.number(node.real("alpha", _QUICK)))
    return arithmetic.Mul(), (node.value(0), node.emit(activation.Sigmoid(), scaled))


def _bias_softmax(node: NodeReader) -> Result:
    """Softmax(x + bias) over `axis` and all axes behind it. The bias is repeated along the axes
    that come last of those before `axis`, or along the first ones.
    """
    x, bias = node.type(0), node.type(1)
    axis = normal_axis(movement.Identity(), node.integer("axis", 1), x.rank)
    value = node.value(1)
    if node.flag("is_inner_broadcast") and bias.rank < x.rank:
        kept = bias.rank - (x.rank - axis)
        ones = (1,) * (x.rank - bias.rank)
        shape = (*bias.shape[:kept], *ones, *bias.shape[kept:])
        value = node.emit(movement.Reshape(shape), value)
    total = node.emit(arithmetic.Add(), node.value(0), value)
    return Softmax(tuple(range(axis, x.rank))), (total,)


def _bias_add(node: NodeReader) -> Result:
    """x + bias + skip"""
    return arithmetic.Sum(), node.inputs


def _bias_split_gelu(node: NodeReader) -> Result:
    """left * Gelu(right), the halves of the last axis of x + bias."""
    total = node.emit(arithmetic.Add(), node.value(0), node.value(1))
    left, right = node.spell_all("Split", 2, total, axis=-1, num_outputs=2)
    return arithmetic.Mul(), (left, node.emit(activation.Gelu(False), right))


RULES: dict[str, ImportRule] = {
    "com.microsoft.BiasAdd": ImportRule((1,), (), _bias_add),
    "com.microsoft.BiasGelu": ImportRule((1,), (), _bias_gelu),
    "com.microsoft.BiasSoftmax": ImportRule((1,), ("axis", "is_inner_broadcast"), _bias_softmax),
    "com.microsoft.BiasSplitGelu": ImportRule((1,), (), _bias_split_gelu),
    "com.microsoft.FastGelu": ImportRule((1,), (), _fast_gelu),
    "com.microsoft.Gelu": ImportRule((1,), (), plain(activation.Gelu(False))),
    "com.microsoft.QuickGelu": ImportRule((1,), ("alpha",), _quick_gelu),
}
