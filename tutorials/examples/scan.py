"""Running sums along the columns of a matrix: a recurrence, whose steps have an order.

Only the steps do: the columns are cut into panels, shared out and vectorised. A panel that runs
through all steps finds the sums of the step before in the cache.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (9, 43), (2048, 4096)
LANES, VECTORS = 16, 128


def program(steps: int, width: int) -> PrimFunc:
    """S[t] = X[0] + ... + X[t]."""
    x = te.placeholder((steps, width), "float32", name="X")
    state = te.state((steps, width), "float32", name="S")
    first = te.compute((1, width), lambda t, i: x[t, i], name="first")
    step = te.compute((steps, width), lambda t, i: state[t - 1, i] + x[t, i], name="step")
    return te.func(x, te.scan(first, step, state), name="scan")


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    return x.astype(np.float64).cumsum(axis=0)


def step_by_step(sch: Schedule) -> None:
    """One step after the other, each whole."""
    _, i = sch.loops("S")
    _, lane = sch.split(i, (None, LANES), tail="mask")
    sch.vectorize(lane)


def in_panels(sch: Schedule) -> None:
    """Panels of columns, which threads share; each runs through all steps."""
    t, i = sch.loops("S")
    panel, vector, lane = sch.split(i, (None, VECTORS, LANES), tail="mask")
    sch.reorder(panel, t, vector, lane)
    sch.vectorize(lane)
    sch.parallel(panel)


SCHEDULES = {"step by step": step_by_step, "in panels": in_panels}
