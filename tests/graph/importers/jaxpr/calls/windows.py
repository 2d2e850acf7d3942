"""Convolutions and reductions over windows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "x": numbers(2, 7, 6, 3),
    "k": numbers(3, 3, 3, 4, seed=1),
    "g": numbers(3, 3, 1, 6, seed=2),
    "d": numbers(2, 3, 7, 6, seed=3),
    "o": numbers(4, 3, 3, 3, seed=4),
    "l": numbers(2, 9, 4, seed=5),
    "m": numbers(3, 4, 5, seed=6),
    "c": numbers(1, 4, 4, 4, 2, seed=7),
    "n": numbers(2, 2, 2, 2, 3, seed=8),
    "i": whole(2, 6, 6, 2),
    "b": whole(2, 6, 6, 2, low=0, high=2).astype(bool),
}

NHWC = ("NHWC", "HWIO", "NHWC")
NWC = ("NWC", "WIO", "NWC")


def conv(x: jax.Array, k: jax.Array, **options: object) -> jax.Array:
    given = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC} | options
    return lax.conv_general_dilated(x, k, **given)  # type: ignore[arg-type]


def window(x: jax.Array, start: object, op: object, shape: tuple[int, ...], **options: object):
    steps = options.pop("steps", (1,) * len(shape))
    return lax.reduce_window(x, start, op, shape, steps, options.pop("pads", "VALID"), **options)


CALLS: Calls = [
    lambda g: conv(g["x"], g["k"]),
    lambda g: conv(g["x"], g["k"], padding="VALID", window_strides=(2, 1)),
    lambda g: conv(g["x"], g["k"], padding=((1, 2), (0, 3))),
    lambda g: conv(g["x"], g["k"], padding=((-1, 2), (1, -1))),
    lambda g: conv(g["x"], g["k"], rhs_dilation=(2, 1)),
    lambda g: conv(g["x"], g["g"], feature_group_count=3),
    lambda g: conv(g["x"], g["k"], padding=((2, 1), (1, 2)), lhs_dilation=(2, 3)),
    lambda g: lax.conv_transpose(g["x"], g["k"], (2, 2), "SAME", dimension_numbers=NHWC),
    lambda g: lax.conv(g["d"], g["o"], (1, 1), "SAME"),
    lambda g: lax.conv_general_dilated(g["l"], g["m"], (1,), "SAME", dimension_numbers=NWC),
    lambda g: lax.conv_general_dilated(
        g["c"], g["n"], (1, 1, 1), "VALID", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    ),
    lambda g: (
        conv(g["x"].astype(jnp.bfloat16), g["k"].astype(jnp.bfloat16)).astype(jnp.float32) * 0
    ),
    lambda g: nn.max_pool(g["x"], (2, 2), (2, 2)),
    lambda g: nn.max_pool(g["x"], (3, 3), (2, 2), "SAME"),
    lambda g: nn.max_pool(g["x"], (3, 3), (1, 1), ((1, 0), (0, 1))),
    lambda g: nn.avg_pool(g["x"], (2, 2), (2, 2)),
    lambda g: nn.avg_pool(g["x"], (3, 3), (2, 2), "SAME"),
    lambda g: nn.avg_pool(g["x"], (3, 3), (1, 1), "SAME", count_include_pad=False),
    lambda g: window(g["x"], jnp.inf, lax.min, (1, 2, 2, 1)),
    lambda g: nn.max_pool(g["l"], (3,), (2,)),
    lambda g: window(g["x"], -jnp.inf, lax.max, (1, 2, 2, 1), window_dilation=(1, 2, 1, 1)),
    lambda g: window(g["x"], 0.0, lax.add, (1, 1, 3, 2), steps=(1, 1, 2, 1)),
    lambda g: window(g["l"], 0.0, lax.add, (2, 3, 1)),
    lambda g: window(g["i"], np.int32(0), lax.add, (1, 2, 2, 1)),
    lambda g: window(g["i"], np.int32(-(2**31)), lax.max, (1, 2, 2, 1)),
    lambda g: window(g["b"], False, lax.bitwise_or, (1, 2, 2, 1)),
    lambda g: lax.reduce_window(
        g["x"], 0.0, lambda a, b: lax.add(b, a), (1, 2, 2, 1), (1, 1, 1, 1), "VALID"
    ),
    lambda g: jax.image.resize(g["x"], (2, 14, 12, 3), "nearest"),
    lambda g: jax.image.resize(g["x"], (2, 10, 9, 3), "bilinear"),
]
