"""What a model may ask of us: sizes are compared with these before memory is allocated.

The defaults know this machine: no value, and no model's constants together, may be larger than the
memory that the process may take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...runtime.machine.memory import process_memory
from ...tir import dtype as dtypes
from ...tir.sizes import largest
from ..errors import ModelError
from ..options import LARGEST_MODEL
from ..types import Shape, TensorType, numpy_type

_WHY = {
    "float8e8m0": "which has neither zero nor sign, so nothing can be padded with it",
    "float6e2m3": "whose elements lie across bytes",
    "float6e3m2": "whose elements lie across bytes",
}
TEXT = (
    "text is for the program that prepares the input: let it look up the words and give the model "
    "their numbers."
)
_MOST = 1 << 35  # bytes of a value, however much memory there is


def _memory() -> int:
    return min(_MOST, process_memory())


class UnsupportedType(Exception):
    """A value has a type that cannot be imported; all are collected. what: the value; reason: what
    is said of it; hint: what would help.
    """

    def __init__(self, what: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{what} {reason}")
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Upper bounds; all but the numbers of nodes, dimensions and characters are in bytes."""

    nodes: int = 200_000
    rank: int = 16
    name_characters: int = 1024  # of a name; what passes make of it is longer
    file_bytes: int = LARGEST_MODEL
    value_bytes: int = field(default_factory=_memory)  # of one value, stored or not
    constant_bytes: int = field(default_factory=_memory)  # of all stored constants together
    computed_bytes: int = 256 << 20  # of all constants that are computed while the model is read


@dataclass(slots=True)
class Account:
    """What one model has taken of its limits so far."""

    limits: ImportLimits
    stored: int = 0
    computed: int = 0

    def store(self, what: str, type_: TensorType) -> None:
        """Count a constant that the model holds. Raises: ModelError beyond the limit."""
        self.stored += type_.bytes
        if self.stored > self.limits.constant_bytes:
            raise ModelError(
                f"model: constants take more than {self.limits.constant_bytes} bytes together, at "
                f"{what}.",
                code="model-constant-bytes",
            )

    def compute(self, what: str, type_: TensorType) -> None:
        """Count a constant that is computed while the model is read, before it is.

        Raises: ModelError beyond the limit.
        """
        self.computed += type_.bytes
        if self.computed > self.limits.computed_bytes:
            raise ModelError(
                f"model: constants that are computed while the model is read take "
                f"{self.computed} bytes together, at {what} of type {type_}; expected at most "
                f"{self.limits.computed_bytes}.",
                code="model-computed-bytes",
            )


def told(dtype: str) -> str:
    """The name of an element type that is not read, and why, where it holds numbers."""
    return f"{dtype}, {_WHY[dtype]}" if dtype in _WHY else dtype


def checked_type(what: str, dtype: str, shape: Shape, limits: ImportLimits) -> TensorType:
    """The type of `what`.

    Raises: UnsupportedType for an unknown element type, ModelError for a negative size, or a limit
    exceeded.
    """
    if dtype not in dtypes.NAMES:
        known = ", ".join(dtypes.NAMES)
        reason = f"has element type {told(dtype)}; expected one of {known}"
        raise UnsupportedType(what, reason, TEXT if dtype == "string" else "")
    if len(shape) > limits.rank:
        raise ModelError(
            f"model: {what} has {len(shape)} dimensions; expected at most {limits.rank}.",
            code="model-rank",
        )
    if any(size < 0 for size in shape):
        raise ModelError(
            f"model: {what} has shape {list(shape)}; expected sizes of 0 or more.",
            code="model-shape",
        )
    # an axis without elements does not make the others small: they are counted, too
    size = math.prod(max(1, largest(extent)) for extent in shape) * numpy_type(dtype).itemsize
    if size > limits.value_bytes:
        raise ModelError(
            f"model: {what} of type {TensorType(dtype, shape)} takes {size} bytes; "
            f"expected at most {limits.value_bytes}.",
            code="model-bytes",
        )
    return TensorType(dtype, shape)
