"""Calls of torchao's operators, which make levels of blocks, and of products of bytes."""

from __future__ import annotations

import torch
import torchao.quantization.quant_primitives  # noqa: F401  # it declares them

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "x": numbers(4, 6, low=-9, high=9),
    "above": numbers(4, 6, low=0.5, high=9, seed=1),
    "w": whole(4, 6, low=-8, high=8, seed=2).to(torch.int8),
    "s": numbers(4, 2, low=0.01, high=0.1, seed=3),
    "z": whole(4, 2, low=-3, high=3, seed=4).to(torch.int8),
    "row": numbers(4, 1, low=0.01, high=0.1, seed=5),
    "all": torch.tensor([0.07]),
    "none": torch.tensor([5]),
    "a": whole(18, 16, low=0, high=256, seed=6).to(torch.uint8),
    "b": whole(16, 8, low=-128, high=128, seed=7).to(torch.int8),
    "c": whole(18, 16, low=-128, high=128, seed=8).to(torch.int8),
}

ops = torch.ops.torchao
i8, u8, i32, f32, f16 = torch.int8, torch.uint8, torch.int32, torch.float32, torch.float16
CALLS: Calls = [
    lambda g: ops.quantize_affine.default(g["x"], [1, 3], g["s"], g["z"], i8, -8, 7),
    lambda g: ops.quantize_affine.default(g["x"], [4, 6], g["all"], g["none"], u8),
    lambda g: ops.dequantize_affine.default(g["w"], [1, 3], g["s"], g["z"], i8, -8, 7),
    lambda g: ops.dequantize_affine.default(g["w"], [1, 6], g["row"], None, i8),
    lambda g: ops.dequantize_affine.default(
        g["w"], [4, 6], g["all"], g["none"], i8, output_dtype=f16
    ),
    lambda g: ops.choose_qparams_affine.default(g["x"], "ASYMMETRIC", [1, 3], i8),
    lambda g: ops.choose_qparams_affine.default(g["above"], "ASYMMETRIC", [2, 6], u8, 0, 255),
    lambda g: ops.choose_qparams_affine.default(g["x"], "SYMMETRIC", [1, 3], u8),
    lambda g: ops.choose_qparams_affine.default(
        g["x"], "SYMMETRIC", [1, 6], i8, -127, 127, 0.5, f32, i8, True
    ),
    lambda g: ops.choose_qparams_affine.default(
        g["x"], "SYMMETRIC_NO_CLIPPING_ERR", [4, 6], i8, -8, 7, None, None, i32
    ),
    lambda g: aten._int_mm.default(g["a"], g["b"]),
    lambda g: aten._int_mm.default(g["c"], g["b"]),
]
