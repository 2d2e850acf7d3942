"""A 3 x 3 box blur in two passes: what to keep of the rows between them.

Three answers: keep the whole first pass; compute it again for each tile, in registers; keep a
window of three rows that rolls down each strip.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (21, 43), (2046, 2046)


def program(height: int, width: int) -> PrimFunc:
    """Y = X blurred: the mean of the 3 x 3 elements at and after each element."""
    x = te.placeholder((height + 2, width + 2), "float32", name="X")
    across = te.compute(
        (height + 2, width),
        lambda y, x_: (x[y, x_] + x[y, x_ + 1] + x[y, x_ + 2]) * (1 / 3),
        name="across",
    )
    blurred = te.compute(
        (height, width),
        lambda y, x_: (across[y, x_] + across[y + 1, x_] + across[y + 2, x_]) * (1 / 3),
        name="Y",
    )
    return te.func(x, blurred, name="blur")


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    x = x.astype(np.float64)
    across = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3


def whole_passes(sch: Schedule) -> None:
    """One pass after the other; the first one goes through memory."""
    for block in ("across", "Y"):
        rows, columns = sch.loops(block)
        sch.vectorize(columns)
        sch.parallel(rows)


def in_registers(sch: Schedule) -> None:
    """Tiles of 8 rows and one vector; the first pass of a tile stays in registers."""
    rows, columns = sch.loops("Y")
    rows, y = sch.split(rows, (None, 8), tail="partition")
    columns, lane = sch.split(columns, (None, 16), tail="mask")
    sch.reorder(rows, columns, y, lane)
    y_across, lane_across = sch.compute_at("across", columns)
    sch.set_scope("across", "register")
    for loop in (y, y_across):
        sch.unroll(loop)
    for loop in (lane, lane_across):
        sch.vectorize(loop)
    sch.parallel(rows)


def rolling(sch: Schedule) -> None:
    """Strips of 64 rows; down a strip, three rows of the first pass are kept."""
    rows, columns = sch.loops("Y")
    strip, row = sch.split(rows, (None, 64), tail="partition")
    _, across_columns = sch.compute_at("across", row)
    first = sch.rolling_buffer("across", row)
    for loop in (columns, across_columns, sch.loops(first)[-1]):
        sch.vectorize(loop)
    sch.parallel(strip)


SCHEDULES = {"whole passes": whole_passes, "in registers": in_registers, "rolling": rolling}
