"""A convolution as a matrix product: the matrix of its windows, made row by row."""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (9, 11, 5, 32), (58, 58, 64, 64)
KERNEL = 3


def program(height: int, width: int, channels: int, outputs: int) -> PrimFunc:
    """Y = X * W over windows of 3 x 3, channels last."""
    x = te.placeholder((height, width, channels), "float32", name="X")
    w = te.placeholder((KERNEL, KERNEL, channels, outputs), "float32", name="W", constant=True)
    r, s, c = (
        te.reduce_axis(n, name=name) for n, name in ((KERNEL, "r"), (KERNEL, "s"), (channels, "c"))
    )
    y = te.compute(
        (height - KERNEL + 1, width - KERNEL + 1, outputs),
        lambda h, v, o: te.sum(x[h + r, v + s, c] * w[r, s, c, o], axis=(r, s, c)),
        name="Y",
    )
    return te.func(x, w, y, name="convolution")


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The same in float64."""
    windows = np.lib.stride_tricks.sliding_window_view(
        x.astype(np.float64), (KERNEL, KERNEL), (0, 1)
    )
    return np.einsum("hvcrs,rsco->hvo", windows, w.astype(np.float64))


def _tile(sch: Schedule) -> None:
    h, v, o, r, s, c = sch.loops("Y")
    v, vv = sch.split(v, (None, 7), tail="partition")
    o, oo, lane = sch.split(o, (None, 2, 16), tail="mask")
    sch.reorder(h, o, v, r, s, c, vv, oo, lane)
    for loop in (vv, oo):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.stage("Y", "Y", v, "register")
    sch.parallel(h)


def direct(sch: Schedule) -> None:
    """The windows are read where they lie."""
    _tile(sch)


def windows(sch: Schedule) -> None:
    """The windows of one row of the result are laid side by side first."""
    made = sch.reindex("Y", "X", name="windows")
    _tile(sch)
    *_, lane = sch.compute_at(made, sch.loops("Y")[0])
    sch.vectorize(lane)


SCHEDULES = {"direct": direct, "windows": windows}
