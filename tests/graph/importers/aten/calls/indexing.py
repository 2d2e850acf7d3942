"""Calls that choose, write or order by data."""

from __future__ import annotations

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "x": numbers(4, 5, 6),
    "m": numbers(5, 6, seed=1),
    "i": whole(2, 3, low=0, high=4),
    "j": whole(3, low=0, high=5, seed=1),
    "e": whole(3, 6, low=0, high=5, seed=2),
    "u": numbers(3, 6, seed=3),
    "b": whole(5, 6, low=0, high=2).bool(),
}

CALLS: Calls = [
    lambda g: aten.argsort.default(g["m"], -1, True),
    lambda g: aten.embedding.default(g["m"], g["i"]),
    lambda g: aten.gather.default(g["m"], 0, g["e"]),
    lambda g: aten.index.Tensor(g["x"], [g["i"]]),
    lambda g: aten.index.Tensor(g["x"], [None, g["j"]]),
    lambda g: aten.index.Tensor(g["x"], [g["i"], g["j"]]),
    lambda g: aten.index.Tensor(g["x"], [None, g["i"], g["j"]]),
    lambda g: aten.index.Tensor(g["x"], [g["i"], None, g["j"]]),
    lambda g: aten.index_put.default(g["m"], [g["j"]], g["u"], True),
    lambda g: aten.index_put.default(g["m"], [g["j"], g["j"]], g["u"][0, 0]),
    lambda g: aten.index_put.default(g["m"], [g["b"]], g["u"][0, 0]),
    lambda g: aten.index_put.default(g["x"], [None, g["j"]], g["u"], True),
    lambda g: aten.index_put.default(g["x"], [None, g["i"], g["j"]], g["u"][:2, :3], True),
    lambda g: aten.index_put.default(g["x"], [None, None, g["j"]], g["u"][0, 0]),
    lambda g: aten.index_select.default(g["x"], 1, g["j"]),
    lambda g: aten.index_add.default(g["m"], 0, g["j"], g["u"], alpha=2),
    lambda g: aten.take_along_dim.default(g["m"], g["e"], 0),
    lambda g: aten.one_hot.default(g["i"], 4),
    lambda g: aten.scatter.src(g["m"], 1, g["e"], g["u"]),
    lambda g: aten.scatter.value(g["m"], 0, g["e"], 9.0),
    lambda g: aten.scatter_add.default(g["m"], 0, g["e"], g["u"]),
    lambda g: aten.scatter_reduce.two(g["m"], 0, g["e"], g["u"], "amax"),
    lambda g: aten.select_scatter.default(g["m"], g["u"][0], 0, -2),
    lambda g: aten.slice_scatter.default(g["m"], g["u"], 0, 1, 4),
    lambda g: aten.sort.default(g["m"], 0),
    lambda g: aten.sort.stable(g["i"], stable=True, dim=-1, descending=True),
    lambda g: aten.topk.default(g["m"], 3),
    lambda g: aten.topk.default(g["m"], 2, 0, False),
    lambda g: aten.tril.default(g["m"], -1),
    lambda g: aten.triu.default(g["m"], 1),
]
