"""The features of a schedule for a GPU: grid, blocks, threads and memory of its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...schedule.legality.grid import extents
from ...tir.analysis.linear import Interval
from ...tir.buffer import Buffer, Load
from ...tir.expr import Var
from ...tir.stmt import BLOCK_AXES, THREAD_AXES, Block, For, Stmt, Store
from ...tir.visit import loads, stores
from .cache_traffic import MemoryAccess

Around = Sequence[tuple[Stmt, tuple[For, ...]]]  # statements, with the loops around each


def grid_features(kernels: Sequence[Around]) -> dict[str, float]:
    """The features of the kernel with the most threads: blocks, threads per block, shared bytes per
    block, private bytes and points per thread; and the number of kernels. Counts are logarithms.
    """
    largest = max(kernels, key=_threads, default=None)
    if largest is None:
        return {}
    root = largest[0][0]
    threads = math.prod(extents(root, THREAD_AXES))
    points = sum(_points(loops) for stmt, loops in largest if isinstance(stmt, Block))
    return {
        "grid: kernels": float(len(kernels)),
        "grid: blocks": math.log2(math.prod(extents(root, BLOCK_AXES))),
        "grid: threads of a block": math.log2(threads),
        "grid: shared bytes": math.log2(1 + _bytes(largest, "shared")),
        "grid: own bytes of a thread": math.log2(1 + _bytes(largest, "register") / threads),
        "grid: points of a thread": math.log2(1 + points),
    }


def _threads(kernel: Around) -> int:
    return math.prod(extents(kernel[0][0], (*BLOCK_AXES, *THREAD_AXES)))


def _points(loops: Sequence[For]) -> int:
    """Points of a block that one thread computes."""
    return math.prod(loop.extent for loop in loops if not loop.axis)


def _bytes(kernel: Around, scope: str) -> int:
    """Bytes that the buffers of a scope hold at a time: those touched inside the loops that
    are around all accesses of a buffer.
    """
    by_buffer: dict[Buffer, list[tuple[Block, Load | Store, tuple[For, ...]]]] = {}
    for block, loops in ((stmt, loops) for stmt, loops in kernel if isinstance(stmt, Block)):
        touching: Sequence[Load | Store] = (*loads(block.body), *stores(block.body))
        for access in touching:
            if access.buffer.scope == scope:
                by_buffer.setdefault(access.buffer, []).append((block, access, loops))
    total = 0
    for buffer, accesses in by_buffer.items():
        common = set.intersection(*({*loops} for _, _, loops in accesses))
        touched = []
        for block, access, loops in accesses:
            own = (loop for loop in loops if loop not in common)
            inside: dict[Var, Interval] = {loop.var: (0, loop.extent - 1) for loop in own}
            touched.append(math.prod(MemoryAccess.of(block, access).elements(inside)))
        total += buffer.type.bytes * max(touched)
    return total
