"""Rules of attention whose heads all have keys and values of their own.

Masks of integers say what may be seen: the length of each row, its end and its start, a number for
each place, or one for each pair of a row and a place. What may not be seen gets mask_filter_value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ......tir.sizes import AnySize, closed
from .....errors import ModelError
from .....ops import arithmetic, movement
from .....ops.slicing import Slice
from ...node import NodeReader, NotSupported
from ..rule import Application, ImportRule, Result, Several
from .heads import Scores, attended, head_depth, split_heads
from .spelling import check_rank, whole_list

_FILTER = -10000.0  # what a mask adds to what may not be seen, where the node does not say it
_OWN = ("mask_filter_value", "num_heads", "scale", "unidirectional")


def _attention(node: NodeReader) -> Result:
    """Attention of what one product of the input makes: queries, keys and values side by side."""
    product = node.spell("MatMul", node.value(0), node.value(1))
    if node.has(2):
        product = node.emit(arithmetic.Add(), product, node.value(2))
    if node.has(6) or node.flag("past_present_share_buffer"):
        raise NotSupported("past and present share a buffer")
    return self_attention(node, product, mask=3, past=4, bias=5)


def self_attention(node: NodeReader, product: str, *, mask: int, past: int, bias: int) -> Result:
    """The attention, and its keys and values for the next call. mask, past, bias: positions of
    inputs; -1 where there is no such input.
    """
    if node.flag("do_rotary"):
        raise NotSupported("do_rotary is 1")
    heads, type_ = node.integer("num_heads"), node.builder.types[product]
    if type_.rank != 3:
        raise ModelError(
            f"model: {node.title} has a projection {type_}; expected [batch, places, sizes of q, k "
            "and v].",
            code="onnx-attention-input",
        )
    widths: Sequence[AnySize] = node.as_many("qkv_hidden_sizes", (0, 0, 0))
    if widths == (0, 0, 0):
        widths = (head_depth(node, type_.shape[2], 3),) * 3
    parts = side_by_side(node, product, widths)
    q, k, v = (split_heads(node, part, heads) for part in parts)
    if node.has(past):
        k, v = (_behind(node, _half(node, past, n), new) for n, new in enumerate((k, v)))
    y, _ = _masked(node, (q, k, v), mask, bias, past)
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return movement.Identity(), (y,)
    halves = [node.spell("Unsqueeze", part, whole_list(node, (0,))) for part in (k, v)]
    return Several(((movement.Identity(), (y,)), (movement.Concat(0), tuple(halves))))


def _multi_head(node: NodeReader) -> Result:
    if node.has(8) or node.has(9):
        raise NotSupported("past and present share a buffer")
    q, k, v = _operands(node, 3)
    return _with_present(node, (q, k, v), mask=4, bias=5, past=6)


def _decoder(node: NodeReader) -> Result:
    """MultiHeadAttention of one row of queries, its inputs in another order."""
    if node.flag("past_present_share_buffer") or node.has(7):
        raise NotSupported("past and present share a buffer")
    if node.has(8) or node.has(9):
        raise NotSupported("it has a beam_width")
    return _with_present(node, _operands(node, 10), mask=3, bias=4, past=5)


def _with_present(
    node: NodeReader, parts: tuple[str, str, str], *, mask: int, bias: int, past: int
) -> Result:
    """The attention, its keys and its values for the next call, and its scores."""
    q, k, v = parts
    if node.has(past):
        k = _behind(node, node.value(past), k)
        v = _behind(node, node.value(past + 1), v)
    y, scores = _masked(node, (q, k, v), mask, bias, past)
    if len(node.proto.output) > 3 and node.proto.output[3] and node.integer("output_qk", 1) != 1:
        raise NotSupported("its output qk is used, and output_qk is 0")
    results: list[Application] = [(movement.Identity(), (name,)) for name in (y, k, v, scores)]
    return Several(tuple(results))


def _operands(node: NodeReader, bias: int) -> tuple[str, str, str]:
    """Queries, keys and values as [b, n, s, h], from inputs in any of the layouts that they have
    there. bias: the position of the one that is added to them.
    """
    heads, query = node.integer("num_heads"), node.type(0)
    if query.rank == 5:
        q, k, v = _packed(node, node.value(0), 3)
    elif query.rank == 3 and node.has(1) and node.type(1).rank == 5:
        q, k, v = node.value(0), *_packed(node, node.value(1), 2)
    elif query.rank == 3 and not node.has(1):
        widths = (head_depth(node, query.shape[2], 3),) * 3
        q, k, v = side_by_side(node, node.value(0), widths)
    elif query.rank == 3:
        q, k, v = (node.value(n) for n in range(3))
    else:
        raise NotSupported(f"its query is {query}")
    parts = [q, k, v]
    for part in parts:
        check_rank(node, part, 3, 4)
    types = node.builder.types
    if node.has(bias):
        own_widths = [
            types[part].shape[2] if types[part].rank == 3 else heads * types[part].shape[3]
            for part in parts
        ]
        added = side_by_side(node, node.value(bias), own_widths)
        parts = [
            node.emit(arithmetic.Add(), part, own) if types[part].rank == 3 else part
            for part, own in zip(parts, added, strict=True)
        ]
    q, k, v = (split_heads(node, p, heads) if types[p].rank == 3 else p for p in parts)
    return q, k, v


def _packed(node: NodeReader, value: str, count: int) -> list[str]:
    """[b, s, n, count, h] -> `count` times [b, s, n * h]"""
    batch, places, heads, _, depth = node.builder.types[value].shape
    split = node.spell_all("Split", count, value, axis=3, num_outputs=count)
    shape = (batch, places, heads * depth)
    return [node.emit(movement.Reshape(shape), part) for part in split]


def side_by_side(node: NodeReader, value: str, widths: Sequence[AnySize]) -> list[str]:
    """The parts of the last axis that have these widths. Raises: ModelError."""
    type_ = node.builder.types[value]
    if type_.shape[-1:] != (sum(widths[1:], widths[0]),):
        raise ModelError(
            f"model: {node.title} has {type_} for parts of {', '.join(map(str, widths))} numbers; "
            "expected as many as these have together.",
            code="onnx-attention-parts",
        )
    found = list[str]()
    start: AnySize = 0
    for width in widths:
        starts = (*(0 for _ in type_.shape[1:]), start)
        shape = (*type_.shape[:-1], width)
        found.append(node.emit(Slice(starts, shape, (1,) * type_.rank), value))
        start = start + width
    return found


def _half(node: NodeReader, past: int, number: int) -> str:
    """The keys, or the values, of [2, b, n, s, h]."""
    check_rank(node, node.value(past), 5)
    shape = node.type(past).shape
    starts, sizes = (number, *(0 for _ in shape[1:])), (1, *shape[1:])
    part = node.emit(Slice(starts, sizes, (1,) * len(shape)), node.value(past))
    return node.emit(movement.Reshape(shape[1:]), part)


def _behind(node: NodeReader, past: str, new: str) -> str:
    return node.emit(movement.Concat(2), past, new)


def _masked(
    node: NodeReader, parts: tuple[str, str, str], mask: int, bias: int, past: int
) -> tuple[str, str]:
    """The attention with the masks that the node has, and its scores."""
    q, k, _ = parts
    check_rank(node, k, 4)
    batch, heads, rows, depth = node.builder.types[q].shape
    places = node.builder.types[k].shape[2]
    scores = Scores(node, q, batch, closed(heads), rows, places)
    masks = [_hidden_places(scores, mask)] if node.has(mask) else []
    if node.flag("unidirectional"):
        before = node.type(past).shape[-2] if node.has(past) else 0
        if before + rows != places:
            raise NotSupported(f"unidirectional is 1 for scores {_listed(scores)}")
        masks.append(scores.causal(before))
    if node.has(bias):
        masks.append(node.value(bias))
    scale = node.real("scale", 0.0) or 1 / math.sqrt(closed(depth))
    return attended(node, parts, masks, scale=scale)


def _hidden_places(scores: Scores, position: int) -> str:
    """The mask that an input of integers is, aligned with the scores."""
    node = scores.node
    value, shape = node.value(position), node.type(position).shape
    batch, _, rows, places = scores.shape
    zero = node.number(0, position)
    match len(shape):
        case 1 if shape == (batch,):
            unseen = node.spell(
                "GreaterOrEqual", _place_numbers(scores, value), _rowed(node, value)
            )
        case 1 if shape == (2 * batch,):
            end, start = (node.emit(Slice((first,), (batch,), (1,)), value) for first in (0, batch))
            numbers = _place_numbers(scores, value)
            behind = node.spell("GreaterOrEqual", numbers, _rowed(node, end))
            unseen = node.spell("Or", behind, node.spell("Less", numbers, _rowed(node, start)))
        case 2 if shape == (batch, places):
            unseen = node.spell("LessOrEqual", _reshaped(node, value, (batch, 1, 1, places)), zero)
        case 3 if shape == (batch, rows, places):
            split = _reshaped(node, value, (batch, 1, rows, places))
            unseen = node.spell("LessOrEqual", split, zero)
        case 4 if shape[:2] == (batch, 1):
            starts = (0, 0, places - rows, 0)
            part = node.emit(Slice(starts, (batch, 1, rows, places), (1,) * 4), value)
            unseen = node.spell("LessOrEqual", part, zero)
        case _:
            raise NotSupported(f"its mask is {node.type(position)} for scores {_listed(scores)}")
    return scores.hidden(unseen, node.real("mask_filter_value", _FILTER))


def _place_numbers(scores: Scores, like: str) -> str:
    return scores.node.spell("CastLike", scores.place_numbers(), like)


def _rowed(node: NodeReader, value: str) -> str:
    """[b] -> [b, 1, 1, 1]"""
    return _reshaped(node, value, (node.builder.types[value].shape[0], 1, 1, 1))


def _reshaped(node: NodeReader, value: str, shape: tuple[AnySize, ...]) -> str:
    return node.emit(movement.Reshape(shape), value)


def _listed(scores: Scores) -> str:
    return f"[{', '.join(map(str, scores.shape))}]"


RULES: dict[str, ImportRule] = {
    "com.microsoft.Attention": ImportRule(
        (1,),
        (
            *_OWN,
            "do_rotary",
            "past_present_share_buffer",
            "qkv_hidden_sizes",
            "rotary_embedding_dim",
        ),
        _attention,
        outputs=2,
    ),
    "com.microsoft.DecoderMaskedMultiHeadAttention": ImportRule(
        (1,), (*_OWN, "output_qk", "past_present_share_buffer"), _decoder, outputs=4
    ),
    "com.microsoft.MultiHeadAttention": ImportRule((1,), _OWN, _multi_head, outputs=4),
}
