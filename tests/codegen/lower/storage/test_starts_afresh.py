"""codegen/lower/storage/starts_afresh.py: storage belongs to an iteration that reads nothing of
another.
"""

from __future__ import annotations

import numpy as np

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.storage.fold_storage import FoldStorage
from tilewright.driver.build import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import Alloc
from tilewright.tir.te import te
from tilewright.tir.visit import statements

from .test_fold_storage import folded, shapes


def pairs(count: int) -> PrimFunc:
    x = te.placeholder((count + 1,), "float32", name="X")
    p = te.compute((count + 1,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((count,), lambda i: p[i] + p[i + 1], name="Y")
    return te.func(x, y, name="pairs")


def outermost(func: PrimFunc) -> bool:
    """Whether storage is allocated around all else."""
    return isinstance(next(iter(statements(func.body))), Alloc)


ROLLS = """
def rolls(X: float32[6], Y: output(float32[5])):
    P = alloc(float32[6], "global")
    for i in range(2):
        with block("P_first", vi=spatial(6, i), family="P"):
            where(i < 1)
            P[vi] = X[vi] * 2.0
        for j in range(4):
            with block("P", vi=spatial(6, i * 4 + j + 1)):
                where(i * 4 + j < 5)
                P[vi] = X[vi] * 2.0
            with block("Y", vi=spatial(5, i * 4 + j)):
                where(i * 4 + j < 5)
                Y[vi] = P[vi] + P[vi + 1]
"""


def test_what_rolls_from_one_iteration_to_the_next_belongs_to_none() -> None:
    """The first element was made in the loop that goes on with it, and the storage sank there."""
    func = parse(ROLLS)
    after = FoldStorage()(func)
    assert outermost(after)
    assert shapes(after) == {"P": (6,)}
    x = np.arange(6, dtype=np.float32)
    (y,) = interpret(after, x, checked=True)
    np.testing.assert_array_equal(y, 2 * (x[:-1] + x[1:]))


def test_what_rolls_inside_of_a_tile_belongs_to_the_tile() -> None:
    def steps(sch: Schedule) -> None:
        (i,) = sch.loops("Y")
        _, inner = sch.split(i, (None, 4))
        sch.compute_at("P", inner)
        sch.rolling_buffer("P", inner)

    after = folded(pairs(8), steps)
    assert not outermost(after)
    assert shapes(after) == {"P": (2,)}


def test_parts_that_make_all_that_an_iteration_reads_belong_to_it() -> None:
    """The border of a padded row and its interior, in one loop over rows."""
    x = te.placeholder((4, 8), "float32", name="X")
    padded = te.compute(
        (4, 10), lambda i, j: te.select(te.all_of(j >= 1, j < 9), x[i, j - 1], 0.0), name="P"
    )
    y = te.compute((4, 8), lambda i, j: padded[i, j] + padded[i, j + 2], name="Y")

    def steps(sch: Schedule) -> None:
        sch.decompose_padding("P", sch.loops("P")[1])
        sch.merge(sch.loops("P")[0], sch.loops("Y")[0])

    after = folded(te.func(x, y, name="rows"), steps)
    assert not outermost(after)
    assert shapes(after) == {"P": (1, 10)}


def test_rows_that_an_earlier_iteration_wrote_are_kept_where_none_stands_before_the_first() -> None:
    """Of a window that begins before the tensor no first rows are made in a block of their own, so
    all accesses stood in one loop, and the storage sank there.
    """
    x = te.placeholder((7, 4), "float32", name="X")
    p = te.compute((7, 4), lambda i, j: x[i, j] * 2.0, name="P")
    y = te.compute(
        (7, 4),
        lambda i, j: te.select(x[i, j] > 0.0, te.select(i >= 1, p[i - 1, j], 0.0), 1.0) + p[i, j],
        name="Y",
    )
    sch = Schedule(te.func(x, y, name="behind"))
    row, _ = sch.loops("Y")
    sch.compute_at("P", row)
    sch.rolling_buffer("P", row)
    assert prove(sch)
    nest = lower_to_nest(sch.func)
    assert outermost(nest)
    given = np.random.default_rng(0).standard_normal((7, 4), dtype=np.float32)
    (found,) = interpret(nest, given, checked=True)
    (wanted,) = interpret(sch.original, given)
    np.testing.assert_array_equal(found, wanted)
