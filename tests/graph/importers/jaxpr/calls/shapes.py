"""What names elements anew, moves them, or makes them of nothing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "x": numbers(2, 3, 4),
    "y": numbers(2, 3, 4, seed=1),
    "v": numbers(4, seed=2),
    "i": whole(5),
    "b": whole(2, 3, low=0, high=2).astype(bool),
}

HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
CALLS: Calls = [
    lambda g: g["x"].reshape(6, 4),
    lambda g: lax.reshape(g["x"], (4, 6), (2, 0, 1)),
    lambda g: g["x"][:, None],
    lambda g: lax.expand_dims(g["v"], (0, 2)),
    lambda g: jnp.squeeze(g["x"][:1], 0),
    lambda g: g["x"].transpose(2, 0, 1),
    lambda g: jnp.swapaxes(g["x"], 0, 1),
    lambda g: jnp.broadcast_to(g["v"], (3, 4)),
    lambda g: lax.broadcast_in_dim(g["v"], (4, 2), (0,)),
    lambda g: jnp.exp(jnp.broadcast_to(g["v"], (3, 4))),
    lambda g: jnp.broadcast_to(g["v"], (3, 4)) + jnp.broadcast_to(g["v"][:3, None], (3, 4)),
    lambda g: jnp.broadcast_to(jnp.broadcast_to(g["v"], (3, 4)), (2, 3, 4)) * g["x"],
    lambda g: lax.slice(g["x"], (0, 1, 1), (2, 3, 4), (1, 1, 2)),
    lambda g: g["x"][:, ::2, -2:],
    lambda g: g["x"][1],
    lambda g: g["x"][..., -1],
    lambda g: lax.rev(g["x"], (0, 2)),
    lambda g: jnp.flip(g["v"]),
    lambda g: jnp.concatenate([g["x"], g["y"]], 1),
    lambda g: jnp.concatenate([g["v"]]),
    lambda g: jnp.stack([g["x"], g["y"]], 1),
    lambda g: jnp.split(g["x"], 2, -1),
    lambda g: lax.split(g["x"], (1, 3), 2),
    lambda g: jnp.unstack(g["x"], axis=1),
    lambda g: lax.tile(g["x"], (1, 2, 1)),
    lambda g: jnp.tile(g["v"], (2, 2)),
    lambda g: jnp.repeat(g["x"], 2, axis=1),
    lambda g: jnp.pad(g["x"], ((0, 0), (1, 2), (0, 1))),
    lambda g: jnp.pad(g["x"], ((0, 0), (1, 1), (2, 0)), mode="edge"),
    lambda g: jnp.pad(g["x"], ((0, 0), (1, 1), (2, 0)), mode="reflect"),
    lambda g: lax.pad(g["x"], 1.5, ((0, 0, 0), (-1, 1, 0), (2, -1, 0))),
    lambda g: lax.pad(g["x"], 0.0, ((0, 0, 0), (1, 0, 1), (0, -1, 2))),
    lambda g: lax.pad(g["x"], 2.0, ((0, 0, 1), (0, 0, 0), (-1, 1, 1))),
    lambda g: lax.pad(g["i"], 7, ((1, 1, 1),)),
    lambda g: lax.pad(g["b"], True, ((0, 1, 0), (1, 0, 1))),
    lambda g: jnp.arange(5),
    lambda g: lax.broadcasted_iota(jnp.int32, (3, 4), 1),
    lambda g: lax.broadcasted_iota(jnp.float32, (3, 4), 0),
    lambda g: jnp.linspace(0, 1, 5) + g["v"][0],
    lambda g: jnp.eye(3),
    lambda g: jnp.tri(3, 4, 1),
    lambda g: jnp.tril(g["x"]),
    lambda g: jnp.triu(g["x"], 1),
    lambda g: jnp.zeros_like(g["x"]),
    lambda g: jnp.full((2, 3), 7),
    lambda g: jnp.roll(g["x"], 1, axis=1),
    lambda g: jnp.roll(g["x"], (1, -2), axis=(1, 2)),
    lambda g: jnp.copy(g["x"]),
    lambda g: lax.stop_gradient(g["x"]),
    lambda g: lax.optimization_barrier((g["x"], g["v"])),
    lambda g: jax.device_put(g["v"]),
    lambda g: lax.with_sharding_constraint(g["v"], HERE),
    lambda g: checkpoint_name(g["v"], "kept"),
    lambda g: lax.empty((2, 2), jnp.float32) * 0,
    lambda g: jnp.moveaxis(g["x"], 0, -1),
    lambda g: jnp.rot90(g["b"]),
    lambda g: jnp.diff(g["x"], axis=1),
    lambda g: jnp.meshgrid(g["v"], g["i"]),
    lambda g: jnp.ones(()),
    lambda g: g["v"],
]
