"""Calls, branches and loops."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .given import Calls, Given, numbers

GIVEN: Given = {
    "x": numbers(3, 4),
    "r": numbers(5, 4, seed=1),
    "w": numbers(4, 4, seed=2),
    "yes": np.array(True),
    "no": np.array(False),
    "one": np.array(1, np.int32),
    "two": np.array(2, np.int32),
    "many": np.array(9, np.int32),
}


@jax.custom_jvp
def _twice(x: Array) -> Array:
    return x * 2


_twice.defjvp(lambda primals, tangents: (_twice(*primals), tangents[0] * 2))


@jax.custom_vjp
def _thrice(x: Array) -> Array:
    return x * 3


_thrice.defvjp(lambda x: (x * 3, None), lambda _, g: (g * 3,))


@jax.custom_batching.custom_vmap
def _two_more(x: Array) -> Array:
    return x + 2


@_two_more.def_vmap
def _(size: int, batched: list[bool], x: Array) -> tuple[Array, bool]:
    return x + 2, True


def _cell(w: Array, h: Array, x: Array) -> tuple[Array, Array]:
    made = jnp.tanh(h @ w + x)
    return made, made.sum()


def _loop(g: dict[str, Array], reverse: bool = False) -> tuple[Array, Array]:
    return lax.scan(partial(_cell, g["w"]), jnp.zeros(4), g["r"], reverse=reverse)


def _until(g: dict[str, Array]) -> tuple[Array, Array]:
    def goes_on(state: tuple[Array, Array]) -> Array:
        return (state[0] < g["many"]) & (jnp.abs(state[1]).max() < 100)

    return lax.while_loop(goes_on, lambda s: (s[0] + 1, s[1] * 1.5), (g["one"], g["x"]))


def _three(g: dict[str, Array], number: Array) -> Array:
    ways = [lambda x: x, lambda x: x * 2, lambda x: jnp.cos(x), lambda x: -x, lambda x: x + 1]
    return lax.switch(number, ways, g["x"])


def _same_twice(carry: Array, x: Array) -> tuple[Array, Array]:
    made = carry + x
    return made, made


CALLS: Calls = [
    lambda g: jax.jit(lambda x: x + 1)(g["x"]),
    lambda g: _twice(g["x"]),
    lambda g: _thrice(g["x"]),
    lambda g: jax.checkpoint(lambda x: jnp.sin(x))(g["x"]),
    lambda g: lax.composite(lambda x: x * 2 + 1, "my.affine", version=1)(g["x"]),
    lambda g: _two_more(g["x"]),
    lambda g: lax.scan(_same_twice, jnp.zeros(4), g["r"]),
    lambda g: lax.cond(g["yes"], lambda x: (x, x), lambda x: (x, x * 2), g["x"]),
    lambda g: jax.named_call(lambda x: x - 1, name="less")(g["x"]),
    lambda g: lax.cond(g["yes"], lambda x: x + 1, lambda x: x - 1, g["x"]),
    lambda g: lax.cond(g["no"], lambda: g["x"] @ g["w"], lambda: g["x"]),
    lambda g: lax.cond(True, lambda x: x + 1, lambda x: x - 1, g["x"]),
    lambda g: lax.cond(g["yes"], lambda x: (x, x), lambda x: (x * 0, x), g["x"]),
    lambda g: _three(g, g["two"]),
    lambda g: _three(g, g["many"]),
    lambda g: _three(g, g["one"]),
    lambda g: _three(g, 3),
    lambda g: lax.switch(g["two"], [lambda x: x, lambda x: x * 2, lambda x: -x], g["x"]),
    lambda g: _loop(g),
    lambda g: _loop(g, reverse=True),
    lambda g: lax.scan(lambda c, _: (c * 1.5, c), g["x"], None, length=3),
    lambda g: lax.scan(lambda c, x: (c, x * 2), 0.0, g["r"])[1],
    lambda g: lax.scan(lambda c, x: (c + x[0], (x, c)), jnp.zeros(4), (g["r"], g["r"])),
    lambda g: lax.map(lambda x: x @ g["w"], g["r"]),
    lambda g: lax.fori_loop(0, 4, lambda n, x: x + n, g["x"]),
    lambda g: lax.fori_loop(0, g["two"], lambda n, x: x * 2 + n, g["x"]),
    lambda g: _until(g),
    lambda g: lax.while_loop(lambda x: x.sum() < 1e3, lambda x: x * x + 1, g["x"]),
    lambda g: lax.while_loop(lambda x: x.sum() > 1e3, lambda x: x * x + 1, g["x"]),
    lambda g: lax.associative_scan(jnp.add, g["r"]),
    lambda g: jax.grad(lambda x: jnp.tanh(x @ g["w"]).sum())(g["x"]),
    lambda g: lax.platform_dependent(g["x"], cpu=lambda x: x + 1, default=lambda x: x),
    lambda g: jnp.vectorize(lambda x: lax.cond(x > 0, lambda: x, lambda: -x))(g["x"]),
]
