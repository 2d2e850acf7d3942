"""The features of a candidate for the cost model: named numbers from its scheduled nest and its
decisions.

The nest determines the generated code: which loops are vectorized or unrolled, what is kept in
registers, which tails are cut. So the counts match the lowered program, in a hundredth of the time
of lowering. They follow Ansor (Zheng et al., 2020) and AutoTVM (Chen et al., "Learning to Optimize
Tensor Programs", 2018): arithmetic, accesses, cache traffic, the shape of the innermost tile, and
parallelism.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...schedule.estimate import estimate
from ...schedule.nest import fixed_tensors, is_reduction, targets_of
from ...schedule.schedule import Schedule
from ...tir.buffer import Buffer, Load
from ...tir.func import PrimFunc, split_allocations
from ...tir.stmt import Alloc, Block, For, ForKind, Prefetch, Stmt, Store, Tail
from ...tir.target.target import Target
from ...tir.visit import blocks, loads, statements, stores
from ...tir.work.work import expression_operations, points_of
from ..space.decisions import decisions_of, encode
from .cache_traffic import MemoryAccess, cache_traffic
from .grid_features import grid_features

Features = dict[str, float]

INNER_LOOPS = 4  # of the busiest block that are features of their own
_LANES = (ForKind.VECTORIZED, ForKind.TENSORIZED)


def features(schedule: Schedule, target: Target) -> Features:
    """The features of a schedule, without building it. Sizes and counts are logarithms."""
    func = schedule.func
    fixed = fixed_tensors(func)
    roots = [root for root in split_allocations(func.body)[1] if _is_run(root, fixed)]
    around = [pair for root in roots for pair in _loops_around(root, ())]
    placed = [_Placed(stmt, loops, target) for stmt, loops in around if isinstance(stmt, Block)]
    values = {"estimate": _log(1e9 * estimate(schedule, target))}
    values |= _counts(placed) | _cache_traffic(roots, target) | _threads(roots, target)
    values |= _registers(around, target) | _shape(func, around)
    if target.has_grid:
        values |= grid_features([list(_loops_around(root, ())) for root in roots])
    if placed:
        values |= _tile(max(placed, key=lambda one: one.operations + one.loaded))
    return values | encode(decisions_of(schedule.trace))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A block with the loops around it, and the instructions that it executes."""

    block: Block
    loops: tuple[For, ...]
    target: Target

    @property
    def runs(self) -> int:
        """How often its body runs, including what a padded tail computes and drops."""
        return math.prod(loop.extent for loop in self.loops)

    @property
    def lanes(self) -> int:
        """Points that one instruction computes."""
        width = math.prod(loop.extent for loop in self.loops if loop.kind in _LANES)
        widest = min(self.target.lanes(buffer.type) for buffer in targets_of(self.block))
        return max(1, min(width, widest))

    @property
    def copies(self) -> float:
        """Unrolled copies of the body in the code of one tile, in instructions."""
        return self.inside(ForKind.UNROLLED) * max(1.0, self.inside(*_LANES) / self.lanes)

    @property
    def operations(self) -> float:
        """Instructions that compute."""
        each = sum(expression_operations(store.value) for store in stores(self.block.body))
        return self.runs / self.lanes * max(1, each)

    @property
    def loaded(self) -> float:
        """Loads from memory; a tile loads once what its copies share."""
        own, total = targets_of(self.block), 0.0
        for load in dict.fromkeys(loads(self.block.body)):
            if load.buffer.scope == "register" or load.buffer in own:
                continue
            moving = MemoryAccess.of(self.block, load).moved_by
            kept = [x for x in self.loops if x.kind is ForKind.UNROLLED and x.var not in moving]
            total += self.runs / self.lanes / math.prod(loop.extent for loop in kept)
        return total

    @property
    def stored(self) -> float:
        """Stores to memory."""
        outside = [buffer for buffer in targets_of(self.block) if buffer.scope != "register"]
        return len(outside) * self.runs / self.lanes

    @property
    def scattered(self) -> float:
        """Loads whose lanes are neither contiguous nor one element (gathers)."""
        lanes = {x.var: (0, x.extent - 1) for x in self.loops if x.kind in _LANES}
        accesses = [MemoryAccess.of(self.block, load) for load in loads(self.block.body)]
        apart = sum(math.prod(access.elements(lanes)[:-1]) > 1 for access in accesses)
        return apart * self.runs / self.lanes

    def inside(self, *kinds: ForKind) -> int:
        """The product of the extents of the loops of some kinds."""
        return math.prod(loop.extent for loop in self.loops if loop.kind in kinds)


def _counts(placed: Sequence[_Placed]) -> Features:
    wanted = sum(points_of(one.block) for one in placed)
    vectors = [one for one in placed if one.lanes > 1]
    return {
        "vector operations": _log(sum(one.operations for one in vectors)),
        "scalar operations": _log(sum(one.operations for one in placed if one.lanes == 1)),
        "loads": _log(sum(one.loaded for one in placed)),
        "stores": _log(sum(one.stored for one in placed)),
        "scattered loads": _log(sum(one.scattered for one in placed)),
        "computed in vain": _log(sum(one.runs for one in placed) / max(1, wanted)),
        "copies of code": _log(sum(one.copies for one in placed)),
        "blocks": float(len(placed)),
    }


def _cache_traffic(roots: Iterable[Stmt], target: Target) -> Features:
    """Bytes that miss each cache level."""
    sizes = target.cache_bytes
    traffic = [cache_traffic(root, sizes) for root in roots]
    return {
        f"bytes past level {level + 1}": _log(sum(one.passed[level] for one in traffic))
        for level in range(len(sizes))
    } | {"footprint": _log(max((one.footprint for one in traffic), default=0))}


def _threads(roots: Sequence[Stmt], target: Target) -> Features:
    """Parallelism, of the root statement with the most parallel iterations."""
    shares = [
        math.prod(
            x.extent for x in statements(root) if isinstance(x, For) and x.kind is ForKind.PARALLEL
        )
        for root in roots
    ]
    most = max(shares, default=1)
    turns = -(-most // target.threads)
    return {
        "parallel iterations": _log(most),
        "idle threads": turns * target.threads / max(1, most),
        "statements at the root": float(len(roots)),
        "on one thread": float(sum(share == 1 for share in shares)),
    }


def _registers(around: Iterable[tuple[Stmt, tuple[For, ...]]], target: Target) -> Features:
    """Vector registers of the largest tile, and bytes that a thread keeps private."""
    registers, kept = 0.0, 0
    for stmt, _ in around:
        if not isinstance(stmt, Alloc):
            continue
        if stmt.buffer.scope == "register":
            size = _reached(stmt) / target.lanes(stmt.buffer.type)
            registers = max(registers, size)
        else:
            kept += stmt.buffer.bytes
    return {"registers": registers, "bytes kept": _log(kept)}


def _reached(alloc: Alloc) -> int:
    """Elements of a buffer that the statement of its allocation touches."""
    inside = {x.var: (0, x.extent - 1) for x in statements(alloc.body) if isinstance(x, For)}
    largest = 0
    for block in blocks(alloc.body):
        found: Sequence[Load | Store] = (*loads(block.body), *stores(block.body))
        for access in found:
            if access.buffer is alloc.buffer:
                sizes = MemoryAccess.of(block, access).elements(inside)
                largest = max(largest, math.prod(sizes))
    return largest


def _shape(func: PrimFunc, around: Sequence[tuple[Stmt, tuple[For, ...]]]) -> Features:
    """The shape of a nest: loops, tails, prefetches."""
    loops = [stmt for stmt, _ in around if isinstance(stmt, For)]
    tails = Counter(loop.tail for loop in loops)
    prefetches = [loops for stmt, loops in around if isinstance(stmt, Prefetch)]
    return {
        "loops": float(len(loops)),
        **{f"tails: {tail.value}": float(tails[tail]) for tail in Tail},
        "prefetches": _log(sum(math.prod(loop.extent for loop in inner) for inner in prefetches)),
        "kinds of prefetches": float(len(prefetches)),
        "streamed": float(any(("stream", 1) in loop.annotations for loop in loops)),
        "allocated bytes": _log(sum(buffer.bytes for buffer in func.allocations)),
    }


def _tile(busiest: _Placed) -> Features:
    """The innermost tile of the busiest block, and the loops around it."""
    serial = [loop.extent for loop in busiest.loops if loop.kind is ForKind.SERIAL][::-1]
    inner = (*serial[:INNER_LOOPS], *(1,) * (INNER_LOOPS - len(serial)))
    return {
        "tile: vectors": busiest.inside(*_LANES) / busiest.lanes,
        "tile: lanes": float(busiest.lanes),
        "tile: copies": _log(busiest.copies),
        "tile: operations per load": _log(busiest.operations / max(1.0, busiest.loaded)),
        "tile: sums": float(is_reduction(busiest.block)),
        "tile: runs": _log(busiest.runs / busiest.lanes / busiest.copies),
        **{f"loop {n} around the tile": _log(extent) for n, extent in enumerate(inner)},
    }


def _loops_around(stmt: Stmt, loops: tuple[For, ...]) -> Iterable[tuple[Stmt, tuple[For, ...]]]:
    """Every statement inside one, blocks as a whole, with the loops around it."""
    yield stmt, loops
    if not isinstance(stmt, Block):
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for child in stmt.children():
            if isinstance(child, Stmt):
                yield from _loops_around(child, inner)


def _is_run(root: Stmt, fixed: set[Buffer]) -> bool:
    """Whether a root statement runs in each call: one that depends only on constants does not."""
    written = {buffer for block in blocks(root) for buffer in targets_of(block)}
    return not written or not written <= fixed


def _log(count: float) -> float:
    return math.log2(1.0 + count)
