"""What calls are given: seeded numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten
Given = dict[str, Tensor]
Calls = list[Callable[[Given], object]]


def numbers(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> Tensor:
    """Real numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator) * (high - low) + low


def whole(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> Tensor:
    """Integers."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))
