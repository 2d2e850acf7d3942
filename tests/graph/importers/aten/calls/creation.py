"""Calls that make tensors of sizes and numbers, and convert them."""

from __future__ import annotations

import torch

from .given import Calls, aten
from .views import GIVEN as GIVEN

CALLS: Calls = [
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
    lambda g: torch.ops.prims.convert_element_type.default(g["x"], torch.float16),
]
