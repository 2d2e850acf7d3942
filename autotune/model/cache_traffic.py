"""The cache traffic of a scheduled nest: bytes that miss each cache level, counted from its loops.

Where the data of one iteration of a loop fits a level, the loop fetches each line once; where it
does not, every iteration fetches its own. This is the working set of an ideal cache (Denning,
1968): a feature to learn from, not a prediction.
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
class MemoryAccess:
    """A load or a store: its indices in terms of the loops around it, and the loops on which they
    depend.
    """

    buffer: Buffer
    indices: tuple[Linear, ...]
    moved_by: frozenset[Var]

    @staticmethod
    def of(block: Block, access: Load | Store) -> MemoryAccess:
        """The access of a block in terms of its loops."""
        indices = [bound(block, index) for index in access.indices]
        moving = frozenset[Var]().union(*map(free_vars, indices))
        return MemoryAccess(access.buffer, tuple(map(linear, indices)), moving)

    def elements(self, inside: Mapping[Var, Interval]) -> tuple[int, ...]:
        """The extent of each index while the loops `inside` run."""
        held: dict[Var, Interval] = dict.fromkeys(self.moved_by, (0, 0))
        ranges = held | {var: inside[var] for var in self.moved_by & inside.keys()}
        sizes = []
        for form, size in zip(self.indices, self.buffer.shape, strict=True):
            low, high = form_bounds(form, ranges)
            reach = size if low is None or high is None else high - low + 1
            sizes.append(min(size, reach))
        return tuple(sizes)

    def bytes(self, inside: Mapping[Var, Interval]) -> int:
        """Bytes of the cache lines that the access touches while the loops `inside` run."""
        sizes = self.elements(inside)
        run, rows = 1, math.prod(sizes)
        for size, whole in zip(reversed(sizes), reversed(self.buffer.shape), strict=True):
            run, rows = run * size, rows // max(1, size)
            if size < whole:
                break
        return rows * -(-run * self.buffer.type.bytes // LINE) * LINE


@dataclass
class CacheTraffic:
    """Bytes missed per cache level, composable over loops.

    accesses: to memory; inside: the loops over which they are counted; footprint: bytes of their
    cache lines; passed: the bytes that miss each level.
    """

    accesses: tuple[MemoryAccess, ...] = ()
    inside: dict[Var, Interval] = field(default_factory=dict)
    footprint: int = 0
    passed: tuple[float, ...] = ()


def cache_traffic(stmt: Stmt, sizes: Sequence[int]) -> CacheTraffic:
    """The traffic of a statement through caches of `sizes` bytes."""
    match stmt:
        case Block():
            found: Sequence[Load | Store] = (*loads(stmt.body), *stores(stmt.body))
            kept = [MemoryAccess.of(stmt, access) for access in found]
            memory = tuple(access for access in kept if access.buffer.scope != "register")
            lines = _lines(memory, {})
            return CacheTraffic(memory, {}, lines, (float(lines),) * len(sizes))
        case For(var, extent, _, body):
            below = cache_traffic(body, sizes)
            inside = below.inside | {var: (0, extent - 1)}
            repeated = [extent * once for once in below.passed]
            return _combine(below.accesses, inside, below.footprint, repeated, sizes)
    parts = [cache_traffic(child, sizes) for child in stmt.children() if isinstance(child, Stmt)]
    accesses = tuple(access for part in parts for access in part.accesses)
    inside = {var: interval for part in parts for var, interval in part.inside.items()}
    once = [sum(part.passed[level] for part in parts) for level in range(len(sizes))]
    return _combine(accesses, inside, _lines(accesses, inside), once, sizes)


def _combine(
    accesses: tuple[MemoryAccess, ...],
    inside: dict[Var, Interval],
    held: int,
    otherwise: Sequence[float],
    sizes: Sequence[int],
) -> CacheTraffic:
    """The traffic of parts that run one after the other: each line once for a level that holds the
    bytes that are `held` until their next use, else the sum of the parts.
    """
    lines = _lines(accesses, inside)
    passed = [
        min(float(lines), parts) if held <= size else parts
        for size, parts in zip(sizes, otherwise, strict=True)
    ]
    return CacheTraffic(accesses, inside, lines, tuple(passed))


def _lines(accesses: Sequence[MemoryAccess], inside: Mapping[Var, Interval]) -> int:
    """Bytes of the cache lines that accesses touch; per buffer, those of its largest access."""
    largest: dict[Buffer, int] = {}
    for access in accesses:
        largest[access.buffer] = max(access.bytes(inside), largest.get(access.buffer, 0))
    return sum(largest.values())
