"""Matrix products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .given import Calls, Given, numbers, whole

GIVEN: Given = {
    "a": numbers(3, 4),
    "b": numbers(4, 5, seed=1),
    "v": numbers(4, seed=2),
    "p": numbers(2, 3, 4, seed=3),
    "q": numbers(2, 4, 5, seed=4),
    "h": numbers(2, 6, 3, 4, seed=5),
    "k": numbers(2, 7, 3, 4, seed=6),
    "w": numbers(3, 4, 8, seed=7),
    "i": whole(3, 4),
    "j": whole(4, 5, seed=1),
    "m": whole(6, 7, low=0, high=2).astype(bool),
}


def attention(g: dict[str, jax.Array]) -> jax.Array:
    return jax.nn.dot_product_attention(g["h"], g["k"], g["k"])


CALLS: Calls = [
    lambda g: g["a"] @ g["b"],
    lambda g: g["a"] @ g["v"],
    lambda g: g["v"] @ g["b"],
    lambda g: jnp.dot(g["v"], g["v"]),
    lambda g: g["p"] @ g["q"],
    lambda g: g["p"] @ g["b"],
    lambda g: jnp.outer(g["v"], g["v"]),
    lambda g: jnp.tensordot(g["h"], g["w"], ((2, 3), (0, 1))),
    lambda g: jnp.tensordot(g["h"], g["w"], ((3, 2), (1, 0))),
    lambda g: jnp.einsum("bqhd,bkhd->bhqk", g["h"], g["k"]),
    lambda g: jnp.einsum("bhqk,bkhd->bqhd", jnp.ones((2, 3, 6, 7)), g["k"]),
    lambda g: jnp.einsum("bqhd,hdf->bqf", g["h"], g["w"]),
    lambda g: jnp.einsum("ij,jk->ki", g["a"], g["b"]),
    lambda g: jnp.einsum("bij->ji", g["p"]),
    lambda g: jnp.einsum("bij,bij->b", g["p"], g["p"]),
    lambda g: jnp.vdot(g["a"], g["a"]),
    lambda g: jnp.kron(g["a"], g["a"]),
    lambda g: lax.dot_general(
        g["p"], g["q"], (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32
    ),
    lambda g: g["i"] @ g["j"],
    lambda g: lax.dot_general(
        g["i"].astype(jnp.int8),
        g["j"].astype(jnp.int8),
        (((1,), (0,)), ((), ())),
        preferred_element_type=jnp.int32,
    ),
    lambda g: lax.dot_general(
        g["a"].astype(jnp.bfloat16),
        g["b"].astype(jnp.bfloat16),
        (((1,), (0,)), ((), ())),
        preferred_element_type=jnp.float32,
    ),
    lambda g: jax.vmap(lambda p, q: q.T @ p.T)(g["p"], g["q"]),
    attention,
    lambda g: jax.nn.dot_product_attention(g["h"], g["k"], g["k"], mask=g["m"][None, None]),
    lambda g: jax.nn.dot_product_attention(g["h"], g["h"], g["h"], is_causal=True),
]
