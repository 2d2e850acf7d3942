"""A product of matrices of bfloat16, summed in float32, with the bfloat16 instruction of AVX-512.

Each lane of `vdpbf16ps` adds two products to a float32. So the weights are packed in panels where
the two elements that a lane takes lie together, [N/64][K/2][64][2], and the innermost loops are 16
lanes of 2 reduction points. A tile of 6 x 4 vectors stays in registers.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

TARGET = "c:avx512+bf16"
SMALL, REAL = (12, 128, 24), (1536, 1536, 1536)
ROWS, COLUMNS, LANES, POINTS = 6, 64, 16, 2


def program(m: int, n: int, k: int) -> PrimFunc:
    """C = A B in float32, of bfloat16 A and constant bfloat16 B."""
    a = te.placeholder((m, k), "bfloat16", name="A")
    b = te.placeholder((k, n), "bfloat16", name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            te.cast(a[i, axis], "float32") * te.cast(b[axis, j], "float32"), axis=axis
        ),
        name="C",
    )
    return te.func(a, b, c, name="bgemm")


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by NumPy, in float32."""
    return a.astype(np.float32) @ b.astype(np.float32)


def _packed(sch: Schedule) -> None:
    sch.cache_read("C", "B", name="B_packed")
    sch.transform_layout(
        "B_packed", lambda k, n: (n // COLUMNS, k // POINTS, n % COLUMNS, k % POINTS)
    )


def pairs_in_lanes(sch: Schedule) -> None:
    """Tiles of 6 x 64 accumulators; one instruction for 16 x 2 products."""
    _packed(sch)
    i, j, k = sch.loops("C")
    panel, vectors, lane = sch.split(j, (None, COLUMNS // LANES, LANES))
    i, row = sch.split(i, (None, ROWS), tail="partition")
    k, point = sch.split(k, (None, POINTS))
    sch.reorder(panel, i, k, row, vectors, lane, point)
    sch.unroll(row)
    sch.unroll(vectors)
    sch.tensorize(lane, "vdpbf16ps")
    sch.stage("C", "C", i, "register")
    sch.parallel(panel)


SCHEDULES = {"pairs in lanes": pairs_in_lanes}
