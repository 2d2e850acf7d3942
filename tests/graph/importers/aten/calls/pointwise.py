"""Calls of each element."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "x": numbers(2, 3, 4),
    "y": numbers(3, 1, seed=1, low=0.3, high=2.0),
    "u": numbers(2, 3, low=0.05, high=0.95),
    "i": whole(2, 3),
    "j": whole(2, 3, low=1, seed=1),
    "b": whole(2, 3, low=0, high=2).bool(),
    "c": whole(3, low=0, high=2, seed=1).bool(),
    "s": torch.tensor([float("nan"), float("inf"), float("-inf"), -0.5, 0.0, 2.5]),
    "z": torch.tensor(3),
    "p": torch.tensor([1.0, -1.0, 7.5, -7.5, 0.3, -1.0, 2.0]),
    "d": torch.tensor([0.1, 0.1, -2.5, 0.7, -0.1, float("inf"), 0.0]),
}

_REAL = [
    "acos",
    "asin",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "reciprocal",
    "asinh",
]

_OF_X = [
    "abs",
    "ceil",
    "floor",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "mish",
    "neg",
    "relu",
    "relu6",
    "round",
    "sgn",
    "sign",
    "silu",
    "square",
    "trunc",
    "elu",
    "leaky_relu",
    "softplus",
    "glu",
]

_MORE = ["celu", "hardshrink", "log_sigmoid", "selu", "softshrink"]

_COMPARED = ["eq", "ge", "gt", "le", "lt", "ne"]


def _unary(name: str, key: str) -> Callable[[Given], object]:
    return lambda g: getattr(aten, name).default(g[key])


_EACH: Calls = [_unary(name, "u") for name in _REAL]
_EACH += [_unary(name, "i") for name in ("exp", "sin", "tanh", "abs", "neg", "floor", "sign")]
_EACH += [_unary(name, "x") for name in _OF_X]
_EACH += [_unary(name, "s") for name in ("isnan", "isinf", "isfinite", "nan_to_num")]
_EACH += [_unary(name, "s") for name in (*_OF_X, *_MORE) if name not in ("glu", "gelu")]
_EACH += [_unary(name, "s") for name in ("exp", "expm1", "log1p", "sigmoid", "tanh", "rsqrt")]
for name in _COMPARED:
    op = getattr(aten, name)
    _EACH += [
        lambda g, op=op: op.Tensor(g["x"], g["y"]),
        lambda g, op=op: op.Scalar(g["i"], 1.5),
        lambda g, op=op: op.Scalar(g["x"], 1),
    ]
CALLS: Calls = [
    *_EACH,
    *(lambda g, n=n: getattr(aten, n).default(g["x"]) for n in _MORE),
    lambda g: aten.addcdiv.default(g["x"], g["x"], g["y"], value=0.5),
    lambda g: aten.addcmul.default(g["x"], g["x"], g["y"], value=2),
    lambda g: aten.copy.default(g["x"], g["u"][0, 0]),
    lambda g: aten.fill.Scalar(g["i"], 3),
    lambda g: aten.lerp.Scalar(g["x"], g["x"] * 3, 0.25),
    lambda g: aten.lerp.Tensor(g["x"], g["x"] * 3, g["y"]),
    lambda g: aten.logit.default(g["u"], 0.2),
    lambda g: aten.threshold.default(g["x"], 0.5, -3),
    lambda g: aten.acosh.default(g["y"] + 1),
    lambda g: aten.add.Tensor(g["x"], g["y"], alpha=2),
    lambda g: aten.add.Tensor(g["i"], 1.5),
    lambda g: aten.add.Tensor(g["i"], g["u"]),
    lambda g: aten.add.Tensor(g["x"], g["z"]),
    lambda g: aten.add.Tensor(g["b"], g["c"]),
    lambda g: aten.add.Tensor(g["b"], 2),
    lambda g: aten.add.Scalar(g["i"], 3),
    lambda g: aten.atan2.default(g["x"], g["y"] - 1),
    lambda g: aten.bitwise_and.Scalar(g["i"], 6),
    lambda g: aten.bitwise_and.Tensor(g["i"], g["j"]),
    lambda g: aten.__and__.Tensor(g["b"], g["c"]),
    lambda g: aten.__and__.Scalar(g["i"], 3),
    lambda g: aten.bitwise_not.default(g["i"]),
    lambda g: aten.bitwise_not.default(g["b"]),
    lambda g: aten.bitwise_or.Scalar(g["i"], 6),
    lambda g: aten.bitwise_or.Tensor(g["i"], g["j"]),
    lambda g: aten.__or__.Tensor(g["b"], g["c"]),
    lambda g: aten.__or__.Scalar(g["i"], 3),
    lambda g: aten.bitwise_xor.Scalar(g["i"], 6),
    lambda g: aten.bitwise_xor.Tensor(g["b"], g["c"]),
    lambda g: aten.__xor__.Tensor(g["i"], g["j"]),
    lambda g: aten.clamp.default(g["x"], -1, 1.5),
    lambda g: aten.clamp.default(g["x"], None, 0.5),
    lambda g: aten.clamp.default(g["i"], -1, 2),
    lambda g: aten.clamp.Tensor(g["x"], -g["y"], g["y"]),
    lambda g: aten.clamp_max.default(g["x"], 0.5),
    lambda g: aten.clamp_min.default(g["x"], 0.5),
    lambda g: aten.div.Tensor(g["x"], g["y"]),
    lambda g: aten.div.Tensor(g["i"], g["j"]),
    lambda g: aten.div.Tensor(g["i"], 2),
    lambda g: aten.div.Scalar(g["x"], 3),
    lambda g: aten.div.Tensor_mode(g["i"], g["j"], rounding_mode="floor"),
    lambda g: aten.div.Tensor_mode(g["i"], g["j"], rounding_mode="trunc"),
    lambda g: aten.div.Tensor_mode(g["x"], g["y"], rounding_mode="trunc"),
    lambda g: aten.div.Scalar_mode(g["x"], 0.3, rounding_mode="floor"),
    lambda g: aten.elu.default(g["x"], 1.67, 1.05, 1),
    lambda g: aten.floor_divide.default(g["i"], g["j"]),
    lambda g: aten.floor_divide.Scalar(g["i"], 2),
    lambda g: aten.fmod.Scalar(g["x"], 0.7),
    lambda g: aten.fmod.Tensor(g["i"], g["j"]),
    lambda g: aten.gelu.default(g["x"], approximate="tanh"),
    lambda g: aten.hardtanh.default(g["x"], -0.5, 1.0),
    lambda g: aten.leaky_relu.default(g["x"], 0.2),
    lambda g: aten.logical_and.default(g["i"], g["b"]),
    lambda g: aten.logical_not.default(g["i"]),
    lambda g: aten.logical_or.default(g["b"], g["c"]),
    lambda g: aten.logical_xor.default(g["b"], g["c"]),
    lambda g: aten.masked_fill.Scalar(g["u"], g["b"], -1.0),
    lambda g: aten.masked_fill.Tensor(g["i"], g["b"], g["z"]),
    lambda g: aten.max.other(g["x"], g["y"]),
    lambda g: aten.maximum.default(g["i"], g["u"]),
    lambda g: aten.min.other(g["x"], g["y"]),
    lambda g: aten.minimum.default(g["i"], g["j"]),
    lambda g: aten.mul.Tensor(g["x"], g["y"]),
    lambda g: aten.mul.Tensor(g["b"], g["c"]),
    lambda g: aten.mul.Scalar(g["i"], 2.5),
    lambda g: aten.nan_to_num.default(g["s"], 1.0, 5.0, -5.0),
    lambda g: aten.maximum.default(g["s"], g["s"] * 0),
    lambda g: aten.minimum.default(g["s"], g["d"][:6]),
    lambda g: aten.clamp.default(g["s"], -1, 2),
    lambda g: aten.div.Tensor_mode(g["p"], g["d"], rounding_mode="floor"),
    lambda g: aten.floor_divide.default(g["p"], g["d"]),
    lambda g: aten.remainder.Tensor(g["p"], g["d"]),
    lambda g: aten.fmod.Tensor(g["p"], g["d"]),
    lambda g: aten.pow.Scalar(2, g["x"]),
    lambda g: aten.pow.Tensor_Scalar(g["x"], 2),
    lambda g: aten.pow.Tensor_Scalar(g["u"], 0.5),
    lambda g: aten.pow.Tensor_Scalar(g["i"], 3),
    lambda g: aten.pow.Tensor_Tensor(g["y"], g["x"]),
    lambda g: aten.prelu.default(g["x"], g["y"].flatten()),
    lambda g: aten.remainder.Scalar(g["x"], 0.7),
    lambda g: aten.remainder.Tensor(g["i"], g["j"]),
    lambda g: aten.rsub.Scalar(g["x"], 1),
    lambda g: aten.rsub.Tensor(g["i"], g["j"], alpha=2),
    lambda g: aten.softplus.default(g["x"], 2, 1.5),
    lambda g: aten.sub.Scalar(g["x"], 1),
    lambda g: aten.sub.Tensor(g["x"], g["y"], alpha=0.5),
    lambda g: aten.where.Scalar(g["b"], 1.0, 2.0),
    lambda g: aten.where.ScalarOther(g["b"], g["u"], 2.0),
    lambda g: aten.where.ScalarSelf(g["b"], 2, g["i"]),
    lambda g: aten.where.self(g["c"], g["u"], g["i"]),
]
