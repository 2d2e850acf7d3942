"""A recurrent cell of two states, elementwise: what it keeps, and the output that it shows.

Each step needs both states of the step before, so they are one scan. Only what is shown leaves the
function: of what whole panels of cells keep, two steps are stored, and stay in the cache.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te
from tilewright.tir.expr import Expr

SMALL, REAL = (9, 43), (1024, 4096)
LANES, VECTORS = 16, 32


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x))"""
    return 1.0 / (1.0 + te.exp(-x))


def program(steps: int, cells: int) -> PrimFunc:
    """kept = f kept + (1 - f) tanh(X + U0 shown), where f = sigmoid(F + U1 shown);
    shown = tanh(kept), which is H.
    """
    x = te.placeholder((steps, cells), "float32", name="X")
    f = te.placeholder((steps, cells), "float32", name="F")
    u = te.placeholder((2, cells), "float32", name="U")
    kept = te.state((steps, cells), "float32", name="C")
    shown = te.state((steps, cells), "float32", name="H")

    def cell(t: Expr, i: Expr) -> tuple[Expr, Expr]:
        before = shown[t - 1, i]
        keep = sigmoid(f[t, i] + u[1, i] * before)
        now = kept[t - 1, i] * keep + (1.0 - keep) * te.tanh(x[t, i] + u[0, i] * before)
        return now, te.tanh(now)

    first = te.compute((1, cells), lambda t, i: te.const(0.0, "float32"), name="first")
    step = te.compute((steps, cells), cell, name=("now", "out"))
    _, out = te.scan((first, first), step, (kept, shown))
    return te.func(x, f, u, out, name="recurrent_cell")


def reference(x: np.ndarray, f: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The same in float64, step by step."""
    x, f, u = (array.astype(np.float64) for array in (x, f, u))
    kept, shown = np.zeros(x.shape[1:]), np.zeros_like(x)
    for t in range(1, len(x)):
        keep = 1 / (1 + np.exp(-(f[t] + u[1] * shown[t - 1])))
        kept = kept * keep + (1 - keep) * np.tanh(x[t] + u[0] * shown[t - 1])
        shown[t] = np.tanh(kept)
    return shown


def step_by_step(sch: Schedule) -> None:
    """One step after the other, each whole."""
    _, i = sch.loops("C")
    _, lane = sch.split(i, (None, LANES), tail="mask")
    sch.vectorize(lane)


def in_panels(sch: Schedule) -> None:
    """Panels of cells, which threads share; each runs through all steps."""
    t, i = sch.loops("C")
    panel, vector, lane = sch.split(i, (None, VECTORS, LANES), tail="mask")
    sch.reorder(panel, t, vector, lane)
    sch.vectorize(lane)
    sch.parallel(panel)


SCHEDULES = {"step by step": step_by_step, "in panels": in_panels}
