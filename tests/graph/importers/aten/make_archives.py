"""Write the archives of this folder: for each family of operators one program of many calls, with
inputs and what PyTorch computes.

    python tests/graph/importers/aten/make_archives.py [FAMILY ...]

Needs torch (the files here are of 2.13); nothing else of the tests does. Each call is of one
overload, by its own name, so that torch.export keeps it. `schemas.txt` is written, too: the schemas
of all overloads that have a rule.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

HERE = Path(__file__).parent
aten = torch.ops.aten
Given = dict[str, Tensor]
Calls = list[Callable[[Given], object]]


def _numbers(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator) * (high - low) + low


def _whole(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


POINTWISE: Given = {
    "x": _numbers(2, 3, 4),
    "y": _numbers(3, 1, seed=1, low=0.3, high=2.0),
    "u": _numbers(2, 3, low=0.05, high=0.95),
    "i": _whole(2, 3),
    "j": _whole(2, 3, low=1, seed=1),
    "b": _whole(2, 3, low=0, high=2).bool(),
    "c": _whole(3, low=0, high=2, seed=1).bool(),
    "s": torch.tensor([float("nan"), float("inf"), float("-inf"), -0.5, 0.0, 2.5]),
    "z": torch.tensor(3),
}
_REAL = "acos asin atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 rsqrt sigmoid sin \
sinh sqrt tan tanh reciprocal asinh".split()
_OF_X = "abs ceil floor gelu hardsigmoid hardswish hardtanh mish neg relu relu6 round sgn sign \
silu square trunc elu leaky_relu softplus glu".split()
_COMPARED = "eq ge gt le lt ne".split()


def _unary(name: str, key: str) -> Callable[[Given], object]:
    return lambda g: getattr(aten, name).default(g[key])


def _pointwise() -> Calls:
    calls: Calls = [_unary(name, "u") for name in _REAL]
    calls += [_unary(name, "i") for name in ("exp", "sin", "tanh", "abs", "neg", "floor", "sign")]
    calls += [_unary(name, "x") for name in _OF_X]
    calls += [_unary(name, "s") for name in ("isnan", "isinf", "isfinite", "nan_to_num", "relu")]
    for name in _COMPARED:
        op = getattr(aten, name)
        calls += [
            lambda g, op=op: op.Tensor(g["x"], g["y"]),
            lambda g, op=op: op.Scalar(g["i"], 1.5),
            lambda g, op=op: op.Scalar(g["x"], 1),
        ]
    return [
        *calls,
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


MOVED: Given = {
    "x": _numbers(2, 3, 4),
    "m": _numbers(4, 6, seed=1),
    "w": _numbers(1, 8, 4, 4, seed=2),
    "i": _whole(2, 3),
    "v": _numbers(5, seed=3),
}


def _views() -> Calls:
    return [
        lambda g: aten._unsafe_view.default(g["x"], [6, 4]),
        lambda g: aten.alias.default(g["x"]),
        lambda g: aten.as_strided.default(g["m"], [2, 12], [12, 1]),
        lambda g: aten.cat.default([g["x"], g["x"]], 1),
        lambda g: aten.cat.default([g["i"], g["x"][:, :, 0]], -1),
        lambda g: aten.chunk.default(g["m"], 4, 1),
        lambda g: aten.clone.default(g["x"]),
        lambda g: aten.constant_pad_nd.default(g["x"], [1, 2, 0, 1], 0.5),
        lambda g: aten.constant_pad_nd.default(g["x"], [-1, 2]),
        lambda g: aten.contiguous.default(g["x"]),
        lambda g: aten.detach.default(g["x"]),
        lambda g: aten.dropout.default(g["x"], 0.5, False),
        lambda g: aten.expand.default(g["v"], [3, -1]),
        lambda g: aten.expand_as.default(g["v"], g["v"].reshape(1, 5)),
        lambda g: aten.feature_dropout.default(g["x"], 0.5, False),
        lambda g: aten.flatten.using_ints(g["x"], 1),
        lambda g: aten.flip.default(g["x"], [0, 2]),
        lambda g: aten.lift_fresh_copy.default(g["x"]),
        lambda g: aten.movedim.intlist(g["x"], [0, 2], [1, 0]),
        lambda g: aten.narrow.default(g["m"], 1, 2, 3),
        lambda g: aten.numpy_T.default(g["x"]),
        lambda g: aten.pad.default(g["x"], [1, 1], "replicate"),
        lambda g: aten.pad.default(g["x"], [1, 2], "circular"),
        lambda g: aten.pad.default(g["x"], [1, 2, 3, 0], "constant", -1.0),
        lambda g: aten.permute.default(g["x"], [2, 0, -2]),
        lambda g: aten.pixel_shuffle.default(g["w"], 2),
        lambda g: aten.pixel_unshuffle.default(g["w"], 2),
        lambda g: aten.repeat.default(g["m"], [2, 1, 3]),
        lambda g: aten.repeat_interleave.self_int(g["x"], 2, 1),
        lambda g: aten.repeat_interleave.self_int(g["i"], 3),
        lambda g: aten.reshape.default(g["x"], [3, -1]),
        lambda g: aten.roll.default(g["x"], [1, -1], [0, 2]),
        lambda g: aten.roll.default(g["m"], [5]),
        lambda g: aten.select.int(g["x"], 1, -1),
        lambda g: aten.slice.Tensor(g["x"], 2, 1, 9223372036854775807, 2),
        lambda g: aten.slice.Tensor(g["x"], 1, -2),
        lambda g: aten.slice.Tensor(g["x"], 2, 0, -1),
        lambda g: aten.split.Tensor(g["v"], 2),
        lambda g: aten.split.sizes(g["v"], [1, 4]),
        lambda g: aten.split_with_sizes.default(g["v"], [3, 2]),
        lambda g: aten.squeeze.default(g["w"]),
        lambda g: aten.squeeze.dim(g["w"], 0),
        lambda g: aten.squeeze.dims(g["w"], [0, 1]),
        lambda g: aten.stack.default([g["m"], g["m"]], -1),
        lambda g: aten.t.default(g["m"]),
        lambda g: aten.transpose.int(g["x"], 0, -1),
        lambda g: aten.unbind.int(g["x"], 1),
        lambda g: aten.unflatten.int(g["m"], 1, [2, -1]),
        lambda g: aten.unfold.default(g["m"], 1, 3, 2),
        lambda g: aten.unsqueeze.default(g["x"], -1),
        lambda g: aten.view.default(g["x"], [2, 12]),
        lambda g: aten.add_.Tensor(aten.relu.default(g["x"]), 1.0),
        lambda g: aten.diagonal.default(g["x"], 1, 1, 2),
    ]


def _creation() -> Calls:
    return [
        lambda g: aten._to_copy.default(g["x"], dtype=torch.int32),
        lambda g: aten.arange.default(5) + g["i"][0, 0],
        lambda g: aten.arange.start(1, 5, dtype=torch.float32) * g["x"],
        lambda g: aten.arange.start_step(0.0, 1.0, 0.25) * g["x"],
        lambda g: aten.zeros_like.default(aten.empty_like.default(g["i"])),
        lambda g: aten.eye.default(4) * g["x"][0, 0],
        lambda g: aten.full.default([2, 2], 1.5) * g["x"][0, 0, 0],
        lambda g: aten.full_like.default(g["i"], 3),
        lambda g: aten.linspace.default(0, 1, 4) * g["x"],
        lambda g: aten.new_full.default(g["i"], [2], 7),
        lambda g: aten.new_ones.default(g["i"], [3], dtype=torch.float32),
        lambda g: aten.new_zeros.default(g["x"], [3]),
        lambda g: aten.ones.default([4]) * g["x"],
        lambda g: aten.ones_like.default(g["i"]),
        lambda g: aten.scalar_tensor.default(2.5) * g["x"],
        lambda g: aten.to.dtype(g["x"], torch.float64),
        lambda g: aten.to.dtype(g["i"], torch.bool),
        lambda g: aten.to.dtype_layout(g["i"], dtype=torch.float32),
        lambda g: aten.to.device(g["i"], torch.device("cpu"), torch.float32),
        lambda g: aten.to.other(g["i"], g["x"]),
        lambda g: aten.type_as.default(g["x"], g["i"]),
        lambda g: aten.zeros.default([2, 3], dtype=torch.int64) + g["i"],
        lambda g: aten.zeros_like.default(g["x"]),
    ]


REDUCED: Given = {
    "x": _numbers(2, 3, 4),
    "i": _whole(2, 3),
    "b": _whole(2, 3, low=0, high=2).bool(),
    "s": torch.tensor(2.0),
}


def _reductions() -> Calls:
    calls: Calls = []
    for name in ("all", "any"):
        op = getattr(aten, name)
        calls += [
            lambda g, op=op: op.default(g["b"]),
            lambda g, op=op: op.dim(g["i"], 1),
            lambda g, op=op: op.dims(g["x"], [0, 1], True),
        ]
    for name in ("amax", "amin"):
        op = getattr(aten, name)
        calls += [
            lambda g, op=op: op.default(g["x"], [0, 2]),
            lambda g, op=op: op.default(g["i"], [], True),
        ]
    for name in ("argmax", "argmin"):
        op = getattr(aten, name)
        calls += [
            lambda g, op=op: op.default(g["x"]),
            lambda g, op=op: op.default(g["x"], 1, True),
            lambda g, op=op: op.default(g["i"], -1),
        ]
    for name in ("max", "min"):
        op = getattr(aten, name)
        calls += [
            lambda g, op=op: op.default(g["x"]),
            lambda g, op=op: op.dim(g["x"], -1),
        ]
    return [
        *calls,
        lambda g: aten._log_softmax.default(g["x"], 1, False),
        lambda g: aten._softmax.default(g["x"], -1, False),
        lambda g: aten.cumprod.default(g["x"], 1),
        lambda g: aten.cumsum.default(g["i"], 1),
        lambda g: aten.cumsum.default(g["b"], 0),
        lambda g: aten.diff.default(g["x"], 2, 2),
        lambda g: aten.diff.default(g["b"]),
        lambda g: aten.linalg_vector_norm.default(g["x"], 2, [1], True),
        lambda g: aten.linalg_vector_norm.default(g["x"], 1),
        lambda g: aten.linalg_vector_norm.default(g["x"], float("inf"), [2]),
        lambda g: aten.log_softmax.int(g["x"], 2),
        lambda g: aten.logsumexp.default(g["x"], [1, 2]),
        lambda g: aten.mean.default(g["x"]),
        lambda g: aten.mean.dim(g["x"], [0, -1], True),
        lambda g: aten.norm.ScalarOpt_dim(g["x"], None, [1]),
        lambda g: aten.prod.default(g["i"]),
        lambda g: aten.prod.dim_int(g["x"], 1, True),
        lambda g: aten.softmax.int(g["x"], 1),
        lambda g: aten.std.correction(g["x"], [1], correction=1),
        lambda g: aten.std.dim(g["x"], [2], False),
        lambda g: aten.sum.default(g["x"]),
        lambda g: aten.sum.default(g["s"]),
        lambda g: aten.sum.dim_IntList(g["b"], [1]),
        lambda g: aten.sum.dim_IntList(g["x"], None, dtype=torch.float64),
        lambda g: aten.var.correction(g["x"], [0, 2], correction=0, keepdim=True),
        lambda g: aten.var.dim(g["x"], [1]),
        lambda g: aten.var_mean.correction(g["x"], [2], correction=0),
    ]


PRODUCTS: Given = {
    "a": _numbers(3, 4),
    "b": _numbers(4, 5, seed=1),
    "c": _numbers(3, 5, seed=2),
    "p": _numbers(2, 3, 4, seed=3),
    "q": _numbers(2, 4, 5, seed=4),
    "v": _numbers(4, seed=5),
    "s": _numbers(2, 4, 6, 8, seed=6),
    "k": _numbers(2, 2, 6, 8, seed=7),
    "m": _whole(6, 6, low=0, high=2).bool(),
    "f": _numbers(2, 1, 6, 6, seed=8),
}


def _products() -> Calls:
    sdpa = aten.scaled_dot_product_attention.default
    return [
        lambda g: aten.addmm.default(g["c"], g["a"], g["b"]),
        lambda g: aten.addmm.default(g["c"], g["a"], g["b"], beta=0.5, alpha=2),
        lambda g: aten.baddbmm.default(g["c"][:1], g["p"], g["q"], beta=0),
        lambda g: aten.bmm.default(g["p"], g["q"]),
        lambda g: aten.dot.default(g["v"], g["v"]),
        lambda g: aten.einsum.default("bij,bjk->bik", [g["p"], g["q"]]),
        lambda g: aten.linear.default(g["p"], g["b"].t(), g["c"][0]),
        lambda g: aten.linear.default(g["p"], g["b"].t()),
        lambda g: aten.matmul.default(g["p"], g["v"]),
        lambda g: aten.matmul.default(g["a"], g["q"]),
        lambda g: aten.mm.default(g["a"], g["b"]),
        lambda g: aten.mv.default(g["a"], g["v"]),
        lambda g: sdpa(g["s"], g["s"], g["s"]),
        lambda g: sdpa(g["s"], g["s"], g["s"], None, 0.0, True),
        lambda g: sdpa(g["s"], g["s"], g["s"], g["m"], scale=0.5),
        lambda g: sdpa(g["s"], g["s"], g["s"], g["f"]),
        lambda g: sdpa(g["s"], g["k"], g["k"], enable_gqa=True),
    ]


NORMALISED: Given = {
    "x": _numbers(2, 6, 4, 3),
    "w": _numbers(6, seed=1, low=0.5, high=1.5),
    "b": _numbers(6, seed=2),
    "r": _numbers(3, seed=3, low=0.5, high=1.5),
    "v": _numbers(6, seed=4, low=0.5, high=1.5),
}


def _normalisation() -> Calls:
    bn = aten.batch_norm.default
    return [
        lambda g: aten._native_batch_norm_legit_no_training.default(
            g["x"], g["w"], g["b"], g["b"], g["v"], 0.1, 1e-5
        )[0],
        lambda g: aten._weight_norm.default(g["x"], g["w"].view(1, 6, 1, 1), 1),
        lambda g: bn(g["x"], g["w"], g["b"], g["b"], g["v"], False, 0.1, 1e-5, True),
        lambda g: bn(g["x"], None, None, g["b"], g["v"], False, 0.1, 1e-3, True),
        lambda g: aten.group_norm.default(g["x"], 3, g["w"], g["b"]),
        lambda g: aten.group_norm.default(g["x"], 2),
        lambda g: aten.instance_norm.default(
            g["x"], g["w"], g["b"], None, None, True, 0.1, 1e-5, True
        ),
        lambda g: aten.layer_norm.default(g["x"], [3], g["r"], g["r"]),
        lambda g: aten.layer_norm.default(g["x"], [4, 3]),
        lambda g: aten.native_layer_norm.default(g["x"], [3], g["r"], None, 1e-5),
        lambda g: aten.rms_norm.default(g["x"], [3], g["r"], 1e-6),
        lambda g: aten.rms_norm.default(g["x"], [4, 3]),
    ]


WINDOWED: Given = {
    "l": _numbers(2, 4, 9),
    "x": _numbers(2, 4, 7, 6, seed=1),
    "d": _numbers(1, 2, 4, 5, 4, seed=2),
    "wl": _numbers(6, 2, 3, seed=3),
    "wx": _numbers(6, 4, 3, 3, seed=4),
    "wg": _numbers(4, 1, 3, 2, seed=5),
    "wd": _numbers(3, 2, 2, 2, 2, seed=6),
    "b": _numbers(6, seed=7),
    "g": _numbers(2, 3, 3, 2, seed=8, low=-1.1, high=1.1),
}


def _windows() -> Calls:
    return [
        lambda g: aten._adaptive_avg_pool2d.default(g["x"], [1, 1]),
        lambda g: aten.adaptive_avg_pool1d.default(g["l"], [3]),
        lambda g: aten.adaptive_avg_pool2d.default(g["x"], [3, 4]),
        lambda g: aten.adaptive_avg_pool3d.default(g["d"], [2, 5, 2]),
        lambda g: aten.avg_pool1d.default(g["l"], [2]),
        lambda g: aten.avg_pool2d.default(g["x"], [3, 2], [2, 2], [1, 1]),
        lambda g: aten.avg_pool2d.default(g["x"], [2], [2], [1], True, False),
        lambda g: aten.avg_pool3d.default(g["d"], [2, 2, 2]),
        lambda g: aten.conv1d.default(g["l"], g["wl"], g["b"], [2], [1], [1], 2),
        lambda g: aten.conv1d.default(g["l"][0], g["wl"], None, [1], [0], [2], 2),
        lambda g: aten.conv1d.padding(g["l"], g["wl"], None, [1], "same", [1], 2),
        lambda g: aten.conv2d.default(g["x"], g["wx"], g["b"], [2, 1], [1, 0]),
        lambda g: aten.conv2d.padding(g["x"], g["wg"], None, [1, 1], "same", [1, 1], 4),
        lambda g: aten.conv2d.padding(g["x"], g["wx"], None, [2, 2], "valid"),
        lambda g: aten.conv3d.default(g["d"], g["wd"]),
        lambda g: aten.conv3d.padding(g["d"], g["wd"], None, [1, 1, 1], "same"),
        lambda g: aten.conv_transpose1d.default(g["l"], g["wl"][:4], None, [2], [1], [1]),
        lambda g: aten.conv_transpose2d.input(
            g["x"], g["wx"][:4], g["b"][:4], [2, 2], [1, 0], [1, 0]
        ),
        lambda g: aten.conv_transpose3d.input(g["d"], g["wd"][:2]),
        lambda g: aten.convolution.default(
            g["x"], g["wx"], None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1
        ),
        lambda g: aten.convolution.default(
            g["l"], g["wl"][:4], None, [2], [0], [1], True, [0], 1
        ),
        lambda g: aten.grid_sampler.default(g["x"], g["g"], 0, 0, False),
        lambda g: aten.grid_sampler_2d.default(g["x"], g["g"], 1, 1, True),
        lambda g: aten.max_pool1d.default(g["l"], [3], [2]),
        lambda g: aten.max_pool2d.default(g["x"], [3, 3], [2, 2], [1, 1]),
        lambda g: aten.max_pool2d.default(g["x"], [2], [], [0], [2], True),
        lambda g: aten.max_pool2d_with_indices.default(g["x"], [2, 2], [2, 2]),
        lambda g: aten.max_pool3d.default(g["d"], [2, 2, 2]),
        lambda g: aten.reflection_pad1d.default(g["l"], [2, 1]),
        lambda g: aten.reflection_pad2d.default(g["x"], [2, 1, 0, 3]),
        lambda g: aten.replication_pad1d.default(g["l"], [2, 1]),
        lambda g: aten.replication_pad2d.default(g["x"], [2, 1, 0, 3]),
        lambda g: aten.upsample_bicubic2d.vec(g["x"], [9, 9], False, None),
        lambda g: aten.upsample_bilinear2d.vec(g["x"], [5, 12], True, None),
        lambda g: aten.upsample_bilinear2d.vec(g["x"], None, False, [2.0, 1.5]),
        lambda g: aten.upsample_linear1d.vec(g["l"], [14], False, None),
        lambda g: aten.upsample_nearest1d.vec(g["l"], [14], None),
        lambda g: aten.upsample_nearest2d.vec(g["x"], None, [2.0, 2.0]),
        lambda g: aten.upsample_nearest2d.vec(g["x"], [10, 4], None),
        lambda g: aten.upsample_nearest3d.vec(g["d"], [8, 5, 4], None),
        lambda g: aten.upsample_trilinear3d.vec(g["d"], [8, 5, 3], False, None),
    ]


INDEXED: Given = {
    "x": _numbers(4, 5, 6),
    "m": _numbers(5, 6, seed=1),
    "i": _whole(2, 3, low=0, high=4),
    "j": _whole(3, low=0, high=5, seed=1),
    "e": _whole(3, 6, low=0, high=5, seed=2),
    "u": _numbers(3, 6, seed=3),
    "b": _whole(5, 6, low=0, high=2).bool(),
}


def _indexing() -> Calls:
    return [
        lambda g: aten.argsort.default(g["m"], -1, True),
        lambda g: aten.embedding.default(g["m"], g["i"]),
        lambda g: aten.gather.default(g["m"], 0, g["e"]),
        lambda g: aten.index.Tensor(g["x"], [g["i"]]),
        lambda g: aten.index.Tensor(g["x"], [None, g["j"]]),
        lambda g: aten.index.Tensor(g["x"], [g["i"], g["j"]]),
        lambda g: aten.index.Tensor(g["x"], [None, g["i"], g["j"]]),
        lambda g: aten.index.Tensor(g["x"], [g["i"], None, g["j"]]),
        lambda g: aten.index_put.default(g["m"], [g["j"]], g["u"], True),
        lambda g: aten.index_put.default(g["m"], [g["j"], g["j"]], g["u"][0, 0]),
        lambda g: aten.index_put.default(g["m"], [g["b"]], g["u"][0, 0]),
        lambda g: aten.index_select.default(g["x"], 1, g["j"]),
        lambda g: aten.one_hot.default(g["i"], 4),
        lambda g: aten.scatter.src(g["m"], 1, g["e"], g["u"]),
        lambda g: aten.scatter.value(g["m"], 0, g["e"], 9.0),
        lambda g: aten.scatter_add.default(g["m"], 0, g["e"], g["u"]),
        lambda g: aten.scatter_reduce.two(g["m"], 0, g["e"], g["u"], "amax"),
        lambda g: aten.select_scatter.default(g["m"], g["u"][0], 0, -2),
        lambda g: aten.slice_scatter.default(g["m"], g["u"], 0, 1, 4),
        lambda g: aten.sort.default(g["m"], 0),
        lambda g: aten.sort.stable(g["i"], stable=True, dim=-1, descending=True),
        lambda g: aten.topk.default(g["m"], 3),
        lambda g: aten.topk.default(g["m"], 2, 0, False),
        lambda g: aten.tril.default(g["m"], -1),
        lambda g: aten.triu.default(g["m"], 1),
    ]


FAMILIES: dict[str, tuple[Given, Calls]] = {
    "pointwise": (POINTWISE, _pointwise()),
    "views": (MOVED, _views()),
    "creation": (MOVED, _creation()),
    "reductions": (REDUCED, _reductions()),
    "products": (PRODUCTS, _products()),
    "normalisation": (NORMALISED, _normalisation()),
    "windows": (WINDOWED, _windows()),
    "indexing": (INDEXED, _indexing()),
}


class _Family(nn.Module):
    """All calls of a family, one behind the other."""

    def __init__(self, names: list[str], calls: Calls) -> None:
        super().__init__()
        self.names, self.calls = names, calls

    def forward(self, *given: Tensor) -> list[Tensor]:
        """What all of them return."""
        named = dict(zip(self.names, given, strict=True))
        found = list[Tensor]()
        for call in self.calls:
            made = call(named)
            found += [made] if isinstance(made, Tensor) else list(made)  # type: ignore[call-overload]
        return found


def write(name: str) -> None:
    """One archive, and what belongs to it."""
    given, calls = FAMILIES[name]
    network = _Family(list(given), calls)
    with torch.no_grad():
        exported = torch.export.export(network, tuple(given.values()), strict=False)
        wanted = network(*given.values())
    torch.export.save(exported, HERE / f"{name}.pt2")
    arrays = {f"in{n}": value.numpy() for n, value in enumerate(given.values())}
    arrays |= {f"out{n:03}": value.numpy() for n, value in enumerate(wanted)}
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def write_schemas() -> None:
    """The schema of each overload that has a rule."""
    from tilewright.graph.importers.aten.rules.table import RULES

    lines = []
    for name in sorted(RULES):
        base, _, overload = name.partition(".")
        if base not in ("_operator", "torch"):
            lines.append(str(getattr(getattr(aten, base), overload or "default")._schema))
    (HERE / "schemas.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_schemas()
    for chosen in sys.argv[1:] or FAMILIES:
        write(chosen)
