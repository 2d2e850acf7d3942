"""Scalar expressions as CUDA C.

Indices are `int`: 32-bit arithmetic is what a GPU is fast at, and every array has fewer than 2**31
elements. Where the value of an index expression may be larger, it is computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.analysis.bounds import bounds
from ...tir.buffer import Buffer
from ...tir.dtype import INT64
from ...tir.errors import TargetError
from ...tir.expr import Add, Binary, Compare, Expr, Mul, Sub
from ..lanes import access
from ..text.scalars import UNARY, Scalars

PIECE_BYTES = 16  # that stay together when rows are swizzled
BANK_PIECES = 8  # that the banks of shared memory hold beside each other
INT32_RANGE = (-(2**31), 2**31 - 1)


class CudaScalars(Scalars):
    """Writes scalar expressions: indices, and rows that are swizzled."""

    def kind_of(self, expr: Expr) -> str:
        return "int" if self._is_index(expr) and self._fits(expr) else self.kind(expr.dtype)

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
