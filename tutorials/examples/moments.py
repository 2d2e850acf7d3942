"""Layer normalisation: the sums of a row and of its squares in one loop."""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (7, 48), (4096, 1024)
LANES = 16


def program(rows: int, columns: int) -> PrimFunc:
    """Y = (X - mean) / sqrt(variance + 1e-5) of each row."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k, t = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="t")
    sums = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="sums")
    squares = te.compute((rows,), lambda i: te.sum(x[i, t] * x[i, t], axis=t), name="squares")
    mean = te.compute((rows,), lambda i: sums[i] * (1.0 / columns), name="mean")
    scale = te.compute(
        (rows,),
        lambda i: 1.0 / te.sqrt(squares[i] * (1.0 / columns) - mean[i] * mean[i] + 1e-5),
        name="scale",
    )
    y = te.compute((rows, columns), lambda i, j: (x[i, j] - mean[i]) * scale[i], name="Y")
    return te.func(x, y, name="layer_norm")


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    x = x.astype(np.float64)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def _in_lanes(sch: Schedule) -> tuple[str, str]:
    """Each reduction in 16 sums side by side, all below one loop over the rows."""
    lanes = []
    for block in ("sums", "squares"):
        _, lane = sch.split(sch.loops(block)[1], (None, LANES))
        lanes.append(sch.rfactor(block, lane))
    row, columns = sch.loops("Y")
    for block in ("scale", "mean", "squares", "sums"):
        sch.compute_at(block, row)
    for block in lanes:
        lane, own, step = sch.compute_at(block, row)
        sch.reorder(own, step, lane)
    sch.vectorize(columns)
    sch.parallel(row)
    return lanes[1], lanes[0]  # in the order of the text


def _in_registers(sch: Schedule, block: str) -> None:
    _, own, _, lane = sch.loops(block)
    sch.vectorize(lane)
    sch.set_scope(block, "thread")
    sch.stage(block, block, own, "register")


def apart(sch: Schedule) -> None:
    """One loop for each reduction."""
    for block in _in_lanes(sch):
        _in_registers(sch, block)


def together(sch: Schedule) -> None:
    """Both reductions read a row in one loop."""
    one, two = _in_lanes(sch)
    for level in (1, 2):
        sch.merge(sch.loops(one)[level], sch.loops(two)[level])
    for block in (one, two):
        _in_registers(sch, block)


SCHEDULES = {"apart": apart, "together": together}
