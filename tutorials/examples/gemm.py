"""A matrix product, step by step: blocked, in vectors, packed, in registers, on all threads."""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (37, 53, 29), (1024, 1024, 1024)


def program(m: int, n: int, k: int) -> PrimFunc:
    """C = A B."""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="gemm")


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def blocked(sch: Schedule) -> None:
    """Tiles of 32 x 32, the reduction in fours."""
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, 32), tail="partition")
    j, jj = sch.split(j, (None, 32), tail="partition")
    k, kk = sch.split(k, (None, 4), tail="partition")
    sch.reorder(i, j, k, ii, kk, jj)


def vectorized(sch: Schedule) -> None:
    """The same, a row of a tile in vectors."""
    blocked(sch)
    sch.vectorize(sch.loops("C")[-1])


def packed(sch: Schedule) -> None:
    """The same, B in panels of 32 columns."""
    sch.pack("B", width=32)
    vectorized(sch)


def in_registers(sch: Schedule) -> None:
    """B in panels of 48 columns; tiles of 8 x 48 accumulators in registers, blocks of 256."""
    sch.pack("B", width=48)
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, 8), tail="partition")
    j, jj, lane = sch.split(j, (None, 3, 16), tail="mask")
    block, k = sch.split(k, (None, 256), tail="partition")
    sch.reorder(j, block, i, k, ii, jj, lane)
    for loop in (ii, jj):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.stage("C", "C", i, "register")


def on_all_threads(sch: Schedule) -> None:
    """The same, panels shared out among threads."""
    in_registers(sch)
    sch.parallel(sch.loops("C")[0])


SCHEDULES = {
    "blocked": blocked,
    "vectorized": vectorized,
    "packed": packed,
    "in registers": in_registers,
    "on all threads": on_all_threads,
}
