"""Scalar expressions as CUDA C.

Indices are `int`: 32-bit arithmetic is what a GPU is fast at, and every array has fewer than 2**31
elements. Where the value of an index expression may be larger, it is computed in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...tir.analysis.bounds import bounds
from ...tir.buffer import Buffer
from ...tir.dtype import INT64, DType
from ...tir.errors import TargetError
from ...tir.expr import Add, Binary, Compare, Const, Expr, Mul, Sub
from ...tir.lowered import Reinterpret
from ..lanes import access
from ..text.literals import literal
from ..text.scalars import ATOM, UNARY, Scalars

TYPES = {
    "bool": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
_STORAGE = {1: "unsigned char", 2: "unsigned short"}
_BITS = {  # a float of so many bits and the integer of its bits: to, of
    32: ("__int_as_float", "__float_as_int"),
    64: ("__longlong_as_double", "__double_as_longlong"),
}
_SPECIAL = {
    (32, "inf"): "__int_as_float(0x7f800000)",
    (32, "nan"): "__int_as_float(0x7fc00000)",
    (64, "inf"): "__longlong_as_double(0x7ff0000000000000)",
    (64, "nan"): "__longlong_as_double(0x7ff8000000000000)",
}
PIECE_BYTES = 16  # that stay together when rows are swizzled
BANK_PIECES = 8  # that the banks of shared memory hold beside each other
INT32_RANGE = (-(2**31), 2**31 - 1)


def cuda_type(dtype: DType) -> str:
    """The type of one element in memory; of a storage type, that of its bits."""
    return _STORAGE[dtype.bytes] if dtype.is_storage else TYPES[str(dtype.scalar)]


class CudaScalars(Scalars):
    """Writes scalar expressions with the names and functions of CUDA."""

    def kind(self, dtype: DType) -> str:
        return cuda_type(dtype)

    def kind_of(self, expr: Expr) -> str:
        return "int" if self._is_index(expr) and self._fits(expr) else self.kind(expr.dtype)

    def number(self, constant: Const) -> str:
        if constant.type.is_float and not constant.type.is_storage:
            value = float(constant.value)
            if not math.isfinite(value):
                text = _SPECIAL[constant.type.bits, "nan" if math.isnan(value) else "inf"]
                return f"-{text}" if value < 0 else text
        text = literal(constant)
        return {"INT64_MIN": "(-9223372036854775807LL - 1)", "INT32_MIN": "(-2147483647 - 1)"}.get(
            text, text
        )

    def place(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        offset = access(buffer, indices, self.lines.ranges).offset
        return f"{self.lines.names[buffer]}[{self.swizzled(buffer, self.scalar(offset))}]"

    def swizzled(self, buffer: Buffer, offset: str) -> str:
        """Where an element lies, by its offset in dense rows. Raises: TargetError where the rows
        are no power of two of pieces.
        """
        if not buffer.swizzled:
            return offset
        piece = PIECE_BYTES // buffer.type.bytes
        pieces, rest = divmod(buffer.shape[-1], piece)
        if rest or pieces < 2 or pieces & (pieces - 1):
            long = f"have {buffer.shape[-1]} elements of {buffer.type.bytes} bytes"
            raise TargetError(
                f"cuda: rows of '{buffer.name}' {long}; expected a power of two of pieces of "
                f"{PIECE_BYTES} bytes, two or more, where they are swizzled.",
                code="cuda-swizzle",
                hints=("storage_align leaves room between rows of any length.",),
            )
        bits = piece.bit_length() - 1
        row = bits + max(BANK_PIECES, pieces).bit_length() - 1
        return f"tw_swizzled<{bits}, {row}, {min(BANK_PIECES, pieces) - 1}>({offset})"

    def _operator(self, expr: Binary | Compare) -> tuple[str, int]:
        wide = isinstance(expr, Add | Sub | Mul) and expr.dtype == INT64
        if not wide or self._fits(expr):
            return super()._operator(expr)
        text, own = super()._operator(expr)
        left = self.scalar(expr.a, own)
        return f"(long long){self.scalar(expr.a, UNARY)}{text[len(left) :]}", own

    def _fits(self, expr: Expr) -> bool:
        """Whether the value of an index expression is one of 32 bits."""
        low, high = bounds(expr, self.lines.ranges)
        if low is None or high is None:
            return False
        return INT32_RANGE[0] <= low and high <= INT32_RANGE[1]

    def _reinterpret(self, expr: Reinterpret) -> tuple[str, int]:
        for which, kind in enumerate((expr.type, expr.value.dtype)):
            if kind.is_float and not kind.is_storage:
                return f"{_BITS[kind.bits][which]}({self.scalar(expr.value)})", ATOM
        return f"({self.kind(expr.type)}){self.scalar(expr.value, UNARY)}", UNARY
