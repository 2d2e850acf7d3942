"""The instructions that a tensorized loop may become, by name."""

from __future__ import annotations

from collections.abc import Mapping

from .tensor_intrinsics import TENSOR_INTRINSICS, TensorIntrinsic
from .warp_products import WARP_PRODUCTS, WarpProduct

Instruction = TensorIntrinsic | WarpProduct

INSTRUCTIONS: Mapping[str, Instruction] = {**TENSOR_INTRINSICS, **WARP_PRODUCTS}
