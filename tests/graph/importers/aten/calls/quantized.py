"""Calls that make levels of numbers, and numbers of levels."""

from __future__ import annotations

import torch

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "x": numbers(3, 4, 5, low=-9, high=9),
    "q": whole(3, 4, 5, low=-128, high=128).to(torch.int8),
    "u": whole(3, 4, 5, low=0, high=256).to(torch.uint8),
    "w": whole(6, 8, low=-8, high=8, seed=1).to(torch.int8),
    "s": numbers(4, low=0.01, high=0.1, seed=2),
    "z": whole(4, low=-20, high=20, seed=3),
    "g": numbers(6, 2, low=0.01, high=0.1, seed=4),
    "h": whole(6, 2, low=-3, high=3, seed=5),
    "r": torch.tensor([0.043]),
    "p": torch.tensor([17]),
}

ops = torch.ops.quantized_decomposed
i8, u8, f32 = torch.int8, torch.uint8, torch.float32
CALLS: Calls = [
    lambda g: ops.quantize_per_tensor.default(g["x"], 0.07, 3, -128, 127, i8),
    lambda g: ops.quantize_per_tensor.default(g["x"], 0.02, 128, 0, 255, u8),
    lambda g: ops.quantize_per_tensor.default(g["x"], 0.05, 0, -127, 127, i8),
    lambda g: ops.quantize_per_tensor.tensor(g["x"], g["r"], g["p"], -128, 127, i8),
    lambda g: ops.quantize_per_channel.default(g["x"], g["s"], g["z"], 1, -128, 127, i8),
    lambda g: ops.dequantize_per_tensor.default(g["q"], 0.07, 3, -128, 127, i8),
    lambda g: ops.dequantize_per_tensor.default(g["u"], 0.02, 0, 0, 255, u8, out_dtype=f32),
    lambda g: ops.dequantize_per_tensor.tensor(g["q"], g["r"], g["p"], -128, 127, i8),
    lambda g: ops.dequantize_per_channel.default(g["q"], g["s"], g["z"], 1, -128, 127, i8),
    lambda g: ops.dequantize_per_channel.default(g["q"], g["s"], None, 1, -128, 127, i8),
    lambda g: ops.dequantize_per_channel_group.default(g["w"], g["g"], g["h"], -8, 7, i8, 4, f32),
]
