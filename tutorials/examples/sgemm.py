"""A micro-kernel for matrix products whose edges are variants of their own.

The rows that do not fill a tile are cut off with loop_partition and get a tile of exactly their
height: the main part needs no condition, and the edge no empty rows.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (20, 64, 24), (502, 512, 512)
ROWS, COLUMNS, LANES = 8, 48, 16


def program(m: int, n: int, k: int) -> PrimFunc:
    """C = A B, with B constant."""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="sgemm")


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def _panels(sch: Schedule) -> None:
    sch.pack("B", width=COLUMNS)
    i, j, k = sch.loops("C")
    panel, _ = sch.split(j, (None, COLUMNS), tail="mask")
    sch.reorder(panel, i, k, sch.loops("C")[2])


def _tile(sch: Schedule, block: str, rows: int) -> None:
    """Tiles of `rows` x 48 accumulators over the rows of a block."""
    _, i, k, jj = sch.loops(block)
    i, ii = sch.split(i, (None, rows), tail="partition")
    vectors, lane = sch.split(jj, (None, LANES), tail="mask")
    sch.reorder(i, k, ii, vectors, lane)
    sch.unroll(ii)
    sch.unroll(vectors)
    sch.vectorize(lane)
    sch.stage(block, "C", i, "register")


def one_tile(sch: Schedule) -> None:
    """One tile for all rows; the last one is cut by a condition."""
    _panels(sch)
    _tile(sch, "C", ROWS)
    sch.parallel(sch.loops("C")[0])


def variants(sch: Schedule) -> None:
    """The main rows in full tiles, the others in a tile of their own."""
    _panels(sch)
    rows = sch.extent(sch.loops("C")[1])
    full = rows // ROWS * ROWS
    if full < rows:
        sch.loop_partition(sch.loops("C")[1], (full,))
        _tile(sch, "C_part1", rows - full)
    _tile(sch, "C", ROWS)
    sch.parallel(sch.loops("C")[0])


SCHEDULES = {"one tile": one_tile, "variants": variants}
