"""What each thread of a warp brings to a product that they compute together.

Fragments are those of the PTX ISA, "Matrix Fragments for mma": lane l has of the first factor the
rows l/4 and l/4 + 8, of the second one the column l/4, of both the terms that begin at l%4 times
what a register packs, and again half of the terms further on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.analysis.linear import Linear, Ranges, linear
from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.errors import InternalError
from ....tir.expr import Expr, Var, floordiv, floormod, index
from ....tir.instructions.tensor_match import Mismatch
from ....tir.instructions.warp_match import Factor, match_warp_product
from ....tir.instructions.warp_products import WarpProduct
from ....tir.stmt import ROW_BYTES, For, Fragment, Held, Stmt, Store, WarpSum
from ....tir.visit import stores


def warp_sum(product: WarpProduct, nest: For, around: Sequence[For], ranges: Ranges) -> Stmt:
    """The instruction in place of the nest of a loop of halves."""
    found = match_warp_product(product, nest, around, ranges)
    if isinstance(found, Mismatch):
        raise InternalError(
            f"tensorize: the nest of loop '{nest.var.name}' is no longer '{product.name}': "
            f"{found.found}; expected {found.expected}.",
            code="lower-warp",
        )
    block = stores(nest)[0].block
    sums = tuple(Store(found.buffer, at, Load(found.buffer, at), block=block) for at in found.sums)
    parts = _Parts(product, found.lane.var, ranges)
    return WarpSum(product.name, sums, parts.of(found.a, 2), parts.of(found.b, 1))


class _Parts:
    """The parts of the factors of one thread."""

    def __init__(self, product: WarpProduct, lane: Var, ranges: Ranges) -> None:
        self.product = product
        self.lane = lane
        self.ranges = ranges

    def of(self, factor: Factor, rows: int) -> Fragment:
        """A factor's part; rows: blocks of 8 across, 2 of the first factor and 1 of the second."""
        across, along = factor.strides
        if self._by_rows(factor, across, along):
            return self._pointed(factor, rows, Held.ROWS)
        if self.product.packed == 2 and self._by_rows(factor, along, across):
            return self._pointed(factor, rows, Held.COLUMNS)
        group, place = floordiv(self.lane, index(4)), floormod(self.lane, index(4))
        packed = self.product.packed
        elements = tuple(
            self._load(
                factor,
                group + 8 * (register % rows),
                place * packed + element + 4 * packed * (register // rows),
            )
            for register in range(2 * rows)
            for element in range(packed)
        )
        return Fragment(Held.ELEMENTS, elements)

    def _by_rows(self, factor: Factor, apart: int, beside: int) -> bool:
        """Whether the factor lies in shared memory by rows of 16 bytes that begin at a multiple of
        16 bytes, rows `apart` elements from each other, elements of a row `beside`.
        """
        buffer, size = factor.buffer, factor.buffer.type.bytes
        if buffer.scope != "shared" or beside != 1 or apart * size % ROW_BYTES:
            return False
        start = _offset(buffer, factor.start)
        steps = (start.constant, *(step for _, step in start.terms))
        return all(step * size % ROW_BYTES == 0 for step in steps)

    def _pointed(self, factor: Factor, rows: int, how: Held) -> Fragment:
        """The row that a thread points at: thread l at row l % 8 of the matrix l // 8. There is a
        matrix for each register, across first, then along.
        """
        row = floormod(self.lane, index(8))
        matrix = floormod(floordiv(self.lane, index(8)), index(2 * rows))
        across, along = floormod(matrix, index(rows)), floordiv(matrix, index(rows))
        terms = ROW_BYTES // factor.buffer.type.bytes
        if how is Held.ROWS:
            load = self._load(factor, row + 8 * across, along * terms)
        else:
            load = self._load(factor, 8 * across, row + 8 * along)
        return Fragment(how, (load,))

    def _load(self, factor: Factor, across: Expr, along: Expr) -> Load:
        at = (simplify(item, self.ranges) for item in factor.at(across, along))
        return Load(factor.buffer, tuple(at))


def _offset(buffer: Buffer, indices: Sequence[Expr]) -> Linear:
    total: Expr = index(0)
    for item, stride in zip(indices, buffer.strides, strict=True):
        total = total + item * stride
    return linear(simplify(total))
