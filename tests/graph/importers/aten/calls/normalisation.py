"""Calls that normalise."""

from __future__ import annotations

from .given import Calls, Given, aten, numbers

GIVEN: Given = {
    "x": numbers(2, 6, 4, 3),
    "w": numbers(6, seed=1, low=0.5, high=1.5),
    "b": numbers(6, seed=2),
    "r": numbers(3, seed=3, low=0.5, high=1.5),
    "v": numbers(6, seed=4, low=0.5, high=1.5),
}

bn = aten.batch_norm.default
CALLS: Calls = [
    lambda g: aten._native_batch_norm_legit_no_training.default(
        g["x"], g["w"], g["b"], g["b"], g["v"], 0.1, 1e-5
    )[0],
    lambda g: aten._weight_norm.default(g["x"], g["w"].view(1, 6, 1, 1), 1),
    lambda g: bn(g["x"], g["w"], g["b"], g["b"], g["v"], False, 0.1, 1e-5, True),
    lambda g: bn(g["x"], None, None, g["b"], g["v"], False, 0.1, 1e-3, True),
    lambda g: aten.group_norm.default(g["x"], 3, g["w"], g["b"]),
    lambda g: aten.group_norm.default(g["x"], 2),
    lambda g: aten.instance_norm.default(g["x"], g["w"], g["b"], None, None, True, 0.1, 1e-5, True),
    lambda g: aten.layer_norm.default(g["x"], [3], g["r"], g["r"]),
    lambda g: aten.layer_norm.default(g["x"], [4, 3]),
    lambda g: aten.native_group_norm.default(g["x"], g["w"], g["b"], 2, 6, 12, 3, 1e-5)[0],
    lambda g: aten.native_layer_norm.default(g["x"], [3], g["r"], None, 1e-5),
    lambda g: aten.rms_norm.default(g["x"], [3], g["r"], 1e-6),
    lambda g: aten.rms_norm.default(g["x"], [4, 3]),
]
