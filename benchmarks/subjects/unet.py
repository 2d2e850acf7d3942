"""A U-Net as diffusion models have it: residual blocks told the time, attention over the image and
over a text, two scales, and what the way down kept joined on the way up.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def time_embedding(timestep: Tensor, width: int) -> Tensor:
    """Sines and cosines of a time at frequencies from 1 to 1/10000."""
    half = width // 2
    steps = torch.arange(half, dtype=torch.float32, device=timestep.device)
    angles = timestep[:, None].float() * torch.exp(steps * (-math.log(10_000) / half))[None, :]
    return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)


class Residual(nn.Module):
    """Two convolutions with group norms, and the time between them."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(functional.silu(self.norm1(x)))
        h = h + self.time(functional.silu(time))[:, :, None, None]
        h = self.conv2(functional.silu(self.norm2(h)))
        return self.skip(x) + h


class Attention(nn.Module):
    """Attention of the places of an image to themselves or to a text."""

    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(context, width, bias=False)
        self.value = nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        def split(tensor: Tensor) -> Tensor:
            return tensor.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        query, key, value = (
            split(self.query(x)),
            split(self.key(context)),
            split(self.value(context)),
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Transformer(nn.Module):
    """One block over the places of an image: itself, the text, and a gated feed-forward."""

    def __init__(self, width: int, text: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.inwards = nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own = Attention(width, width, heads)
        self.cross = Attention(width, text, heads)
        self.gated = nn.Linear(width, 8 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.outwards = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        batch, width, height, across = x.shape
        h = self.inwards(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, height * across, width)
        seen = self.norms[0](h)
        h = h + self.own(seen, seen)
        h = h + self.cross(self.norms[1](h), text)
        value, gate = self.gated(self.norms[2](h)).chunk(2, dim=-1)
        h = h + self.narrow(value * functional.gelu(gate))
        h = h.reshape(batch, height, across, width).permute(0, 3, 1, 2)
        return x + self.outwards(h)


class UNet(nn.Module):
    """Two scales of `channels` and twice as many."""

    def __init__(self, channels: int, text: int) -> None:
        super().__init__()
        self.channels = channels
        time = 4 * channels
        self.times = nn.Sequential(nn.Linear(channels, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, channels, 3, padding=1)
        self.down1 = Residual(channels, channels, time)
        self.shrink = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.down2 = Residual(channels, 2 * channels, time)
        self.middle = Transformer(2 * channels, text, heads=4)
        self.up2 = Residual(3 * channels, 2 * channels, time)
        self.grow = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.up1 = Residual(2 * channels, channels, time)
        self.norm = nn.GroupNorm(8, channels)
        self.last = nn.Conv2d(channels, 4, 3, padding=1)

    def forward(self, sample: Tensor, timestep: Tensor, text: Tensor) -> Tensor:
        time = self.times(time_embedding(timestep, self.channels))
        first = self.down1(self.first(sample), time)
        small = self.shrink(first)
        h = self.middle(self.down2(small, time), text)
        h = self.up2(torch.cat([h, small], dim=1), time)
        h = self.grow(functional.interpolate(h, scale_factor=2.0, mode="nearest"))
        h = self.up1(torch.cat([h, first], dim=1), time)
        return self.last(functional.silu(self.norm(h)))
