"""How far the rows of X are from a centre, outliers left out: a trimmed mean of distances.

A sort moves data by what the data is, so it is written in C. It stands between tensors that are
expressions: the distances before it, the mean of the middle half after it. A schedule is about
those two; the sort runs as it is, on one thread.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te

SMALL, REAL = (9, 43), (1024, 1024)
LANES = 16

# Distances are not negative, so their bits are in order as integers: four passes, a byte each.
SORT = """\
#include <stdint.h>
#include <string.h>

enum { ROWS = %d, COLUMNS = %d };

static void pass(const uint32_t *from, uint32_t *to, int shift)
{
    uint32_t place[257] = { 0 };
    for (int j = 0; j < COLUMNS; j++)
        place[(from[j] >> shift & 255) + 1]++;
    for (int digit = 0; digit < 255; digit++)
        place[digit + 1] += place[digit];
    for (int j = 0; j < COLUMNS; j++)
        to[place[from[j] >> shift & 255]++] = from[j];
}

void sort_rows(const float *distances, float *sorted)
{
    uint32_t one[COLUMNS], other[COLUMNS];
    for (int i = 0; i < ROWS; i++) {
        memcpy(one, distances + i * COLUMNS, sizeof one);
        pass(one, other, 0);
        pass(other, one, 8);
        pass(one, other, 16);
        pass(other, one, 24);
        memcpy(sorted + i * COLUMNS, one, sizeof one);
    }
}
"""


def in_rows(distances: np.ndarray) -> np.ndarray:
    """What `sort_rows` means."""
    return np.sort(distances, axis=1)


def program(rows: int, columns: int) -> PrimFunc:
    """M[i] = the mean of the middle half of |X[i] - C|."""
    x = te.placeholder((rows, columns), "float32", name="X")
    centre = te.placeholder((columns,), "float32", name="C")
    d = te.compute((rows, columns), lambda i, j: te.abs(x[i, j] - centre[j]), name="D")
    s = te.extern(
        (rows, columns),
        "float32",
        d,
        source=SORT % (rows, columns),
        symbol="sort_rows",
        reference=in_rows,
        name="S",
    )
    cut = columns // 4
    kept = columns - 2 * cut
    k = te.reduce_axis(kept, name="k")
    mean = te.compute((rows,), lambda i: te.sum(s[i, k + cut] * (1 / kept), axis=k), name="M")
    return te.func(x, centre, mean, name="trimmed_mean")


def reference(x: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The same in float64."""
    distances = np.sort(np.abs(x.astype(np.float64) - centre), axis=1)
    cut = x.shape[1] // 4
    return distances[:, cut : x.shape[1] - cut].mean(axis=1)


def plain(sch: Schedule) -> None:
    """Loops as they were defined."""


def around_the_sort(sch: Schedule) -> None:
    """Threads share the rows, before the sort and after it. Distances are made in vectors; the
    sums of four rows go on at once.
    """
    i, j = sch.loops("D")
    _, lane = sch.split(j, (None, LANES), tail="mask")
    sch.vectorize(lane)
    sch.parallel(i)
    i, k = sch.loops("M")
    group, row = sch.split(i, (None, 4), tail="partition")
    sch.reorder(group, k, row)
    sch.unroll(row)
    sch.parallel(group)


SCHEDULES = {"plain": plain, "around the sort": around_the_sort}
