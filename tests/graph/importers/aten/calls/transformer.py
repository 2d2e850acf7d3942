"""Calls that are whole attentions, or layers of a transformer."""

from __future__ import annotations

import torch

from .given import Calls, Given, aten, numbers, whole

WIDTH, HEADS, WIDE = 16, 4, 24
GIVEN: Given = {
    "x": numbers(2, 5, WIDTH),
    "qkv": numbers(3 * WIDTH, WIDTH, seed=1) / 4,
    "qkv_bias": numbers(3 * WIDTH, seed=2),
    "out": numbers(WIDTH, WIDTH, seed=3) / 4,
    "bias": numbers(WIDTH, seed=4),
    "scale": numbers(WIDTH, seed=5),
    "up": numbers(WIDE, WIDTH, seed=6) / 4,
    "up_bias": numbers(WIDE, seed=7),
    "down": numbers(WIDTH, WIDE, seed=8) / 4,
    "keys": whole(2, 5, low=0, high=2, seed=9).bool() & torch.tensor([False] + [True] * 4),
}


def _attention(g: Given, **more: object) -> torch.Tensor:
    weights = g["qkv"], g["qkv_bias"], g["out"], g["bias"]
    call = aten._native_multi_head_attention.default
    return call(g["x"], g["x"], g["x"], WIDTH, HEADS, *weights, need_weights=False, **more)[0]


def _layer(g: Given, gelu: bool, first: bool, *mask: object) -> torch.Tensor:
    weights = g["qkv"], g["qkv_bias"], g["out"], g["bias"]
    norms = g["scale"], g["bias"], g["scale"], g["bias"]
    fed = g["up"], g["up_bias"], g["down"], g["bias"]
    call = aten._transformer_encoder_layer_fwd.default
    return call(g["x"], WIDTH, HEADS, *weights, gelu, first, 1e-5, *norms, *fed, *mask)


CALLS: Calls = [
    lambda g: _attention(g),
    lambda g: _attention(g, mask=g["keys"], mask_type=1),
    lambda g: _layer(g, True, True),
    lambda g: _layer(g, False, False),
    lambda g: _layer(g, False, True, g["keys"], 1),
]
