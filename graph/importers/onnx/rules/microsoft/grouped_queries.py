"""Rule of GroupQueryAttention: heads of queries share heads of keys and values, which a cache
keeps from one call to the next.

Of each element of the batch, seqlens_k says how many places its cache has after the call, less one.
The new ones are the last of these, or all of them where there are fewer than new ones: then the new
ones are followed by padding, whose rows mean nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ......tir.sizes import AnySize, closed, greatest
from .....ops import arithmetic, movement
from .....ops.functions import Cast
from .....ops.layer_norm import RMSNormalization
from .....ops.scattering import CacheUpdate
from .....ops.slicing import Pad, Slice
from ...node import NodeReader, NotSupported
from ..data_sizes import size_within
from ..rule import Application, ImportRule, Result, Several
from .attention import side_by_side
from .heads import Scores, attended, head_depth, split_heads
from .spelling import check_rank, number_like, numbers_up_to, whole, whole_list

_REFUSED = {12: "k_scale", 13: "v_scale", 16: "query_seqlens"}  # inputs by position
_PLAIN = "NONE"  # of k_quant_type and v_quant_type: the cache has the type of the keys


@dataclass(frozen=True, slots=True)
class _Cached:
    """A node with its sizes. places: of the batch after the call, at most; first: where the new
    places of each element begin, int64[batch].
    """

    node: NodeReader
    heads: int
    shared: int
    batch: AnySize
    rows: AnySize
    places: AnySize
    first: str

    def row_places(self) -> str:
        """Where the new places stand: int64[batch, rows]."""
        node = self.node
        column = node.emit(movement.Reshape((self.batch, 1)), self.first)
        return node.emit(arithmetic.Add(), column, numbers_up_to(node, self.rows))

    def present(self, position: int, new: str) -> str:
        """The cache of keys, or of values, with the new ones."""
        node = self.node
        if not node.has(position):
            return new
        check_rank(node, node.value(position), 4)
        past = node.type(position).shape
        size = greatest(past[2], self.places)
        after = (0, 0, closed(size - past[2]), 0)
        value = node.value(position)
        if any(after):
            value = node.emit(Pad((0, 0, 0, 0), after), value)
        return node.emit(CacheUpdate(2), value, new, self.first)

    def seen(self, cache: str) -> str:
        """The places of a cache that the batch has, [batch, shared, places, depth]."""
        shape = self.node.builder.types[cache].shape
        if shape[2] == self.places:
            return cache
        part = (*shape[:2], self.places, shape[3])
        return self.node.emit(Slice((0, 0, 0, 0), part, (1,) * 4), cache)

    def mask(self, query: str) -> str:
        """What hides the places behind each row's own, or behind the last one of its element of
        the batch, and those before its window.
        """
        node, window = self.node, self.node.integer("local_window_size", -1)
        scores = Scores(node, query, self.batch, self.heads, self.rows, self.places)
        own = node.emit(movement.Reshape((self.batch, 1, self.rows, 1)), self.row_places())
        if not node.integer("causal", 1):
            count = node.emit(Cast("int64"), node.value(5))
            own = node.emit(movement.Reshape((self.batch, 1, 1, 1)), count)
        numbers = scores.place_numbers()
        unseen = node.spell("Less", own, numbers)
        if window > 0:
            start = node.spell("Sub", own, whole(node, window))
            unseen = node.spell("Or", unseen, node.spell("LessOrEqual", numbers, start))
        return scores.hidden(unseen)


def _grouped(node: NodeReader) -> Result:
    _check_known(node)
    heads, shared = node.integer("num_heads"), node.integer("kv_num_heads")
    check_rank(node, node.value(0), 3)
    check_rank(node, node.value(5), 1)
    q, k, v = _operands(node, heads, shared)
    batch, _, rows, depth = node.builder.types[q].shape
    cached = _Cached(node, heads, shared, batch, rows, _places(node), _first(node, rows))
    if node.has(14) and node.has(15):
        own = node.real("qk_norm_epsilon", 1e-6)
        q = _normed(node, q, 14, node.real("q_norm_epsilon", own))
        k = _normed(node, k, 15, node.real("k_norm_epsilon", own))
    if node.flag("do_rotary"):
        places = node.value(9) if node.has(9) else cached.row_places()
        q, k = _rotated(node, q, places), _rotated(node, k, places)
    keys, values = cached.present(3, k), cached.present(4, v)
    masks = [cached.mask(q)]
    if node.has(10):
        masks.append(node.value(10))
    y, _ = attended(
        node,
        (q, cached.seen(keys), cached.seen(values)),
        masks,
        scale=node.real("scale", 0.0) or 1 / math.sqrt(closed(depth)),
        softcap=node.real("softcap", 0.0),
        sink=_sink(node, q, heads),
    )
    results: list[Application] = [(movement.Identity(), (name,)) for name in (y, keys, values)]
    return Several(tuple(results))


def _places(node: NodeReader) -> AnySize:
    """How many places the batch has after the call, at most. Where data decide it, the cache is one
    buffer for all calls (past_present_share_buffer), and a run refuses more than it has.
    """
    total, builder = node.value(6), node.builder
    if not node.has(3) or total in builder.constants or total in builder.sizes:
        return node.size(6)
    check_rank(node, node.value(3), 4)
    number = node.emit(Cast("int64"), node.emit(movement.Reshape(()), total))
    return size_within(node, number, closed(node.type(3).shape[2]), "total_sequence_length")


def _check_known(node: NodeReader) -> None:
    """Refuse what has a meaning that is not written here."""
    for position, name in _REFUSED.items():
        if node.has(position):
            raise NotSupported(f"it has the input {name}")
    for name in ("k_quant_type", "v_quant_type"):
        if node.text(name, _PLAIN) != _PLAIN:
            raise NotSupported(f"{name} is '{node.text(name, _PLAIN)}'; known is '{_PLAIN}'")
    if node.flag("sliding_window_cache"):
        raise NotSupported("sliding_window_cache is 1")


def _operands(node: NodeReader, heads: int, shared: int) -> tuple[str, str, str]:
    """Queries, keys and values as [b, n, s, h]."""
    if node.has(1):
        parts = [node.value(n) for n in range(3)]
    else:
        depth = head_depth(node, node.type(0).shape[-1], heads + 2 * shared)
        widths = (heads * depth, shared * depth, shared * depth)
        parts = side_by_side(node, node.value(0), widths)
    q, k, v = (split_heads(node, p, n) for p, n in zip(parts, (heads, shared, shared), strict=True))
    return q, k, v


def _first(node: NodeReader, rows: AnySize) -> str:
    """Where the new places begin: max(seqlens_k + 1 - rows, 0) for each element of the batch."""
    count = node.emit(Cast("int64"), node.value(5))
    before = node.spell("Add", count, whole(node, 1 - closed(rows)))
    return node.spell("Max", before, whole(node, 0))


def _normed(node: NodeReader, value: str, scale: int, epsilon: float) -> str:
    return node.emit(RMSNormalization(3, epsilon), value, node.value(scale))


def _rotated(node: NodeReader, value: str, places: str) -> str:
    """RotaryEmbedding of the first numbers of each head, as many as the caches have."""
    check_rank(node, node.value(7), 2)
    shape = node.builder.types[value].shape
    width = 2 * closed(node.type(7).shape[-1])
    return node.spell(
        "RotaryEmbedding",
        value,
        node.value(7),
        node.value(8),
        places,
        interleaved=node.integer("rotary_interleaved", 0),
        rotary_embedding_dim=0 if width == shape[3] else width,
    )


def _sink(node: NodeReader, query: str, heads: int) -> str:
    """What takes a part of each row's weights: a number for each head, "" for none."""
    if node.has(11):
        return node.value(11)
    if node.integer("smooth_softmax", -1) != 1:
        return ""
    return node.spell("Expand", number_like(node, query, 0.0), whole_list(node, (heads,)))


RULES: dict[str, ImportRule] = {
    "com.microsoft.GroupQueryAttention": ImportRule(
        (1,),
        (
            "causal",
            "do_rotary",
            "k_norm_epsilon",
            "k_quant_type",
            "kv_cache_bit_width",
            "kv_num_heads",
            "local_window_size",
            "num_heads",
            "q_norm_epsilon",
            "qk_norm_epsilon",
            "qk_output",
            "rotary_interleaved",
            "scale",
            "sliding_window_cache",
            "smooth_softmax",
            "softcap",
            "v_quant_type",
        ),
        _grouped,
        outputs=3,
    ),
}
