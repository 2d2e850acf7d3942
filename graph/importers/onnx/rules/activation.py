"""Rules of activations."""

from __future__ import annotations

from ....ops import activation, arithmetic
from ..node import NodeReader, NotSupported
from .arithmetic import clipped
from .rule import Application, ImportRule, Result, plain


def _leaky_relu(node: NodeReader) -> Result:
    return activation.LeakyRelu(node.real("alpha", 0.01)), node.inputs


def _gelu(node: NodeReader) -> Result:
    mode = node.text("approximate", "none")
    if mode not in ("none", "tanh"):
        raise NotSupported(f"approximate is '{mode}'")
    return activation.Gelu(mode == "tanh"), node.inputs


def _hard_sigmoid(node: NodeReader) -> Result:
    """min(max(alpha * x + beta, 0), 1)"""
    return _clipped_line(node, node.real("alpha", 0.2), node.real("beta", 0.5))


def _hard_swish(node: NodeReader) -> Result:
    """x * min(max(x / 6 + 1 / 2, 0), 1)"""
    op, inputs = _clipped_line(node, 1 / 6, 0.5)
    return arithmetic.Mul(), (node.value(0), node.emit(op, *inputs))


def _clipped_line(node: NodeReader, slope: float, start: float) -> Application:
    scaled = node.emit(arithmetic.Mul(), node.value(0), node.number(slope))
    line = node.emit(arithmetic.Add(), scaled, node.number(start))
    return clipped(node, line, node.number(0), node.number(1))


RULES: dict[str, ImportRule] = {
    "Gelu": ImportRule((20,), ("approximate",), _gelu),
    "HardSigmoid": ImportRule((6, 22), ("alpha", "beta"), _hard_sigmoid),
    "HardSwish": ImportRule((14, 22), (), _hard_swish),
    "LeakyRelu": ImportRule((6, 16), ("alpha",), _leaky_relu),
    "Relu": ImportRule((6, 13, 14), (), plain(activation.Relu())),
    "Sigmoid": ImportRule((6, 13), (), plain(activation.Sigmoid())),
    "Softplus": ImportRule((1, 22), (), plain(activation.Softplus())),
}
