"""What a scheduled nest fetches past each cache level, counted from its loops.

Where the data of one iteration of a loop fits a level, the loop fetches each line once; where it
does not, each iteration fetches its own. This is the working set of a cache that replaces well
(Denning, 1968): a figure to learn from, not a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...schedule.nest import bound
from ...tir.analysis.bounds import form_bounds
from ...tir.analysis.linear import Interval, Linear, linear
from ...tir.buffer import Buffer, Load
from ...tir.expr import Var
from ...tir.stmt import Block, For, Stmt, Store
from ...tir.visit import free_vars, loads, stores

LINE = 64  # bytes


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of memory: its indices by the loops around it, and the loops that move
    them.
    """

    buffer: Buffer
    indices: tuple[Linear, ...]
    moved_by: frozenset[Var]

    @staticmethod
    def of(block: Block, access: Load | Store) -> Access:
        """The access of a block."""
        indices = [bound(block, index) for index in access.indices]
        moving = frozenset[Var]().union(*map(free_vars, indices))
        return Access(access.buffer, tuple(map(linear, indices)), moving)

    def elements(self, inside: Mapping[Var, Interval]) -> tuple[int, ...]:
        """For each axis, how far the index reaches while the loops `inside` run."""
        held: dict[Var, Interval] = dict.fromkeys(self.moved_by, (0, 0))
        ranges = held | {var: inside[var] for var in self.moved_by & inside.keys()}
        sizes = []
        for form, size in zip(self.indices, self.buffer.shape, strict=True):
            low, high = form_bounds(form, ranges)
            reach = size if low is None or high is None else high - low + 1
            sizes.append(min(size, reach))
        return tuple(sizes)

    def bytes(self, inside: Mapping[Var, Interval]) -> int:
        """Bytes of the lines that the access touches while the loops `inside` run."""
        sizes = self.elements(inside)
        run, rows = 1, math.prod(sizes)
        for size, whole in zip(reversed(sizes), reversed(self.buffer.shape), strict=True):
            run, rows = run * size, rows // max(1, size)
            if size < whole:
                break
        return rows * -(-run * self.buffer.type.bytes // LINE) * LINE


@dataclass
class Traffic:
    """What passes a cache of each size, in bytes, and what is needed to tell it for a loop around.

    accesses: to memory; inside: the loops below, for which they are counted.
    """

    accesses: tuple[Access, ...] = ()
    inside: dict[Var, Interval] = field(default_factory=dict)
    footprint: int = 0
    passed: tuple[float, ...] = ()


def traffic_of(stmt: Stmt, sizes: Sequence[int]) -> Traffic:
    """The traffic of a statement past caches of `sizes` bytes."""
    match stmt:
        case Block():
            found: Sequence[Load | Store] = (*loads(stmt.body), *stores(stmt.body))
            kept = [Access.of(stmt, access) for access in found]
            memory = tuple(access for access in kept if access.buffer.scope != "register")
            lines = _lines(memory, {})
            return Traffic(memory, {}, lines, (float(lines),) * len(sizes))
        case For(var, extent, _, body):
            below = traffic_of(body, sizes)
            inside = below.inside | {var: (0, extent - 1)}
            often = [extent * once for once in below.passed]
            return _fitted(below.accesses, inside, below.footprint, often, sizes)
    parts = [traffic_of(child, sizes) for child in stmt.children() if isinstance(child, Stmt)]
    accesses = tuple(access for part in parts for access in part.accesses)
    inside = {var: found for part in parts for var, found in part.inside.items()}
    once = [sum(part.passed[level] for part in parts) for level in range(len(sizes))]
    return _fitted(accesses, inside, _lines(accesses, inside), once, sizes)


def _fitted(
    accesses: tuple[Access, ...],
    inside: dict[Var, Interval],
    held: int,
    otherwise: Sequence[float],
    sizes: Sequence[int],
) -> Traffic:
    """What passes: each line once where the lines that are `held` until they are used again fit,
    else what the parts fetch.
    """
    lines = _lines(accesses, inside)
    passed = [
        min(float(lines), parts) if held <= size else parts
        for size, parts in zip(sizes, otherwise, strict=True)
    ]
    return Traffic(accesses, inside, lines, tuple(passed))


def _lines(accesses: Sequence[Access], inside: Mapping[Var, Interval]) -> int:
    """Bytes of the lines that accesses touch; of one buffer the most that one of them touches."""
    largest: dict[Buffer, int] = {}
    for access in accesses:
        largest[access.buffer] = max(access.bytes(inside), largest.get(access.buffer, 0))
    return sum(largest.values())
