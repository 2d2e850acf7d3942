"""Schedules of grids that several tests take."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule.schedule import Schedule

Steps = Callable[[Schedule], object]


def tiled(threads: int = 4, rows: int = 2, columns: int = 2, depth: int = 3) -> Steps:
    """A product C of A and B: blocks of threads x threads, each with a tile of rows x columns in
    registers; tiles of A and B are fetched by all threads of a block together.
    """

    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        bi, ti, ii = sch.split(i, (None, threads, rows))
        bj, tj, jj = sch.split(j, (None, threads, columns))
        k0, k1 = sch.split(k, (None, depth))
        sch.reorder(bi, bj, k0, ti, tj, k1, ii, jj)
        for loop, axis in ((bi, "blockIdx.y"), (bj, "blockIdx.x")):
            sch.bind(loop, axis)
        for loop, axis in ((ti, "threadIdx.y"), (tj, "threadIdx.x")):
            sch.bind(loop, axis)
        sch.unroll(ii)
        sch.unroll(jj)
        for tensor in ("A", "B"):
            copy = sch.cache_read("C", tensor)
            each = sch.fuse(*sch.compute_at(copy, k0))
            _, y, x = sch.split(each, (None, threads, threads))
            sch.bind(y, "threadIdx.y")
            sch.bind(x, "threadIdx.x")
            sch.set_scope(copy, "team")
        sch.stage("C", "C", bj, "register")

    return steps


def flat(block: str, threads: int = 4) -> Steps:
    """All axes of a block fused, a thread for each element."""

    def steps(sch: Schedule) -> None:
        blocks, inside = sch.split(sch.fuse(*sch.loops(block)), (None, threads))
        sch.bind(blocks, "blockIdx.x")
        sch.bind(inside, "threadIdx.x")

    return steps


def rows_shared(first: str, second: str, threads: int = 4) -> Steps:
    """A row of `second` for each block, and below it what it reads of `first`, in shared memory:
    both dealt out to the threads.
    """

    def steps(sch: Schedule) -> None:
        row = sch.loops(second)[0]
        sch.bind(row, "blockIdx.x")
        sch.compute_at(first, row)
        for block in (first, second):
            _, inside = sch.split(sch.loops(block)[-1], (None, threads))
            sch.bind(inside, "threadIdx.x")
        sch.set_scope(first, "team")

    return steps
