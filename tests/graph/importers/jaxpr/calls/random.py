"""Random numbers under keys that a run is given."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from .given import Calls, Given

GIVEN: Given = {
    "raw": np.array([123456789, 4000000000], np.uint32),
    "seed": np.array(-7, np.int32),
    "n": np.array(3, np.int32),
    "probabilities": np.array([0.1, 0.5, 0.4], np.float32),
}

wrap, bits = jax.random.wrap_key_data, jax.random.bits


def _words(key: jax.Array) -> jax.Array:
    return jax.random.key_data(key)


CALLS: Calls = [
    lambda g: bits(wrap(g["raw"]), (5,)),
    lambda g: bits(wrap(g["raw"]), ()),
    lambda g: bits(wrap(g["raw"]), (2, 3), "uint8"),
    lambda g: bits(wrap(g["raw"]), (7,), "uint16"),
    lambda g: threefry_2x32(g["raw"], jnp.arange(5, dtype=jnp.uint32)),
    lambda g: _words(jax.random.key(g["seed"])),
    lambda g: _words(jax.random.split(wrap(g["raw"]), 3)),
    lambda g: _words(jax.random.split(wrap(g["raw"]), (2, 2))),
    lambda g: _words(jax.random.fold_in(wrap(g["raw"]), g["n"])),
    lambda g: _words(jax.random.clone(wrap(g["raw"]))),
    lambda g: bits(jax.random.split(wrap(g["raw"]))[1], (3,)),
    lambda g: [_words(one) for one in jax.random.split(jax.random.key(g["n"]), 2)],
    lambda g: jax.vmap(lambda key: bits(key, (3,)))(jax.random.split(wrap(g["raw"]), 2)),
    lambda g: _words(jnp.stack([wrap(g["raw"]), jax.random.key(1)])),
    lambda g: _words(jnp.broadcast_to(wrap(g["raw"]), (2, 1)).reshape(1, 2).T),
    lambda g: jax.random.uniform(wrap(g["raw"]), (3, 3)),
    lambda g: jax.random.normal(wrap(g["raw"]), (6,)),
    lambda g: jax.random.randint(wrap(g["raw"]), (6,), 0, 10),
    lambda g: jax.random.bernoulli(wrap(g["raw"]), 0.3, (8,)),
    lambda g: jax.random.categorical(wrap(g["raw"]), jnp.log(g["probabilities"])),
    lambda g: jax.random.gumbel(wrap(g["raw"]), (4,)),
    lambda g: jax.random.permutation(wrap(g["raw"]), 8),
    lambda g: jax.random.bits(jax.random.PRNGKey(5), (3,)),
    lambda g: jax.lax.scan(
        lambda key, _: (jax.random.split(key)[0], jax.random.uniform(key)),
        wrap(g["raw"]),
        None,
        length=3,
    )[1],
]
