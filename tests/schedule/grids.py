"""Schedules of grids that several tests take."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.visit import stores

Steps = Callable[[Schedule], object]


def tiled(
    threads: int = 4, rows: int = 2, columns: int = 2, depth: int = 3, *, stages: int = 1
) -> Steps:
    """A product C of A and B: blocks of threads x threads, each with a tile of rows x columns in
    registers; tiles of A and B are fetched by all threads of a block together, `stages` - 1 of them
    ahead.
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
            sch.set_scope(copy, "shared")
        if stages > 1:
            sch.annotate(k0, "stages", stages)
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
        sch.set_scope(first, "shared")

    return steps


def warp_for_each_row(block: str, reader: str = "", rows: int = 2, threads: int = 32) -> Steps:
    """A reduction along rows: each thread of a warp takes a part, and they join these. Where a
    `reader` follows, element by element, each of them has the result. `rows` warps make a block.
    """

    def steps(sch: Schedule) -> None:
        _, lane = sch.split(sch.loops(block)[-1], (None, threads))
        parts = sch.rfactor(block, lane)
        last = reader or block
        row, warp = sch.split(sch.loops(last)[0], (None, rows))
        if reader:
            sch.compute_at(block, row)
        lane, own, *others = sch.compute_at(parts, row)
        sch.bind(row, "blockIdx.x")
        sch.reorder(own, lane, *others)
        sch.bind(warp, "threadIdx.y")
        sch.bind(own, "threadIdx.y")
        sch.bind(lane, "threadIdx.x")
        if reader:
            sch.bind(sch.loops(block)[1], "threadIdx.y")
            if len(sch.loops(reader)) > 2:
                _, lane = sch.split(sch.loops(reader)[-1], (None, threads))
                sch.bind(lane, "threadIdx.x")
            for tensor in {store.buffer.name for store in stores(sch.func.block(block).body)}:
                sch.set_scope(tensor, "register")
        sch.bind(sch.loops(block)[-1], "threadIdx.x")
        for tensor in {store.buffer.name for store in stores(sch.func.block(parts).body)}:
            sch.set_scope(tensor, "register")

    return steps


def block_for_each_row(block: str, reader: str, warps: int = 4, lanes: int = 4) -> Steps:
    """A row of `reader`, and below it a reduction of what it reads: threads add up vectors, then
    the threads of a warp join what they have, and all warps what these have.
    """

    def steps(sch: Schedule) -> None:
        _, vector = sch.split(sch.loops(block)[-1], (None, warps * 32 * lanes))
        vectors = sch.rfactor(block, vector)
        thread, _ = sch.split(sch.loops(block)[-1], (warps * 32, lanes))
        parts = sch.rfactor(block, thread)
        warp, _ = sch.split(sch.loops(block)[-1], (warps, 32))
        joined = sch.rfactor(block, warp)
        row, *columns = sch.loops(reader)
        below = {name: sch.compute_at(name, row) for name in (block, joined, parts, vectors)}
        sch.bind(row, "blockIdx.x")
        vector, _, rounds = below[vectors]
        ty, tx, lane = sch.split(vector, (warps, 32, lanes))
        sch.reorder(ty, tx, rounds, lane)
        sch.vectorize(lane)
        part_ty, part_tx = sch.split(below[parts][0], (warps, 32))
        sch.unroll(below[parts][-1])
        _, own_ty, own_tx, own = sch.split(columns[-1], (None, warps, 32, lanes))
        sch.vectorize(own)
        for loop in (ty, part_ty, below[joined][0], own_ty):
            sch.bind(loop, "threadIdx.y")
        for loop in (tx, part_tx, below[joined][-1], below[block][-1], own_tx):
            sch.bind(loop, "threadIdx.x")
        for tensor in (vectors, parts, block):
            sch.set_scope(tensor, "register")
        sch.set_scope(joined, "shared")

    return steps


def _unrolled(sch: Schedule, *loops: LoopRef) -> None:
    for loop in loops:
        sch.unroll(loop)


def products_of_warps(
    intrinsic: str,
    points: int,
    *,
    transposed: bool = False,
    warps: tuple[int, int] = (2, 2),
    tiles: tuple[int, int] = (2, 4),
    steps_of_slice: int = 2,
    fetching: int = 32,
    stages: int = 1,
) -> Steps:
    """A product C of A and B by an instruction of a warp: each of `warps` rows and columns of warps
    has `tiles` of 16 x 8 elements; transposed: B has an axis of columns, then one of terms.
    fetching: threads along x that fetch a slice, `stages` - 1 of them ahead.
    """
    size = 32 // points  # bytes of an element: a step takes 32 of a row

    def steps(sch: Schedule) -> None:
        (down, across), (high, wide) = warps, tiles
        rows, columns, depth = down * high * 16, across * wide * 8, steps_of_slice * points
        a, b = sch.cache_read("C", "A"), sch.cache_read("C", "B")
        sch.cache_write("C")
        sch.pad(a, (rows, depth))
        sch.pad(b, (columns, depth) if transposed else (depth, columns))
        i, j, k = sch.pad_axes("C_cache", (rows, columns, depth))
        by, wy, ti, half, group = sch.split(i, (None, down, high, 2, 8))
        bx, wx, tj, place, pair = sch.split(j, (None, across, wide, 4, 2))
        slices, step, point = sch.split(k, (None, steps_of_slice, points))
        sch.reorder(by, bx, slices, wy, wx, step, ti, tj, group, place, half, pair, point)
        lane = sch.fuse(group, place)
        sch.bind(by, "blockIdx.y")
        sch.bind(bx, "blockIdx.x")
        sch.bind(wy, "threadIdx.z")
        sch.bind(wx, "threadIdx.y")
        sch.bind(lane, "threadIdx.x")
        _unrolled(sch, step, ti, tj)
        for copy in (a, b):
            one = sch.fuse(*sch.compute_at(copy, slices))
            _, z, y, x = sch.split(one, (None, down, across, fetching))
            sch.bind(z, "threadIdx.z")
            sch.bind(y, "threadIdx.y")
            sch.bind(x, "threadIdx.x")
            sch.set_scope(copy, "shared")
            sch.storage_align(copy, 0, 32 // size, 16 // size)  # eight rows meet no bank twice
        if stages > 1:
            sch.annotate(slices, "stages", stages)
        sch.tensorize(half, intrinsic)
        i, j = sch.reverse_compute_at("C", bx)
        wy, ti, half, group = sch.split(i, (down, high, 2, 8))
        wx, tj, place, pair = sch.split(j, (across, wide, 4, 2))
        sch.reorder(wy, wx, ti, tj, group, place, half, pair)
        lane = sch.fuse(group, place)
        sch.bind(wy, "threadIdx.z")
        sch.bind(wx, "threadIdx.y")
        sch.bind(lane, "threadIdx.x")
        _unrolled(sch, ti, tj, half, pair)
        sch.set_scope("C_cache", "register")

    return steps
