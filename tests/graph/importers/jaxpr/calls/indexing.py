"""Elements that data choose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "x": numbers(5, 6, 4),
    "t": numbers(7, 4, seed=1),
    "i": whole(3, low=-5, high=5),
    "far": np.array([0, 9, -9, 2], np.int32),
    "r": whole(2, 3, low=0, high=7),
    "c": whole(2, 3, low=0, high=4, seed=1),
    "u": numbers(3, 6, 4, seed=2),
    "w": numbers(2, 2, 4, seed=3),
    "n": np.array(2, np.int32),
    "late": np.array(9, np.int32),
    "at": whole(5, 1, 4, low=0, high=6, seed=4),
    "m": whole(5, 6, low=0, high=2).astype(bool),
    "k": whole(4, 4),
}

clip, fill, promise = (
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.FILL_OR_DROP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)
windows = lax.GatherDimensionNumbers(
    offset_dims=(1, 2), collapsed_slice_dims=(2,), start_index_map=(0, 2)
)
CALLS: Calls = [
    lambda g: g["x"][g["i"]],
    lambda g: g["x"][:, g["i"]],
    lambda g: g["x"][:, :, g["c"]],
    lambda g: g["x"][g["r"][0], g["c"][0]],
    lambda g: g["x"][g["r"][:, :1] % 5, :, g["c"]],
    lambda g: g["x"][1, g["i"]],
    lambda g: g["x"][g["n"]],
    lambda g: g["x"][g["n"], :, g["n"]],
    lambda g: g["x"][g["n"], g["i"], 1:3],
    lambda g: jnp.take(g["t"], g["r"], axis=0),
    lambda g: jnp.take(g["t"], g["far"], axis=0),
    lambda g: jnp.take(g["t"], g["far"], axis=0, mode="clip"),
    lambda g: jnp.take(g["t"], g["far"], axis=0, mode="wrap"),
    lambda g: jnp.take(g["k"], g["far"], axis=0),
    lambda g: g["t"].at[g["far"]].get(mode="fill", fill_value=7),
    lambda g: g["t"][g["far"]],
    lambda g: jnp.take_along_axis(g["x"], g["at"], axis=1),
    lambda g: jax.vmap(lambda x, i: x[i])(g["x"], g["at"][:, 0, 0]),
    lambda g: lax.gather(g["x"], g["c"][:, :2], windows, (2, 3, 1), mode=clip),
    lambda g: lax.gather(g["x"], g["r"][:, :2], windows, (2, 6, 1), mode=clip),
    lambda g: lax.gather(g["x"], g["r"][:, :2], windows, (2, 6, 1), mode=fill),
    lambda g: lax.dynamic_slice(g["x"], (g["n"], 1, g["n"]), (2, 3, 2)),
    lambda g: lax.dynamic_slice(g["x"], (g["late"], g["late"], 0), (2, 3, 4)),
    lambda g: lax.dynamic_index_in_dim(g["x"], g["n"], 1),
    lambda g: lax.dynamic_slice_in_dim(g["x"], 1, 3, 1),
    lambda g: lax.dynamic_slice(g["x"], (9, np.int32(-7), 0), (2, 3, 4)),
    lambda g: lax.dynamic_update_slice(g["x"], g["u"], (9, 0, 0)),
    lambda g: jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 4)))(g["x"], g["at"][:, 0, 0]),
    lambda g: lax.dynamic_update_slice(g["x"], g["u"], (g["n"], 0, 0)),
    lambda g: lax.dynamic_update_slice(g["x"], g["u"], (g["late"], 0, 0)),
    lambda g: lax.dynamic_update_slice(g["x"], g["w"], (g["n"], g["n"], 0)),
    lambda g: lax.dynamic_update_slice(g["x"], g["w"], (1, g["n"], 0)),
    lambda g: lax.dynamic_update_slice(g["x"], g["u"], (1, 0, 0)),
    lambda g: lax.dynamic_update_slice(g["x"], g["x"] * 2, (g["n"], 0, 0)),
    lambda g: lax.dynamic_update_index_in_dim(g["x"], g["x"][0], g["n"], 0),
    lambda g: g["x"].at[g["i"]].set(g["u"]),
    lambda g: g["x"].at[g["i"]].add(g["u"]),
    lambda g: g["x"].at[:, g["i"]].multiply(2.0),
    lambda g: g["x"].at[g["i"]].subtract(g["u"]),
    lambda g: g["x"].at[g["i"]].max(g["u"]),
    lambda g: g["x"].at[g["i"]].min(g["u"]),
    lambda g: g["x"].at[g["far"]].set(0.0),
    lambda g: g["x"].at[g["far"]].add(1.0, mode="clip"),
    lambda g: g["x"].at[g["n"], 1:3].set(0.0),
    lambda g: g["x"].at[1].set(0.0),
    lambda g: g["x"].at[:, :, 1:3].add(1.0),
    lambda g: g["x"].at[g["r"][0] % 5, g["c"][0]].set(g["u"][:, 0]),
    lambda g: g["k"].at[g["c"][0], g["c"][1]].add(1),
    lambda g: jax.vmap(lambda x, i: x.at[i].set(0.0))(g["x"], g["at"][:, 0, 0]),
    lambda g: jax.vmap(lambda x, w, i: lax.dynamic_update_slice(x, w, (i, 0)))(
        g["x"], g["x"][:, :2] * 2, g["at"][:, 0, 0]
    ),
    lambda g: jax.ops.segment_sum(g["u"], jnp.array([0, 2, 0]), 4),
    lambda g: jax.nn.one_hot(g["c"], 4),
    lambda g: jnp.where(g["m"][..., None], g["x"], 0),
    lambda g: jnp.searchsorted(jnp.arange(6.0), g["t"][:, 0]),
    lambda g: jnp.diagonal(g["x"][..., :1], axis1=0, axis2=1),
    lambda g: jnp.trace(g["k"]),
]
