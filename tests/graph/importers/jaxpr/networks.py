"""Small networks of JAX and flax with random weights: a CNN, a transformer block, rotary positions
within a scan, an encoder like BERT and one of vectors, a ResNet. Imported where jax is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array, lax

HEADS, WIDTH, LENGTH, WORDS = 4, 32, 10, 50


@dataclass(frozen=True)
class Network:
    """A function that closed over its weights, what it takes, and what is to be recognised in it:
    how many nodes of each operator.
    """

    function: Callable[..., object]
    args: tuple[np.ndarray, ...]
    expected: dict[str, int]


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _cnn() -> Network:
    """Convolutions by lax, pools, a classifier."""
    k1, k2, w = drawn(3, 3, 3, 8) * 0.3, drawn(3, 3, 8, 16, seed=1) * 0.1, drawn(256, 10, seed=2)

    def conv(x: Array, k: np.ndarray) -> Array:
        return lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def pool(x: Array) -> Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def function(x: Array) -> Array:
        x = pool(jax.nn.relu(conv(x, k1)))
        x = pool(jax.nn.relu(conv(x, k2)))
        return jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ (w * 0.05))

    return Network(function, (drawn(2, 16, 16, 3, seed=3),), {"Conv": 2, "MaxPool": 2})


class Block(nn.Module):
    """A transformer block with the norm first."""

    @nn.compact
    def __call__(self, x: Array, mask: Array | None = None) -> Array:
        """Attention and a network of each place, each added to what it read."""
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS)(y, y, mask=mask)
        y = nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))
        return x + nn.Dense(WIDTH)(nn.gelu(y))


class Decoder(nn.Module):
    """Words, positions, blocks that look back, a norm, the words again."""

    @nn.compact
    def __call__(self, tokens: Array) -> Array:
        """Scores of the next word at each place."""
        table = nn.Embed(WORDS, WIDTH)
        x = table(tokens) + nn.Embed(LENGTH, WIDTH)(jnp.arange(tokens.shape[1]))
        for _ in range(2):
            x = Block()(x, nn.make_causal_mask(tokens))
        return table.attend(nn.LayerNorm()(x))


def _with_weights(module: nn.Module, *args: np.ndarray, **options: Any) -> Callable[..., object]:
    """The module's function; weights and statistics are random."""
    variables = module.init(jax.random.key(0), *args, **options)
    leaves, tree = jax.tree.flatten(variables)
    noise = [np.asarray(x) + 0.1 * np.abs(drawn(*x.shape, seed=n)) for n, x in enumerate(leaves)]
    return partial(module.apply, jax.tree.unflatten(tree, noise), **options)


def _tokens(batch: int = 2) -> np.ndarray:
    return np.random.default_rng(7).integers(0, WORDS, (batch, LENGTH)).astype(np.int32)


def _transformer() -> Network:
    tokens = _tokens()
    found = {"Attention": 2, "LayerNormalization": 5, "Gelu": 2}
    return Network(_with_weights(Decoder(), tokens), (tokens,), found)


def _rotary() -> Network:
    """Layers in a scan over their weights: RMS norms, rotary positions, gated units."""
    layers, depth = 3, WIDTH // HEADS
    weights = {
        "qkv": drawn(layers, WIDTH, 3 * WIDTH, seed=1) * 0.1,
        "out": drawn(layers, WIDTH, WIDTH, seed=2) * 0.1,
        "up": drawn(layers, WIDTH, 2 * WIDTH, seed=3) * 0.1,
        "down": drawn(layers, WIDTH, WIDTH, seed=4) * 0.1,
        "norm": 1 + drawn(layers, 2, WIDTH, seed=5) * 0.1,
    }

    def norm(x: Array, scale: Array) -> Array:
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale

    def turned(x: Array, positions: Array) -> Array:
        angles = positions[:, None] / 10000 ** (jnp.arange(0, depth, 2) / depth)
        sin, cos = jnp.sin(angles)[:, None, :], jnp.cos(angles)[:, None, :]
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def layer(x: Array, w: dict[str, Array]) -> tuple[Array, None]:
        batch, length, _ = x.shape
        q, k, v = jnp.split(norm(x, w["norm"][0]) @ w["qkv"], 3, -1)
        q, k, v = (one.reshape(batch, length, HEADS, depth) for one in (q, k, v))
        places = jnp.arange(length, dtype=jnp.float32)
        scores = jnp.einsum("bqhd,bkhd->bhqk", turned(q, places), turned(k, places))
        seen = jnp.tril(jnp.ones((length, length), bool))
        mixed = jax.nn.softmax(jnp.where(seen, scores / depth**0.5, -1e30))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", mixed, v).reshape(batch, length, WIDTH) @ w["out"]
        gate, up = jnp.split(norm(x, w["norm"][1]) @ w["up"], 2, -1)
        return x + (jax.nn.silu(gate) * up) @ w["down"], None

    def function(x: Array) -> Array:
        return lax.scan(layer, x, weights)[0]

    found = {"Loop": 1, "Attention": 1, "RMSNormalization": 2}
    return Network(function, (drawn(2, LENGTH, WIDTH),), found)


class Encoder(nn.Module):
    """As BERT: three embeddings, blocks with the norm behind, a mask of what is no word."""

    @nn.compact
    def __call__(self, tokens: Array, mask: Array) -> dict[str, Array]:
        """What each word is in its place, and the first of them once more."""
        places, kinds = jnp.arange(tokens.shape[1])[None], jnp.zeros_like(tokens)
        x = nn.Embed(WORDS, WIDTH)(tokens) + nn.Embed(LENGTH, WIDTH)(places)
        x = nn.LayerNorm(epsilon=1e-12)(x + nn.Embed(2, WIDTH)(kinds))
        seen = nn.make_attention_mask(jnp.ones_like(mask), mask)
        for _ in range(2):
            attention = nn.MultiHeadDotProductAttention(num_heads=HEADS)
            x = nn.LayerNorm(epsilon=1e-12)(x + attention(x, x, mask=seen))
            y = nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(x), approximate=False))
            x = nn.LayerNorm(epsilon=1e-12)(x + y)
        return {"hidden": x, "pooled": jnp.tanh(nn.Dense(WIDTH)(x[:, 0]))}


def _bert() -> Network:
    tokens = _tokens()
    mask = np.ones((2, LENGTH), np.int32)
    mask[1, 6:] = 0
    found = {"Attention": 2, "LayerNormalization": 5, "Gelu": 2}
    return Network(_with_weights(Encoder(), tokens, mask), (tokens, mask), found)


class Residual(nn.Module):
    """Two convolutions with batch norms, added to what they read."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """A convolution of 1 by 1 where the shape changes."""
        norm = partial(nn.BatchNorm, use_running_average=True)
        conv = partial(nn.Conv, use_bias=False)
        steps = (self.stride, self.stride)
        y = nn.relu(norm()(conv(self.features, (3, 3), steps)(x)))
        y = norm()(conv(self.features, (3, 3))(y))
        if y.shape != x.shape:
            x = norm()(conv(self.features, (1, 1), steps)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A stem, four blocks, a mean over the image, a classifier."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Scores of classes."""
        x = nn.Conv(8, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for features, stride in ((8, 1), (8, 1), (16, 2), (16, 1)):
            x = Residual(features, stride)(x)
        return nn.Dense(10)(x.mean((1, 2)))


def _resnet() -> Network:
    x = drawn(2, 32, 32, 3)
    # each batch norm is folded into the convolution before it
    found = {"Conv": 10, "MaxPool": 1, "Sub": 0, "Mul": 0}
    return Network(_with_weights(ResNet(), x), (x,), found)


NETWORKS: dict[str, Callable[[], Network]] = {
    "bert": _bert,
    "cnn": _cnn,
    "resnet": _resnet,
    "rotary": _rotary,
    "transformer": _transformer,
}
