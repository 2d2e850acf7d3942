"""Attention as its parts, which the passes make one operator of: heads, scores, masks, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ......tir.sizes import AnySize, closed, exact_quotient
from .....errors import ModelError
from .....ops import arithmetic, movement
from .....ops.functions import Tanh
from .....ops.matmul import MatMul
from .....ops.repetition import Expand
from .....ops.softmax import Softmax
from ...node import NodeReader
from .spelling import check_rank, number_like, numbers_up_to, sizes, whole_list

_IN_FRONT = (0, 2, 1, 3)  # [b, s, n, h] -> [b, n, s, h], and back


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of an attention: [batch, heads, rows, places]. query: a value that has their
    element type.
    """

    node: NodeReader
    query: str
    batch: AnySize
    heads: int
    rows: AnySize
    places: AnySize

    @property
    def shape(self) -> tuple[AnySize, AnySize, AnySize, AnySize]:
        """Of all of them."""
        return self.batch, self.heads, self.rows, self.places

    def row_numbers(self) -> str:
        """0, 1, 2, ... for the rows, in front of an axis for the places: [rows, 1]."""
        return self.node.spell(
            "Unsqueeze", numbers_up_to(self.node, self.rows), whole_list(self.node, (1,))
        )

    def place_numbers(self) -> str:
        """0, 1, 2, ... for the places."""
        return numbers_up_to(self.node, self.places)

    def hidden(self, condition: str, number: float | None = None) -> str:
        """A mask that is `number` where a condition holds, by default the least one, else 0."""
        if number is None:
            number = float(np.finfo(self.node.builder.types[self.query].dtype).min)
        zero = number_like(self.node, self.query, 0.0)
        return self.node.spell("Where", condition, number_like(self.node, self.query, number), zero)

    def causal(self, past: AnySize) -> str:
        """The mask where row 0 sees `past` places and the one behind them, each row one more."""
        last = self.node.spell("Add", self.row_numbers(), sizes(self.node, (past,)))
        return self.hidden(self.node.spell("Less", last, self.place_numbers()))


def split_heads(node: NodeReader, value: str, heads: int) -> str:
    """[b, s, n * h] -> [b, n, s, h]"""
    check_rank(node, value, 3)
    batch, places, width = node.builder.types[value].shape
    depth = head_depth(node, width, heads)
    parts = node.emit(movement.Reshape((batch, places, heads, depth)), value)
    return node.emit(movement.Transpose(_IN_FRONT), parts)


def head_depth(node: NodeReader, width: AnySize, heads: int) -> AnySize:
    """How large each of the heads is that lie side by side. Raises: ModelError."""
    depth = exact_quotient(width, heads) if heads > 0 else None
    if depth is None:
        raise ModelError(
            f"model: {node.title} has {heads} heads in {width} numbers; expected heads of equal "
            "size.",
            code="onnx-heads",
        )
    return depth


def merge_heads(node: NodeReader, value: str) -> str:
    """[b, n, s, h] -> [b, s, n * h]"""
    batch, heads, places, depth = node.builder.types[value].shape
    turned = node.emit(movement.Transpose(_IN_FRONT), value)
    return node.emit(movement.Reshape((batch, places, heads * depth)), turned)


def attended(
    node: NodeReader,
    parts: tuple[str, str, str],
    masks: Sequence[str],
    *,
    scale: float,
    softcap: float = 0.0,
    sink: str = "",
) -> tuple[str, str]:
    """softmax(softcap(scale * q @ k') + masks) @ v for [b, n, s, h] of each, and the scores that
    the softmax is taken of. Queries of several heads may share a head of keys and values.

    softcap(x): limit * tanh(x / limit), where the limit is not 0. sink: what counts in the sum of
    each row besides its scores, a number for each head; "" for none.
    """
    q, k, v = parts
    for part in parts:
        check_rank(node, part, 4)
    (batch, heads, rows, depth), shared = node.builder.types[q].shape, node.builder.types[k].shape
    groups = closed(exact_quotient(heads, shared[1]) or 0)
    q = node.emit(movement.Reshape((batch, shared[1], rows * groups, depth)), q)
    scores = node.emit(MatMul(), q, node.emit(movement.Transpose((0, 1, 3, 2)), k))
    scores = node.emit(arithmetic.Mul(), scores, number_like(node, q, scale))
    if softcap:
        limit = number_like(node, q, softcap)
        scores = node.emit(Tanh(), node.emit(arithmetic.Div(), scores, limit))
        scores = node.emit(arithmetic.Mul(), scores, limit)
    if masks:
        mask = masks[0]
        for other in masks[1:]:
            mask = node.emit(arithmetic.Add(), mask, other)
        check_rank(node, mask, 2, 3, 4)
        mask = _for_groups(node, mask, closed(shared[1]), groups, rows)
        scores = node.emit(arithmetic.Add(), scores, mask)
    weights = _weights(node, scores, sink, groups, rows)
    y = node.emit(MatMul(), weights, v)
    whole_heads = (batch, heads, rows)
    y = node.emit(movement.Reshape((*whole_heads, node.builder.types[v].shape[3])), y)
    scores = node.emit(movement.Reshape((*whole_heads, shared[2])), scores)
    return merge_heads(node, y), scores


def _for_groups(node: NodeReader, mask: str, shared: int, groups: int, rows: AnySize) -> str:
    """A mask of [b, n, s, t] as one of [b, shared, groups * s, t]."""
    shape = node.builder.types[mask].shape
    shape = (*(1,) * (4 - len(shape)), *shape)
    if groups == 1 or (shape[1] == 1 and shape[2] == 1):
        return mask
    batch, heads, _, places = shape
    own = (groups, shared) if heads != 1 else (1, 1)
    split = (batch, own[1], own[0], shape[2], places)
    parts = node.emit(movement.Reshape(split), mask)
    full = (batch, own[1], groups, rows, places)
    parts = parts if split == full else node.emit(Expand(full), parts)
    return node.emit(movement.Reshape((batch, own[1], rows * groups, places)), parts)


def _weights(node: NodeReader, scores: str, sink: str, groups: int, rows: AnySize) -> str:
    """The softmax of each row, in which a sink may have a part that nobody gets."""
    if not sink:
        return node.emit(Softmax((3,)), scores)
    batch, shared, _, places = node.builder.types[scores].shape
    column = node.emit(movement.Reshape((1, shared, groups, 1, 1)), sink)
    column = node.emit(Expand((batch, shared, groups, rows, 1)), column)
    column = node.emit(movement.Reshape((batch, shared, rows * groups, 1)), column)
    full = node.emit(Softmax((3,)), node.emit(movement.Concat(3), scores, column))
    ends = [sizes(node, (size,)) for size in (0, places)]
    return node.spell("Slice", full, *ends, whole_list(node, (3,)))
