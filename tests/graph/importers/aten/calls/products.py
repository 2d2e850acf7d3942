"""Calls that are matrix products."""

from __future__ import annotations

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "a": numbers(3, 4),
    "b": numbers(4, 5, seed=1),
    "c": numbers(3, 5, seed=2),
    "p": numbers(2, 3, 4, seed=3),
    "q": numbers(2, 4, 5, seed=4),
    "v": numbers(4, seed=5),
    "s": numbers(2, 4, 6, 8, seed=6),
    "k": numbers(2, 2, 6, 8, seed=7),
    "m": whole(6, 6, low=0, high=2).bool(),
    "f": numbers(2, 1, 6, 6, seed=8),
}

sdpa = aten.scaled_dot_product_attention.default
flash = aten._scaled_dot_product_flash_attention_for_cpu.default
CALLS: Calls = [
    lambda g: aten.addmm.default(g["c"], g["a"], g["b"]),
    lambda g: aten.addmm.default(g["c"], g["a"], g["b"], beta=0.5, alpha=2),
    lambda g: aten.baddbmm.default(g["c"][:1], g["p"], g["q"], beta=0),
    lambda g: aten.bmm.default(g["p"], g["q"]),
    lambda g: aten.dot.default(g["v"], g["v"]),
    lambda g: aten.einsum.default("bij,bjk->bik", [g["p"], g["q"]]),
    lambda g: aten.linear.default(g["p"], g["b"].t(), g["c"][0]),
    lambda g: aten.linear.default(g["p"], g["b"].t()),
    lambda g: aten.matmul.default(g["p"], g["v"]),
    lambda g: aten.matmul.default(g["a"], g["q"]),
    lambda g: aten.mm.default(g["a"], g["b"]),
    lambda g: aten.mv.default(g["a"], g["v"]),
    lambda g: sdpa(g["s"], g["s"], g["s"]),
    lambda g: sdpa(g["s"], g["s"], g["s"], None, 0.0, True),
    lambda g: sdpa(g["s"], g["s"], g["s"], g["m"], scale=0.5),
    lambda g: sdpa(g["s"], g["s"], g["s"], g["f"]),
    lambda g: sdpa(g["s"], g["k"], g["k"], enable_gqa=True),
    lambda g: flash(g["s"], g["s"], g["s"])[0],
    lambda g: flash(g["s"], g["s"], g["s"], 0.0, True, scale=0.5)[0],
    lambda g: flash(g["s"], g["s"], g["s"], attn_mask=g["f"])[0],
]
