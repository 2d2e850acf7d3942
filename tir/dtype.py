"""Data types: a kind, a width in bits, and, in lowered code, a number of lanes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

import numpy as np

from .errors import IRError, known_names


class Kind(Enum):
    """What the bits of a value mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class DType:
    """The type of a value: `lanes` values of `bits` bits each; lanes is 1 outside lowered code."""

    kind: Kind
    bits: int
    lanes: int = 1

    def __str__(self) -> str:
        base = "bool" if self.kind is Kind.BOOL else f"{self.kind.value}{self.bits}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    @property
    def is_float(self) -> bool:
        """Whether the lanes are IEEE floating-point numbers."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether the lanes are signed or unsigned integers (bool is neither)."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_bool(self) -> bool:
        """Whether the lanes are truth values."""
        return self.kind is Kind.BOOL

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return self if self.lanes == 1 else replace(self, lanes=1)

    @property
    def bytes(self) -> int:
        """Bytes that one lane occupies in memory."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type of one lane."""
        return np.dtype(str(self.scalar))

    def with_lanes(self, lanes: int) -> DType:
        """The same element type with another number of lanes."""
        return replace(self, lanes=lanes)


NAMES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float32",
    "float64",
)

_PATTERN = re.compile(r"(bool|(u?int|float)(\d+))(?:x(\d+))?")


@cache
def _parse(text: str) -> DType:
    match = _PATTERN.fullmatch(text)
    if match is None or match[1] not in NAMES:
        raise IRError(
            f"dtype: unknown type '{text}'; expected one of {known_names(text, NAMES)}.",
            code="dtype-unknown",
        )
    lanes = int(match[4] or 1)
    return (
        DType(Kind.BOOL, 8, lanes)
        if match[1] == "bool"
        else DType(Kind(match[2]), int(match[3]), lanes)
    )


def dtype(like: DType | str | np.dtype[np.generic] | type) -> DType:
    """The DType that `like` names: a DType, a name such as "float32", or a NumPy type.

    Raises: IRError when tilewright has no such type.
    """
    if isinstance(like, DType):
        return like
    return _parse(like if isinstance(like, str) else np.dtype(like).name)


BOOL = dtype("bool")
INT32 = dtype("int32")
INT64 = dtype("int64")
UINT64 = dtype("uint64")
FLOAT32 = dtype("float32")
FLOAT64 = dtype("float64")
