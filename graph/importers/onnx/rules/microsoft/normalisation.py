"""Rules of normalisation, of sums and of embeddings."""

from __future__ import annotations

from .....errors import ModelError
from .....ops import arithmetic, layer_norm, movement
from .....ops.activation import Sigmoid
from .....ops.functions import Cast
from ...node import NodeReader, NotSupported
from ..rule import Application, ImportRule, Result, Several
from .spelling import channels_first, channels_last, whole, whole_list

_EPSILON = 1e-12  # of SkipLayerNormalization, where the node does not say another


def _skip_layer_norm(node: NodeReader) -> Result:
    affine = (node.value(2), node.value(3)) if node.has(3) else (node.value(2),)
    total = _sum_with_skip(node, 4)
    norm = layer_norm.LayerNormalization(node.type(0).rank - 1, node.real("epsilon", _EPSILON))
    return _with_sum(node, (norm, (total, *affine)), total)


def _skip_rms_norm(node: NodeReader) -> Result:
    total = _sum_with_skip(node, 3)
    norm = layer_norm.RMSNormalization(node.type(0).rank - 1, node.real("epsilon", _EPSILON))
    return _with_sum(node, (norm, (total, node.value(2))), total)


def _sum_with_skip(node: NodeReader, bias: int) -> str:
    """input + bias + skip, in the shape of the input: a bias belongs to the product before it."""
    x, skip, total = node.type(0), node.type(1), node.value(0)
    if node.has(bias):
        total = node.emit(arithmetic.Add(), total, node.value(bias))
    total = node.emit(arithmetic.Add(), total, node.value(1))
    if not x.rank or node.builder.types[total].shape != x.shape:
        raise ModelError(
            f"model: {node.title} has input {x} and skip {skip}; expected a skip that broadcasts "
            "to the input.",
            code="onnx-skip",
        )
    return total


def _with_sum(node: NodeReader, norm: Application, total: str) -> Result:
    """The outputs of a node whose first is `norm` and whose fourth is the sum."""
    if saved := [name for name in node.proto.output[1:3] if name]:
        raise NotSupported(f"its output '{saved[0]}', a statistic for training, is used")
    kept: Application = movement.Identity(), (total,)
    return Several((norm, kept, kept, kept))


def _embedding(node: NodeReader) -> Result:
    """The norm of the sum of the embeddings of words, positions and segments; the number of words
    of each row, which is 0 where no mask says it; that sum.
    """
    places = node.value(8) if node.has(8) else _places(node)
    total = node.spell("Add", _rows(node, 2, node.value(0)), _rows(node, 3, places))
    if node.has(1) and node.has(4):
        total = node.spell("Add", total, _rows(node, 4, node.value(1)))
    op = layer_norm.LayerNormalization(2, node.real("epsilon", _EPSILON))
    norm: Application = op, (total, node.value(5), node.value(6))
    kept: Application = movement.Identity(), (total,)
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return Several((norm, kept, kept))
    return Several((norm, (movement.Identity(), (_word_counts(node),)), kept))


def _rows(node: NodeReader, table: int, ids: str) -> str:
    return node.spell("Gather", node.value(table), ids, axis=0)


def _places(node: NodeReader) -> str:
    """0, 1, 2, ... for the words of a row."""
    length = node.spell("Squeeze", node.spell("Shape", node.value(0), start=1, end=2))
    return node.spell("Range", whole(node, 0), length, whole(node, 1))


def _word_counts(node: NodeReader) -> str:
    """How many of the mask's numbers are 1, in each row."""
    marks = node.emit(arithmetic.Mul(), node.value(0), node.number(0))
    if node.has(7):
        ones = node.spell("Equal", node.value(7), node.number(1, 7))
        marks = node.spell("CastLike", ones, marks)
    return node.spell("ReduceSum", marks, whole_list(node, (1,)), keepdims=0)


def _group_norm(node: NodeReader) -> Result:
    return _of_groups(node, node.value(0), node.integer("channels_last", 1) != 0)


def _skip_group_norm(node: NodeReader) -> Result:
    """The GroupNorm of x + skip + bias, and that sum. A skip of two axes has a number for each
    channel of an image.
    """
    last, rank = node.integer("channels_last", 1) != 0, node.type(0).rank
    skip, total = node.type(3), node.value(3)
    if skip.rank == 2:
        ones = (1,) * (rank - 2)
        shape = (skip.shape[0], *ones, skip.shape[1]) if last else (*skip.shape, *ones)
        total = node.emit(movement.Reshape(shape), total)
    total = node.emit(arithmetic.Add(), node.value(0), total)
    if node.has(4):
        bias = node.value(4)
        if not last:
            bias = node.emit(movement.Reshape((*node.type(4).shape, *(1,) * (rank - 2))), bias)
        total = node.emit(arithmetic.Add(), total, bias)
    return Several((_of_groups(node, total, last), (movement.Identity(), (total,))))


def _of_groups(node: NodeReader, value: str, last: bool) -> Application:
    """The normalisation of groups of channels, and an activation. last: whether channels are."""
    kind, dtype = node.integer("activation"), node.type(0).dtype
    if kind not in (0, 1):
        raise NotSupported(f"activation is {kind}; known are 0 for none and 1 for SiLU")
    affine = [
        node.value(n) if node.type(n).dtype == dtype else node.emit(Cast(dtype), node.value(n))
        for n in (1, 2)
    ]
    data = channels_first(node, value) if last else value
    groups, epsilon = node.integer("groups"), node.real("epsilon", 1e-5)
    y = node.spell("GroupNormalization", data, *affine, num_groups=groups, epsilon=epsilon)
    if kind == 1:
        y = node.emit(arithmetic.Mul(), y, node.emit(Sigmoid(), y))
    return movement.Identity(), (channels_last(node, y) if last else y,)


_GROUPS = ("activation", "channels_last", "epsilon", "groups")
RULES: dict[str, ImportRule] = {
    "com.microsoft.EmbedLayerNormalization": ImportRule(
        (1,), ("epsilon", "mask_index_type"), _embedding, outputs=3
    ),
    "com.microsoft.GroupNorm": ImportRule((1,), _GROUPS, _group_norm),
    "com.microsoft.SkipGroupNorm": ImportRule((1,), _GROUPS, _skip_group_norm, outputs=2),
    "com.microsoft.SkipLayerNormalization": ImportRule(
        (1,), ("epsilon",), _skip_layer_norm, outputs=4
    ),
    "com.microsoft.SkipSimplifiedLayerNormalization": ImportRule(
        (1,), ("epsilon",), _skip_rms_norm, outputs=4
    ),
}
