"""Affinities made symmetric: Y = (P + P^T) / 2, where P = exp(-X) is computed once.

A tile of P^T is a piece of 16 rows of P, read column by column. Rows of 1024 floats lie 4096 bytes
apart: all pieces then belong in one set of the first cache, which keeps 8 or 12 lines. With
storage_align, each row begins a cache line further on.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (37,), (1024,)
TILE, LANES = 16, 16
SETS, LINE = 1024, 16  # floats after which the sets of the cache repeat; of a cache line


def program(size: int) -> PrimFunc:
    """Y[i, j] = (exp(-X[i, j]) + exp(-X[j, i])) / 2."""
    x = te.placeholder((size, size), "float32", name="X")
    p = te.compute((size, size), lambda i, j: te.exp(-x[i, j]), name="P")
    y = te.compute((size, size), lambda i, j: (p[i, j] + p[j, i]) * 0.5, name="Y")
    return te.func(x, y, name="symmetric")


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    p = np.exp(-x.astype(np.float64))
    return (p + p.T) / 2


def dense(sch: Schedule) -> None:
    """Square tiles in vectors, rows of P one after the other."""
    i, j = sch.loops("P")
    _, lane = sch.split(j, (None, LANES), tail="mask")
    sch.vectorize(lane)
    sch.parallel(i)
    i, j = sch.loops("Y")
    i, row = sch.split(i, (None, TILE), tail="partition")
    j, lane = sch.split(j, (None, LANES), tail="mask")
    sch.reorder(i, j, row, lane)
    sch.vectorize(lane)
    sch.parallel(i)


def rows_apart(sch: Schedule) -> None:
    """The same, each row of P in other sets than its neighbours."""
    dense(sch)
    sch.storage_align("P", axis=0, factor=SETS, offset=LINE)


SCHEDULES = {"dense": dense, "rows apart": rows_apart}
