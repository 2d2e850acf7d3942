"""Calls that reduce axes."""

from __future__ import annotations

import torch

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "x": numbers(2, 3, 4),
    "i": whole(2, 3),
    "b": whole(2, 3, low=0, high=2).bool(),
    "s": torch.tensor(2.0),
    "n": torch.tensor([[1.0, float("nan"), 3.0], [float("-inf"), float("inf"), 0.0]]),
}

_EACH: Calls = []
for name in ("all", "any"):
    op = getattr(aten, name)
    _EACH += [
        lambda g, op=op: op.default(g["b"]),
        lambda g, op=op: op.dim(g["i"], 1),
        lambda g, op=op: op.dims(g["x"], [0, 1], True),
    ]
for name in ("amax", "amin"):
    op = getattr(aten, name)
    _EACH += [
        lambda g, op=op: op.default(g["x"], [0, 2]),
        lambda g, op=op: op.default(g["i"], [], True),
    ]
for name in ("argmax", "argmin"):
    op = getattr(aten, name)
    _EACH += [
        lambda g, op=op: op.default(g["x"]),
        lambda g, op=op: op.default(g["x"], 1, True),
        lambda g, op=op: op.default(g["i"], -1),
    ]
for name in ("max", "min"):
    op = getattr(aten, name)
    _EACH += [
        lambda g, op=op: op.default(g["x"]),
        lambda g, op=op: op.dim(g["x"], -1),
    ]
CALLS: Calls = [
    *_EACH,
    lambda g: aten.amax.default(g["n"], [1]),
    lambda g: aten.argmax.default(g["n"], 1),
    lambda g: aten.softmax.int(g["n"], 1),
    lambda g: aten._log_softmax.default(g["x"], 1, False),
    lambda g: aten._softmax.default(g["x"], -1, False),
    lambda g: aten.cumprod.default(g["x"], 1),
    lambda g: aten.cumsum.default(g["i"], 1),
    lambda g: aten.cumsum.default(g["b"], 0),
    lambda g: aten._cdist_forward.default(g["x"], g["x"] * 2, 2.0, None),
    lambda g: aten.aminmax.default(g["x"], dim=1),
    lambda g: aten.cosine_similarity.default(g["x"], g["x"] + 1),
    lambda g: aten.count_nonzero.dim_IntList(g["i"], [1]),
    lambda g: aten.norm.Scalar(g["x"]),
    lambda g: aten.diff.default(g["x"], 2, 2),
    lambda g: aten.diff.default(g["b"]),
    lambda g: aten.linalg_vector_norm.default(g["x"], 2, [1], True),
    lambda g: aten.linalg_vector_norm.default(g["x"], 1),
    lambda g: aten.linalg_vector_norm.default(g["x"], float("inf"), [2]),
    lambda g: aten.log_softmax.int(g["x"], 2),
    lambda g: aten.logsumexp.default(g["x"], [1, 2]),
    lambda g: aten.mean.default(g["x"]),
    lambda g: aten.mean.dim(g["x"], [0, -1], True),
    lambda g: aten.norm.ScalarOpt_dim(g["x"], None, [1]),
    lambda g: aten.prod.default(g["i"]),
    lambda g: aten.prod.dim_int(g["x"], 1, True),
    lambda g: aten.softmax.int(g["x"], 1),
    lambda g: aten.std.correction(g["x"], [1], correction=1),
    lambda g: aten.std.dim(g["x"], [2], False),
    lambda g: aten.sum.default(g["x"]),
    lambda g: aten.sum.default(g["s"]),
    lambda g: aten.sum.dim_IntList(g["b"], [1]),
    lambda g: aten.sum.dim_IntList(g["x"], None, dtype=torch.float64),
    lambda g: aten.var.correction(g["x"], [0, 2], correction=0, keepdim=True),
    lambda g: aten.var.dim(g["x"], [1]),
    lambda g: aten.var_mean.correction(g["x"], [2], correction=0),
]
