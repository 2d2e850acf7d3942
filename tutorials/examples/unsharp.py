"""An unsharp mask: gray, blurred down and across; what the blur takes away is added again."""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (19, 37), (1530, 2554)
WEIGHTS = (0.299, 0.587, 0.114)
KERNEL = (0.0625, 0.25, 0.375, 0.25, 0.0625)
REACH = len(KERNEL) // 2


def program(height: int, width: int) -> PrimFunc:
    """Y = X + gray - blurred gray, channels first, without the border of 2 elements."""
    border = 2 * REACH
    x = te.placeholder((3, height + border, width + border), "float32", name="X")
    gray = te.compute(
        (height + border, width + border),
        lambda r, c: _weighted([x[n, r, c] for n in range(3)], WEIGHTS),
        name="gray",
    )
    down = te.compute(
        (height, width + border),
        lambda r, c: _weighted([gray[r + n, c] for n in range(len(KERNEL))]),
        name="down",
    )
    edges = te.compute(
        (height, width),
        lambda r, c: (
            gray[r + REACH, c + REACH] - _weighted([down[r, c + n] for n in range(len(KERNEL))])
        ),
        name="edges",
    )
    y = te.compute(
        (3, height, width), lambda n, r, c: x[n, r + REACH, c + REACH] + edges[r, c], name="Y"
    )
    return te.func(x, y, name="unsharp")


def _weighted(values: list[te.Expr], weights: tuple[float, ...] = KERNEL) -> te.Expr:
    total = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total = total + value * weight
    return total


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    x = x.astype(np.float64)
    gray = np.tensordot(np.array(WEIGHTS), x, 1)
    height, width = gray.shape[0] - 2 * REACH, gray.shape[1] - 2 * REACH
    down = sum(w * gray[n : n + height] for n, w in enumerate(KERNEL))
    across = sum(w * down[:, n : n + width] for n, w in enumerate(KERNEL))
    inner = (slice(REACH, REACH + height), slice(REACH, REACH + width))
    return x[:, *inner] + gray[inner] - across


def whole_passes(sch: Schedule) -> None:
    """Each step over the whole picture."""
    for block in ("gray", "down", "edges", "Y"):
        *outer, columns = sch.loops(block)
        sch.vectorize(columns)
        sch.parallel(outer[0])


def in_strips(sch: Schedule) -> None:
    """Strips of 32 rows: row by row, gray in a window of five rows, the rest in one row."""
    channels, rows, columns = sch.loops("Y")
    sch.reorder(rows, channels, columns)
    strip, row = sch.split(rows, (None, 32), tail="partition")
    moved = [sch.compute_at(block, row)[-1] for block in ("edges", "down", "gray")]
    for block in ("edges", "down"):
        sch.set_scope(block, "thread")
    first = sch.rolling_buffer("gray", row)
    for loop in (columns, *moved, sch.loops(first)[-1]):
        sch.vectorize(loop)
    sch.parallel(strip)


SCHEDULES = {"whole passes": whole_passes, "in strips": in_strips}
