"""Rule of RotaryEmbedding, which is ONNX's with places that may follow a first one."""

from __future__ import annotations

from ......tir.sizes import closed, exact_quotient
from .....errors import ModelError
from .....ops import arithmetic, movement
from .....ops.repetition import Expand
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result
from .spelling import check_rank, numbers_up_to


def _rotary(node: NodeReader) -> Result:
    if node.real("scale", 1.0) != 1.0:  # onnxruntime reads it and does nothing with it
        raise NotSupported(f"scale is {node.real('scale', 1.0):g}; known is 1")
    if node.flag("is_packed_batching"):
        raise NotSupported("is_packed_batching is 1")
    x, caches = node.type(0), (node.value(2), node.value(3))
    if x.rank not in (3, 4):
        raise ModelError(
            f"model: {node.title} has input {x}; expected [batch, places, numbers] or [batch, "
            "heads, places, numbers].",
            code="onnx-rotary-input",
        )
    for cache in caches:
        check_rank(node, cache, 2)
    heads = node.integer("num_heads", 0)
    if x.rank == 3 and not heads:
        heads = closed(exact_quotient(x.shape[2], node.type(2).shape[-1] * 2) or 0)
    places = node.value(1)
    if node.type(1).rank < 2:
        count = numbers_up_to(node, x.shape[x.rank - 2])
        places = node.emit(arithmetic.Add(), count, places)
        places = node.emit(Expand((x.shape[0], x.shape[x.rank - 2])), places)
    y = node.spell(
        "RotaryEmbedding",
        node.value(0),
        *caches,
        places,
        num_heads=heads,
        rotary_embedding_dim=node.integer("rotary_embedding_dim", 0),
        interleaved=node.integer("interleaved", 0),
    )
    return movement.Identity(), (y,)


RULES: dict[str, ImportRule] = {
    "com.microsoft.RotaryEmbedding": ImportRule(
        (1,),
        ("interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"),
        _rotary,
    ),
}
