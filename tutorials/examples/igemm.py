"""A product of unsigned and signed bytes with the byte instruction of AVX-512.

Each lane of `vpdpbusd` adds four products to an int32. So the weights are packed in panels where
the four elements that a lane takes lie together, [N/64][K/4][64][4], and the innermost loops are
16 lanes of 4 reduction points. A tile of 6 x 4 vectors stays in registers.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

TARGET = "c:avx512+vnni"
SMALL, REAL = (12, 128, 24), (1536, 1536, 1536)
ROWS, COLUMNS, LANES, POINTS = 6, 64, 16, 4


def program(m: int, n: int, k: int) -> PrimFunc:
    """C = A B in int32, of unsigned bytes A and constant signed bytes B."""
    a = te.placeholder((m, k), "uint8", name="A")
    b = te.placeholder((k, n), "int8", name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(te.cast(a[i, axis], "int32") * te.cast(b[axis, j], "int32"), axis=axis),
        name="C",
    )
    return te.func(a, b, c, name="igemm")


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by NumPy."""
    return a.astype(np.int32) @ b.astype(np.int32)


def _packed(sch: Schedule) -> None:
    sch.cache_read("C", "B", name="B_packed")
    sch.transform_layout(
        "B_packed", lambda k, n: (n // COLUMNS, k // POINTS, n % COLUMNS, k % POINTS)
    )


def bytes_in_lanes(sch: Schedule) -> None:
    """Tiles of 6 x 64 accumulators; one instruction for 16 x 4 products."""
    _packed(sch)
    i, j, k = sch.loops("C")
    panel, vectors, lane = sch.split(j, (None, COLUMNS // LANES, LANES))
    i, row = sch.split(i, (None, ROWS), tail="partition")
    k, point = sch.split(k, (None, POINTS))
    sch.reorder(panel, i, k, row, vectors, lane, point)
    sch.unroll(row)
    sch.unroll(vectors)
    sch.tensorize(lane, "vpdpbusd")
    sch.stage("C", "C", i, "register")
    sch.parallel(panel)


SCHEDULES = {"bytes in lanes": bytes_in_lanes}
