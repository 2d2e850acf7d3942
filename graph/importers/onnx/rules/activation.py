"""Rules of activations."""

from __future__ import annotations

from ....errors import ModelError
from ....ops import activation, arithmetic, logic
from ....ops.elementwise import broadcast
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result, plain


def _leaky_relu(node: NodeReader) -> Result:
    return activation.LeakyRelu(node.real("alpha", 0.01)), node.inputs


def _gelu(node: NodeReader) -> Result:
    mode = node.text("approximate", "none")
    if mode not in ("none", "tanh"):
        raise NotSupported(f"approximate is '{mode}'")
    return activation.Gelu(mode == "tanh"), node.inputs


def _hard_sigmoid(node: NodeReader) -> Result:
    op = activation.HardSigmoid(node.real("alpha", 0.2), node.real("beta", 0.5))
    return op, node.inputs


def _hard_swish(node: NodeReader) -> Result:
    """x * min(max(x / 6 + 1 / 2, 0), 1)"""
    gate = node.emit(activation.HardSigmoid(1 / 6, 0.5), node.value(0))
    return arithmetic.Mul(), (node.value(0), gate)


def _elu(node: NodeReader) -> Result:
    return activation.Elu(node.real("alpha", 1.0)), node.inputs


def _parametric(node: NodeReader) -> Result:
    """x where it is not negative, else slope * x; the slope broadcasts to x."""
    x, slope = node.type(0), node.type(1)
    if broadcast(logic.Where(), (x, slope)).shape != x.shape:
        raise ModelError(
            f"model: {node.title} has the slope {slope}; expected one that broadcasts to {x}.",
            code="onnx-prelu",
        )
    below = node.emit(logic.Less(), node.value(0), node.number(0))
    return logic.Where(), (below, node.emit(arithmetic.Mul(), *node.inputs), node.value(0))


RULES: dict[str, ImportRule] = {
    "Elu": ImportRule((6, 22), ("alpha",), _elu),
    "Gelu": ImportRule((20,), ("approximate",), _gelu),
    "HardSigmoid": ImportRule((6, 22), ("alpha", "beta"), _hard_sigmoid),
    "HardSwish": ImportRule((14, 22), (), _hard_swish),
    "LeakyRelu": ImportRule((6, 16), ("alpha",), _leaky_relu),
    "Mish": ImportRule((18, 22), (), plain(activation.Mish())),
    "PRelu": ImportRule((7, 9, 16), (), _parametric),
    "Relu": ImportRule((6, 13, 14), (), plain(activation.Relu())),
    "Sigmoid": ImportRule((6, 13), (), plain(activation.Sigmoid())),
    "Softsign": ImportRule((1, 22), (), plain(activation.Softsign())),
    "Softplus": ImportRule((1, 22), (), plain(activation.Softplus())),
}
