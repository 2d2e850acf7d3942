"""Calls that move elements or name them anew."""

from __future__ import annotations

import torch
from torch import Tensor

from .given import Calls, Given, aten, numbers, whole

GIVEN: Given = {
    "x": numbers(2, 3, 4),
    "m": numbers(4, 6, seed=1),
    "w": numbers(1, 8, 4, 4, seed=2),
    "i": whole(2, 3),
    "v": numbers(5, seed=3),
}


def _written(g: Given) -> Tensor:
    """A tensor that is written to, read by its own name behind it."""
    made: Tensor = aten.relu.default(g["x"])
    aten.add_.Tensor(made, 1.0)
    doubled: Tensor = aten.mul.Tensor(made, 2.0)
    return doubled


CALLS: Calls = [
    _written,
    lambda g: aten._unsafe_view.default(g["x"], [6, 4]),
    lambda g: aten.alias.default(g["x"]),
    lambda g: aten.cat.default([g["x"], g["x"]], 1),
    lambda g: aten.cat.default([g["i"], g["x"][:, :, 0]], -1),
    lambda g: aten.chunk.default(g["m"], 4, 1),
    lambda g: aten.clone.default(g["x"]),
    lambda g: aten.constant_pad_nd.default(g["x"], [1, 2, 0, 1], 0.5),
    lambda g: aten.constant_pad_nd.default(g["x"], [-1, 2]),
    lambda g: aten.contiguous.default(g["x"]),
    lambda g: aten.detach.default(g["x"]),
    lambda g: aten.dropout.default(g["x"], 0.5, False),
    lambda g: aten.expand.default(g["v"], [3, -1]),
    lambda g: aten.expand_as.default(g["v"], g["v"].reshape(1, 5)),
    lambda g: aten.feature_dropout.default(g["x"], 0.5, False),
    lambda g: aten.flatten.using_ints(g["x"], 1),
    lambda g: aten.flip.default(g["x"], [0, 2]),
    lambda g: aten.lift_fresh_copy.default(g["x"]),
    lambda g: aten.mT.default(g["x"]),
    lambda g: aten.ravel.default(g["x"]),
    lambda g: aten.reshape_as.default(g["x"], g["m"]),
    lambda g: aten.swapaxes.default(g["x"], 0, 2),
    lambda g: aten.tile.default(g["x"], [2, 1]),
    lambda g: aten.view_as.default(g["x"], g["m"]),
    lambda g: aten.movedim.intlist(g["x"], [0, 2], [1, 0]),
    lambda g: aten.narrow.default(g["m"], 1, 2, 3),
    lambda g: aten.numpy_T.default(g["x"]),
    lambda g: aten.pad.default(g["x"], [1, 1], "replicate"),
    lambda g: aten.pad.default(g["x"], [1, 2], "circular"),
    lambda g: aten.pad.default(g["x"], [1, 2, 3, 0], "constant", -1.0),
    lambda g: aten.permute.default(g["x"], [2, 0, -2]),
    lambda g: aten.pixel_shuffle.default(g["w"], 2),
    lambda g: aten.pixel_unshuffle.default(g["w"], 2),
    lambda g: aten.repeat.default(g["m"], [2, 1, 3]),
    lambda g: aten.repeat_interleave.self_int(g["x"], 2, 1),
    lambda g: aten.repeat_interleave.self_int(g["i"], 3),
    lambda g: aten.reshape.default(g["x"], [3, -1]),
    lambda g: aten.roll.default(g["x"], [1, -1], [0, 2]),
    lambda g: aten.roll.default(g["m"], [5]),
    lambda g: aten.select.int(g["x"], 1, -1),
    lambda g: aten.slice.Tensor(g["x"], 2, 1, 9223372036854775807, 2),
    lambda g: aten.slice.Tensor(g["x"], 1, -2),
    lambda g: aten.slice.Tensor(g["x"], 2, 0, -1),
    lambda g: aten.split.Tensor(g["v"], 2),
    lambda g: aten.split.sizes(g["v"], [1, 4]),
    lambda g: aten.split_with_sizes.default(g["v"], [3, 2]),
    lambda g: aten.squeeze.default(g["w"]),
    lambda g: aten.squeeze.dim(g["w"], 0),
    lambda g: aten.squeeze.dims(g["w"], [0, 1]),
    lambda g: aten.stack.default([g["m"], g["m"]], -1),
    lambda g: aten.t.default(g["m"]),
    lambda g: aten.transpose.int(g["x"], 0, -1),
    lambda g: aten.unbind.int(g["x"], 1),
    lambda g: aten.unflatten.int(g["m"], 1, [2, -1]),
    lambda g: aten.unfold.default(g["m"], 1, 3, 2),
    lambda g: aten.unsqueeze.default(g["x"], -1),
    lambda g: aten.view.default(g["x"], [2, 12]),
    lambda g: aten.add_.Tensor(aten.relu.default(g["x"]), 1.0),
    lambda g: aten.add_.Tensor(aten._to_copy.default(g["x"], dtype=torch.float16), g["x"]),
    lambda g: aten.diagonal.default(g["x"], 1, 1, 2),
]
