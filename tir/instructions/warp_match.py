"""Whether a nest of loops does what a matrix product of a warp does, thread by thread; else where
the two differ first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis.linear import Ranges, expression, linear
from ..analysis.simplify import simplify
from ..analysis.threads import WARP
from ..buffer import Buffer, Load
from ..expr import Expr, FloorDiv, FloorMod, Var, index
from ..stmt import THREAD_AXES, For, Store
from ..text.printer import print_expr
from ..visit import free_vars, substitute
from .tensor_match import Mismatch, chain, match_update, sole_store
from .warp_products import HALVES, PAIRS, WarpProduct


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor as a matrix: element (across, along) lies at `start` plus, along each axis of the
    buffer, `across` times the one step and `along` times the other.

    across: rows of the first factor, columns of the second; along: the points.
    """

    buffer: Buffer
    start: tuple[Expr, ...]
    across: tuple[int, ...]
    along: tuple[int, ...]

    def at(self, across: Expr, along: Expr) -> tuple[Expr, ...]:
        """The indices of an element."""
        return tuple(
            start + across * one + along * other
            for start, one, other in zip(self.start, self.across, self.along, strict=True)
        )

    @property
    def strides(self) -> tuple[int, int]:
        """Elements of memory from one to the next across, and along."""
        one, other = (
            sum(step * stride for step, stride in zip(steps, self.buffer.strides, strict=True))
            for steps in (self.across, self.along)
        )
        return one, other


@dataclass(frozen=True, slots=True)
class WarpMatch:
    """A nest that one instruction computes.

    lane: the loop of threads. sums: the indices of the elements that a thread adds to, in the order
    of the instruction's registers.
    """

    lane: For
    buffer: Buffer
    sums: tuple[tuple[Expr, ...], ...]
    a: Factor
    b: Factor


def match_warp_product(
    product: WarpProduct, nest: For, around: Sequence[For], ranges: Ranges
) -> WarpMatch | Mismatch:
    """Compare the nest of a loop of halves, and the loops around it, with an instruction.

    ranges: of the loops around.
    """
    loops, body = chain(nest)
    lane = around[-1] if around else None
    if lane is None or lane.axis != THREAD_AXES[0] or lane.extent != WARP:
        shown = "no loop" if lane is None else f"loop '{lane.var.name}' of {lane.extent}"
        return Mismatch(
            f"{shown} stands right around it",
            f"a loop of {WARP} that is bound to threadIdx.x",
            "fuse the loops of 8 rows and of 4 pairs of columns, and bind them.",
        )
    counts = (HALVES, PAIRS, product.points)
    if tuple(loop.extent for loop in loops) != counts:
        shown = ", ".join(f"'{loop.var.name}' of {loop.extent}" for loop in loops)
        return Mismatch(
            f"its loops are {shown}",
            f"{HALVES} halves of the rows, {PAIRS} columns and {product.points} reduction points, "
            "each directly inside the other",
            "split makes loops of these extents, reorder puts them innermost.",
        )
    store = sole_store(body)
    if isinstance(store, Mismatch):
        return store
    found = match_update(product.define(), store)
    if isinstance(found, Mismatch):
        return found
    known = {**ranges, lane.var: (0, WARP - 1), **{x.var: (0, x.extent - 1) for x in loops}}
    return _Dealt(lane, loops, known).match(found, store)


class _Dealt:
    """Who holds which elements, by the indices of a nest."""

    def __init__(self, lane: For, loops: Sequence[For], ranges: Ranges) -> None:
        self.lane = lane
        self.half, self.pair, self.point = (loop.var for loop in loops)
        self.ranges = ranges
        self.own = {lane.var, self.half, self.pair, self.point}

    def match(self, factors: Sequence[Load], store: Store) -> WarpMatch | Mismatch:
        first, second = factors
        if self.half not in free_vars(first) and self.half in free_vars(second):
            first, second = second, first
        if self.point in free_vars(Load(store.buffer, store.indices)):
            return Mismatch(
                f"{print_expr(Load(store.buffer, store.indices))} changes with '{self.point.name}'",
                "a sum over it",
            )
        rows = FloorDiv(self.lane.var, index(4)), 8, self.half, "lane // 4 + 8 * half"
        pairs = FloorMod(self.lane.var, index(4)), 2, self.pair, "2 * (lane % 4) + pair"
        a = self._factor(first, rows[0], rows[1], 1, rows[2], rows[3])
        if isinstance(a, Mismatch):
            return a
        b = self._factor(second, pairs[0], 1, pairs[1], pairs[2], pairs[3])
        if isinstance(b, Mismatch):
            return b
        sums = tuple(
            tuple(
                simplify(
                    substitute(item, {self.half: index(half), self.pair: index(pair)}), self.ranges
                )
                for item in store.indices
            )
            for half in range(HALVES)
            for pair in range(PAIRS)
        )
        return WarpMatch(self.lane, store.buffer, sums, a, b)

    def _factor(
        self, load: Load, part: Expr, by_own: int, by_part: int, own: Var, text: str
    ) -> Factor | Mismatch:
        """A factor of which a thread holds those at `by_part * part + by_own * own` across."""
        if load.buffer.is_private:
            return Mismatch(
                f"'{load.buffer.name}' is kept by each thread",
                "factors that all threads of the warp read",
                f"sch.set_scope('{load.buffer.name}', 'shared').",
            )
        start: list[Expr] = []
        across: list[int] = []
        along: list[int] = []
        for item in load.indices:
            form = linear(simplify(item, self.ranges))
            one, point = form.coefficient(own), form.coefficient(self.point)
            rest = form.without(own).without(self.point)
            step, missed = divmod(one, by_own)
            rest = rest - linear(part).scaled(by_part * step)
            if missed or any(free_vars(atom) & self.own for atom, _ in rest.terms):
                return self._misplaced(load, text)
            start.append(simplify(expression(rest)))
            across.append(step)
            along.append(point)
        if not any(across) or not any(along):
            return self._misplaced(load, text)
        return Factor(load.buffer, tuple(start), tuple(across), tuple(along))

    def _misplaced(self, load: Load, text: str) -> Mismatch:
        return Mismatch(
            f"it reads {print_expr(load)}",
            f"an axis at {text}, with lane = '{self.lane.var.name}', half = '{self.half.name}' and "
            f"pair = '{self.pair.name}', and another one at '{self.point.name}', beside what the "
            "loops around say",
            "split rows as (..., 2, 8), columns as (..., 4, 2), and fuse the 8 and the 4.",
        )
