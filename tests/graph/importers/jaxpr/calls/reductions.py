"""Reductions, places of the largest, running totals, and order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "x": numbers(3, 4, 5),
    "y": numbers(3, 4, 5, seed=1),
    "i": whole(3, 7),
    "j": whole(3, 7, seed=1, low=0, high=3),
    "b": whole(3, 4, low=0, high=2).astype(bool),
    "s": numbers(6, seed=2),
    "one": numbers(3, 1, seed=3),
}

CALLS: Calls = [
    lambda g: g["x"].sum(),
    lambda g: g["x"].sum(1),
    lambda g: g["x"].sum((0, 2), keepdims=True),
    lambda g: g["i"].sum(1),
    lambda g: g["x"].mean(-1),
    lambda g: g["x"].mean((1, 2), keepdims=True),
    lambda g: g["x"].var(-1),
    lambda g: g["x"].std(1, ddof=1),
    lambda g: g["x"].prod(-1),
    lambda g: g["x"].max(1),
    lambda g: g["i"].min(0),
    lambda g: g["x"].min(),
    lambda g: g["b"].max(1),
    lambda g: g["b"].min(0),
    lambda g: g["b"].any(1),
    lambda g: g["b"].all(0),
    lambda g: jnp.argmax(g["x"], 1),
    lambda g: jnp.argmin(g["x"], -1),
    lambda g: jnp.argmax(g["j"], 1),
    lambda g: jnp.argmax(g["b"], 1),
    lambda g: lax.argmax(g["x"], 2, jnp.uint32),
    lambda g: jnp.cumsum(g["x"], 1),
    lambda g: lax.cumsum(g["x"], 2, reverse=True),
    lambda g: jnp.cumsum(g["i"], 1),
    lambda g: jnp.cumprod(g["x"], 0),
    lambda g: lax.cumprod(g["x"], 1, reverse=True),
    lambda g: lax.cummax(g["x"], 2),
    lambda g: lax.cummax(g["x"], 1, reverse=True),
    lambda g: lax.cummin(g["i"], 1),
    lambda g: jnp.sort(g["x"], -1),
    lambda g: jnp.sort(g["x"], 1, descending=True),
    lambda g: jnp.argsort(g["j"], 1),
    lambda g: jnp.argsort(g["x"], 0),
    lambda g: lax.sort((g["j"], g["i"]), dimension=1, num_keys=2),
    lambda g: lax.sort((g["j"], g["i"]), dimension=1, num_keys=1),
    lambda g: lax.sort_key_val(g["j"], g["i"]),
    lambda g: jnp.sort(g["b"], 1),
    lambda g: lax.top_k(g["x"], 2),
    lambda g: lax.top_k(g["j"], 3),
    lambda g: lax.approx_max_k(g["s"], 2),
    lambda g: lax.approx_min_k(g["s"], 2),
    lambda g: jnp.median(g["x"], 1),
    lambda g: jax.nn.softmax(g["x"]),
    lambda g: jax.nn.softmax(g["x"], (1, 2)),
    lambda g: jax.nn.softmax(g["x"], where=g["x"] > -1),
    lambda g: jax.nn.log_softmax(g["x"], 1),
    lambda g: jax.nn.logsumexp(g["x"], -1),
    lambda g: jax.nn.standardize(g["x"], -1),
    lambda g: jnp.linalg.norm(g["x"], axis=-1),
    lambda g: lax.reduce(g["x"], 0.0, lax.add, (1,)),
    lambda g: lax.reduce(g["x"], 1.0, lambda a, b: lax.max(b, a), (0, 2)),
    lambda g: lax.reduce(g["i"], 2, lax.mul, (1,)),
    lambda g: lax.reduce(g["b"], False, lax.bitwise_or, (1,)),
    lambda g: jnp.count_nonzero(g["b"], 1),
    lambda g: jnp.ptp(g["x"], 1),
    lambda g: jnp.average(g["x"], 1, weights=g["s"][:4]),
    lambda g: g["one"].sum(1),
]
