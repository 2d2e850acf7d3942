"""Data types: a kind, a width in bits, and, in lowered code, a number of lanes.

Some are storage types: they are loaded, stored and converted (what a conversion gives stands at
`Cast`), never computed with. float16 is NumPy's, all others that it lacks are those of ml_dtypes.
One of four bits or two takes a byte, whose low bits count, and whose others are 0 where one is
stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np

from .errors import IRError, known_names


class TypeKind(Enum):
    """What the bits of a value mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    BFLOAT = "bfloat"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT4_E2M1FN = "float4_e2m1fn"

    __hash__ = object.__hash__  # members are unique; Enum's own hashes the name every time


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """The type of a value: `lanes` values of `bits` bits each; lanes is 1 outside lowered code."""

    kind: TypeKind
    bits: int
    lanes: int = 1

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DType):
            return NotImplemented
        return (self.kind, self.bits, self.lanes) == (other.kind, other.bits, other.lanes)

    def __hash__(self) -> int:
        return hash((self.kind, self.bits, self.lanes))

    def __str__(self) -> str:
        base = self.kind.value if self.kind in _NAMED else f"{self.kind.value}{self.bits}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    __repr__ = __str__

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating-point numbers."""
        return self.kind in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether the lanes are signed or unsigned integers (bool is neither)."""
        return self.kind in _INTEGERS

    @property
    def is_bool(self) -> bool:
        """Whether the lanes are truth values."""
        return self.kind is _BOOL

    @property
    def is_storage(self) -> bool:
        """Whether the lanes are loaded, stored and converted, but never computed with as they are
        (`is_half` in float32, others not at all).
        """
        return self.bits < 8 or (self.kind in _FLOATS and self.bits < 32)

    @property
    def is_half(self) -> bool:
        """Whether it is a float of 16 bits, which definitions compute in float32."""
        return self.bits == 16 and self.lanes == 1 and self.kind in _FLOATS

    @property
    def scalar(self) -> DType:
        """The type of one lane."""
        return self.with_lanes(1)

    @property
    def bytes(self) -> int:
        """Bytes that one lane occupies in memory."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type of one lane."""
        if self.kind in _OF_ML_DTYPES or self.bits < 8:
            # here, because what computes in NumPy's own types, as most do, starts without it
            import ml_dtypes

            extended: type[np.generic] = getattr(ml_dtypes, str(self.scalar))
            return np.dtype(extended)
        return np.dtype(str(self.scalar))

    def with_lanes(self, lanes: int) -> DType:
        """The same element type with another number of lanes."""
        return self if lanes == self.lanes else DType(self.kind, self.bits, lanes)


_BITS_OF_SMALL = {
    TypeKind.FLOAT8_E4M3FN: 8,
    TypeKind.FLOAT8_E5M2: 8,
    TypeKind.FLOAT8_E4M3FNUZ: 8,
    TypeKind.FLOAT8_E5M2FNUZ: 8,
    TypeKind.FLOAT4_E2M1FN: 4,
}
_SMALL = frozenset(_BITS_OF_SMALL)
_NAMED = frozenset({TypeKind.BOOL}) | _SMALL  # kinds whose names end without the bits
_OF_ML_DTYPES = frozenset({TypeKind.BFLOAT}) | _SMALL
# kept, since to look up a member of an Enum takes longer than all the rest of a question
_BOOL = TypeKind.BOOL
_INTEGERS = frozenset({TypeKind.INT, TypeKind.UINT})
_FLOATS = frozenset({TypeKind.FLOAT, TypeKind.BFLOAT}) | _SMALL
_WIDTHS = {
    TypeKind.INT: (8, 16, 32, 64, 4, 2),
    TypeKind.UINT: (8, 16, 32, 64, 4, 2),
    TypeKind.FLOAT: (32, 64, 16),
}
_SCALARS = {
    str(kind): kind
    for kind in (
        DType(TypeKind.BOOL, 8),
        *(DType(kind, bits) for kind, widths in _WIDTHS.items() for bits in widths),
        DType(TypeKind.BFLOAT, 16),
        *(DType(kind, bits) for kind, bits in _BITS_OF_SMALL.items()),
    )
}
NAMES = tuple(_SCALARS)
_PATTERN = re.compile(rf"({'|'.join(NAMES)})(?:x(\d+))?")


@cache
def _parse(text: str) -> DType:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise IRError(
            f"dtype: unknown type '{text}'; expected one of {known_names(text, NAMES)}.",
            code="dtype-unknown",
        )
    return _SCALARS[match[1]].with_lanes(int(match[2] or 1))


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
FLOAT16 = dtype("float16")
BFLOAT16 = dtype("bfloat16")
FLOAT32 = dtype("float32")
FLOAT64 = dtype("float64")
