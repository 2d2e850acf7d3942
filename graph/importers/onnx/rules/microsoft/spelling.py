"""What several rules of this folder write: integers as constants, channels moved to their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ......tir.sizes import AnySize
from .....errors import ModelError
from .....ops.movement import Transpose
from .....types import Splat
from ...node import NodeReader, node_name


def check_rank(node: NodeReader, value: str, *ranks: int) -> None:
    """Refuse a value that has another number of axes."""
    type_ = node.builder.types[value]
    if type_.rank not in ranks:
        expected = " or ".join(map(str, ranks))
        raise ModelError(
            f"model: {node.title} reads '{value}' of type {type_}; expected {expected} axes.",
            code="onnx-rank",
        )


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


def sizes(node: NodeReader, values: Sequence[AnySize]) -> str:
    """Sizes, some of which calls may decide, as a value of one axis."""
    name = node.builder.fresh(f"{node_name(node.proto)}.sizes")
    node.define_sizes(name, np.array(values, dtype=object))
    return name


def number_like(node: NodeReader, value: str, number: float) -> str:
    """A constant without axes that has the element type of a value."""
    dtype = node.builder.types[value].dtype
    return node.table("number", Splat(np.asarray(number).astype(dtype).item(), dtype, ()))


def numbers_up_to(node: NodeReader, size: AnySize) -> str:
    """0, 1, 2, ..., so many of them."""
    count = node.spell("Squeeze", sizes(node, (size,)))
    return node.spell("Range", whole(node, 0), count, whole(node, 1))
