"""Nodes with an input of another shape, or without it, are read or refused, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    drawn,
    model_of,
    random,
)
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.types import Array

X, GAMMA = random(1, 2, 3, 8), random(2, 8)
HEADS, SCALE, ZERO = {"num_heads": 2}, np.array(0.5, np.float32), np.array(3, np.uint8)
NODES = (
    Contributed("BiasSoftmax", (X, X), {"axis": 1, "is_inner_broadcast": 1}),
    Contributed("FusedMatMul", (X, X), {"transB": 1, "transBatchA": 1, "transBatchB": 1}),
    Contributed("SkipLayerNormalization", (X, X, GAMMA, GAMMA, GAMMA)),
    Contributed("GroupNorm", (X, GAMMA, GAMMA), {"groups": 2, "activation": 1}),
    Contributed("SkipGroupNorm", (X, GAMMA, GAMMA, X, GAMMA), {"groups": 2, "activation": 0}),
    Contributed(
        "Attention", (X, random(3, 8, 24), random(4, 24), np.array([2, 3], np.int32)), HEADS
    ),
    Contributed("MultiHeadAttention", (X, X, X, random(4, 24)), HEADS),
    Contributed(
        "RotaryEmbedding", (X, np.array([[0, 1, 2]] * 2), random(5, 9, 2), random(6, 9, 2))
    ),
    Contributed(
        "GroupQueryAttention",
        (
            *(X, random(7, 2, 3, 4), random(8, 2, 3, 4), random(9, 2, 1, 5, 4)),
            *(random(10, 2, 1, 5, 4), np.array([4, 4], np.int32), np.array(5, np.int32)),
        ),
        {**HEADS, "kv_num_heads": 1},
        (6,),
        3,
    ),
    Contributed("QLinearAdd", (drawn(1, "uint8", 2, 3), SCALE, ZERO) * 2 + (SCALE, ZERO)),
    Contributed("DynamicQuantizeMatMul", (X, drawn(1, "int8", 8, 5), SCALE)),
    Contributed("NhwcConv", (random(11, 1, 5, 5, 3), random(12, 4, 3, 3, 3))),
    Contributed(
        "MatMulNBits",
        (random(13, 2, 32), drawn(1, "uint8", 5, 2, 8), random(14, 5, 2), drawn(2, "uint8", 5, 1)),
        {"K": 32, "N": 5, "block_size": 16},
        (1, 2, 3),
    ),
    Contributed(
        "GatherBlockQuantized",
        (drawn(1, "uint8", 7, 24), np.array([1, 0]), random(15, 7, 3)),
        {"block_size": 16},
        (0, 2),
    ),
)


def damaged(array: Array) -> Iterator[Array | None]:
    """None, and arrays of other shapes with the same elements or some of them."""
    yield from (None, array[None], np.zeros((), array.dtype))
    if array.ndim:
        yield from (array[0], array.reshape(-1), array[:0], np.concatenate([array, array[:1]]))


@pytest.mark.parametrize("node", NODES, ids=lambda node: str(node.operator))
def test_damage_is_refused_as_an_error_of_the_model(node: Contributed) -> None:
    refused = 0
    for position, array in enumerate(node.inputs):
        for other in damaged(array) if array is not None else ():
            inputs = (*node.inputs[:position], other, *node.inputs[position + 1 :])
            try:
                import_onnx(model_of((replace(node, inputs=inputs),)))
            except ModelError:
                refused += 1
    assert refused
