"""Rule of RotaryEmbedding."""

from __future__ import annotations

from .....tir.sizes import AnySize, closed, exact_quotient
from ....ops.gathering import Gather
from ....ops.movement import Reshape
from ....ops.repetition import Expand
from ....ops.rotation import Rotation
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result


def _rotary(node: NodeReader) -> Result:
    x, interleaved = node.type(0), node.flag("interleaved")
    angles = [node.value(n) for n in (1, 2)]
    if node.has(3):
        angles = [node.emit(Gather(0), angle, node.value(3)) for angle in angles]
    value = node.value(0)
    if x.rank == 3:
        heads = node.integer("num_heads", 0)
        depth = exact_quotient(x.shape[2], heads) if heads > 0 else None
        if depth is None:
            raise NotSupported(f"num_heads is {heads}, of X {x}")
        value = node.emit(Reshape((*x.shape[:2], heads, depth)), value)
    elif x.rank != 4:
        raise NotSupported(f"X is {x}; expected three or four axes")
    batch, *_, own = node.builder.types[value].shape
    angles = [_for_each(node, angle, batch) for angle in angles]
    op = Rotation(
        node.integer("rotary_embedding_dim", 0) or closed(own), interleaved, outer=x.rank == 4
    )
    if x.rank == 4:
        return op, (value, *angles)
    return Reshape(x.shape), (node.emit(op, value, *angles),)


def _for_each(node: NodeReader, angles: str, batch: AnySize) -> str:
    """The angles of each element of the batch, where they are given for all of them."""
    shape = node.builder.types[angles].shape
    once = shape[:1] == (1,) and batch != 1
    return node.emit(Expand((batch, *shape[1:])), angles) if once else angles


RULES: dict[str, ImportRule] = {
    "RotaryEmbedding": ImportRule(
        (23,), ("interleaved", "num_heads", "rotary_embedding_dim"), _rotary
    ),
}
