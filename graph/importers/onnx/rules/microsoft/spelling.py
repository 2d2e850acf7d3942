"""What several rules of this folder write: integers as constants, channels moved to their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....ops.movement import Transpose
from ...node import NodeReader


def whole(node: NodeReader, value: int) -> str:
    """An integer as a constant without axes."""
    return node.table("whole", np.array(value, np.int64))


def whole_list(node: NodeReader, values: Sequence[int]) -> str:
    """Integers as a constant of one axis."""
    return node.table("list", np.array(values, np.int64))


def channels_first(node: NodeReader, value: str) -> str:
    """[n, ..., c] -> [n, c, ...]"""
    rank = node.builder.types[value].rank
    return node.emit(Transpose((0, rank - 1, *range(1, rank - 1))), value)


def channels_last(node: NodeReader, value: str) -> str:
    """[n, c, ...] -> [n, ..., c]"""
    rank = node.builder.types[value].rank
    return node.emit(Transpose((0, *range(2, rank), 1)), value)
