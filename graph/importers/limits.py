"""What a model may ask of us: sizes are compared with these before memory is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...tir import dtype as dtypes
from ..errors import ModelError
from ..types import TensorType

# the operators compute with each of them
_STORED = ("float16",)  # of the types that are stored and not computed in, what we read
_ELEMENTS = tuple(n for n in dtypes.NAMES if not dtypes.dtype(n).is_storage or n in _STORED)


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; all but the numbers of nodes and dimensions are in bytes."""

    nodes: int = 200_000
    rank: int = 16
    file_bytes: int = (1 << 31) - 1  # protobuf cannot hold more
    value_bytes: int = 1 << 35  # of one value, stored or not
    constant_bytes: int = 1 << 35  # of all stored constants together


def checked_type(what: str, dtype: str, shape: tuple[int, ...], limits: Limits) -> TensorType:
    """The type of `what`.

    Raises: ModelError for an unknown element type, a negative size, or a limit exceeded.
    """
    if dtype not in _ELEMENTS:
        raise ModelError(
            f"model: {what} has element type {dtype}; expected one of {', '.join(_ELEMENTS)}.",
            code="model-dtype",
        )
    if len(shape) > limits.rank:
        raise ModelError(
            f"model: {what} has {len(shape)} dimensions; expected at most {limits.rank}.",
            code="model-rank",
        )
    if min(shape, default=0) < 0:
        raise ModelError(
            f"model: {what} has shape {list(shape)}; expected sizes of 0 or more.",
            code="model-shape",
        )
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > limits.value_bytes:
        raise ModelError(
            f"model: {what} of type {TensorType(dtype, shape)} takes {size} bytes; "
            f"expected at most {limits.value_bytes}.",
            code="model-bytes",
        )
    return TensorType(dtype, shape)
