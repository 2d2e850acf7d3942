"""The mean of a vector: a reduction in parts, which threads and lanes share."""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (1024,), (1 << 24,)
PARTS, LANES = 4, 64


def program(n: int) -> PrimFunc:
    """Y = sum X / n."""
    x = te.placeholder((n,), "float32", name="X")
    k = te.reduce_axis(n, name="k")
    total = te.compute((), lambda: te.sum(x[k], axis=k), name="total")
    y = te.compute((), lambda: total[()] * (1.0 / n), name="Y")
    return te.func(x, y, name="mean")


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    return x.astype(np.float64).mean()


def in_order(sch: Schedule) -> None:
    """One accumulator, whose additions wait for each other."""
    sch.compute_at("total", sch.add_unit_loop("Y"))


def in_parts(sch: Schedule) -> None:
    """A part for each of four iterations that threads share; in it, 64 sums side by side."""
    (k,) = sch.loops("total")
    part, _, lane = sch.split(k, (PARTS, None, LANES))
    sums = sch.rfactor("total", part)
    lanes = sch.rfactor(sums, lane)
    part = sch.loops(sums)[0]
    lane, own, step = sch.compute_at(lanes, part)
    sch.reorder(own, step, lane)
    sch.vectorize(lane)
    sch.set_scope(lanes, "thread")
    sch.stage(lanes, lanes, own, "register")
    sch.parallel(part)
    sch.compute_at("total", sch.add_unit_loop("Y"))


SCHEDULES = {"in order": in_order, "in parts": in_parts}
