"""Rules of activations."""

from __future__ import annotations

from ....ops import activation, arithmetic, functions, logic
from ...onnx.node import NotSupported
from ..promotion import Number
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .pointwise import clamp, of_floats, of_numbers


def _relu6(w: AtenWriter, self: AtenValue) -> AtenValue:
    return clamp(w, self, 0, 6)


def _hardtanh(
    w: AtenWriter, self: AtenValue, min_val: Number = -1, max_val: Number = 1
) -> AtenValue:
    return clamp(w, self, min_val, max_val)


def gelu(w: AtenWriter, self: AtenValue, approximate: str = "none") -> AtenValue:
    return w.emit(activation.Gelu(approximate == "tanh"), self)


def _silu(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(arithmetic.Mul(), self, w.emit(activation.Sigmoid(), self))


def _mish(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(activation.Mish(), self)


def _softplus(
    w: AtenWriter, self: AtenValue, beta: Number = 1, threshold: Number = 20
) -> AtenValue:
    """The logarithm of 1 + exp(beta x), over beta; x itself where beta x is above the threshold."""
    x = self if beta == 1 else w.emit(arithmetic.Mul(), self, w.full(beta, self.dtype))
    soft = w.emit(activation.Softplus(), x)
    if beta != 1:
        soft = w.emit(arithmetic.Mul(), soft, w.full(1 / beta, self.dtype))
    above = w.emit(logic.Less(), w.full(threshold, x.dtype), x)
    return w.emit(logic.Where(), above, self, soft)


def _elu(
    w: AtenWriter, self: AtenValue, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> AtenValue:
    if input_scale != 1:
        raise NotSupported(f"input_scale is {input_scale}; only 1 is known")
    made = w.emit(activation.Elu(float(alpha)), self)
    return made if scale == 1 else w.emit(arithmetic.Mul(), made, w.full(scale, made.dtype))


def _leaky_relu(w: AtenWriter, self: AtenValue, negative_slope: Number = 0.01) -> AtenValue:
    return w.emit(activation.LeakyRelu(float(negative_slope)), self)


def _hardsigmoid(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.emit(activation.HardSigmoid(1 / 6, 0.5), self)


def _hardswish(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.spell("HardSwish", self)


def _prelu(w: AtenWriter, self: AtenValue, weight: AtenValue) -> AtenValue:
    if self.rank > 2 and weight.rank == 1:
        weight = w.reshape(weight, (*weight.shape, *(1,) * (self.rank - 2)))
    return w.spell("PRelu", self, weight)


def _glu(w: AtenWriter, self: AtenValue, dim: int = -1) -> AtenValue:
    a, b = w.spell_all("Split", 2, self, axis=dim, num_outputs=2)
    return w.emit(arithmetic.Mul(), a, w.emit(activation.Sigmoid(), b))


def _log_sigmoid(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.spell("Neg", w.emit(activation.Softplus(), w.spell("Neg", self)))


def _threshold(w: AtenWriter, self: AtenValue, threshold: Number, value: Number) -> AtenValue:
    above = w.emit(logic.Less(), w.full(threshold, self.dtype), self)
    return w.emit(logic.Where(), above, self, w.full(value, self.dtype))


def _hardshrink(w: AtenWriter, self: AtenValue, lambd: Number = 0.5) -> AtenValue:
    return _shrunk(w, self, lambd, self)


def _softshrink(w: AtenWriter, self: AtenValue, lambd: Number = 0.5) -> AtenValue:
    step = w.emit(arithmetic.Mul(), w.emit(functions.Sign(), self), w.full(lambd, self.dtype))
    return _shrunk(w, self, lambd, w.emit(arithmetic.Sub(), self, step))


def _shrunk(w: AtenWriter, x: AtenValue, limit: Number, far: AtenValue) -> AtenValue:
    """Zero within the limit; `far` beyond it, and of what is no number."""
    near = w.emit(logic.LessOrEqual(), w.emit(functions.Abs(), x), w.full(limit, x.dtype))
    return w.emit(logic.Where(), near, w.full(0, x.dtype), far)


def _celu(w: AtenWriter, self: AtenValue, alpha: Number = 1.0) -> AtenValue:
    return w.spell("Celu", self, alpha=float(alpha))


def _selu(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.spell("Selu", self)


RULES: dict[str, Rule] = {
    "celu": _celu,
    "elu": _elu,
    "gelu": gelu,
    "glu": _glu,
    "hardshrink": _hardshrink,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "hardtanh": _hardtanh,
    "leaky_relu": _leaky_relu,
    "log_sigmoid": _log_sigmoid,
    "mish": _mish,
    "prelu": _prelu,
    "relu": of_numbers(activation.Relu()),
    "relu6": _relu6,
    "selu": _selu,
    "sigmoid": of_floats(activation.Sigmoid()),
    "silu": _silu,
    "softplus": _softplus,
    "softshrink": _softshrink,
    "threshold": _threshold,
}
