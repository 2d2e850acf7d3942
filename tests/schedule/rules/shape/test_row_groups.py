"""Which blocks a rule computes together, row by row."""

from __future__ import annotations

from tilewright import te
from tilewright.schedule.rules.shape.row_groups import RowGroup, row_groups
from tilewright.tir.func import PrimFunc

ROWS, PLACES, SIZE = 6, 20, 32


def walk(outputs: int) -> PrimFunc:
    """Three steps through a table, of one output or two each, and what stands where they end."""
    table = te.placeholder((SIZE,), "int32", name="table")
    starts = te.placeholder((ROWS, PLACES), "int32", name="starts")
    before: tuple[te.Tensor, ...] = (starts,)
    for number in range(3):

        def step(
            i: te.Expr, j: te.Expr, read: tuple[te.Tensor, ...] = before
        ) -> te.Expr | tuple[te.Expr, te.Expr]:
            at = te.clamp_index(read[0][i, j] + read[-1][i, j], SIZE)
            return (table[at], table[at] + 1) if outputs > 1 else table[at]

        names = tuple(f"{side}{number}" for side in ("a", "b"))
        made = te.compute((ROWS, PLACES), step, name=names if outputs > 1 else names[0])
        before = made if isinstance(made, tuple) else (made,)
    last = te.compute((ROWS, PLACES), lambda i, j: before[0][i, j] * 2, name="last")
    return te.func(table, starts, last, name="walk")


def test_steps_of_several_outputs_are_a_row_with_what_reads_them() -> None:
    (group,) = row_groups(walk(2))
    assert group == RowGroup("last", group.members, 1)
    assert len(group.members) == 3


def test_steps_of_one_output_are_inlined_instead_and_stand_alone() -> None:
    assert {group.rows for group in row_groups(walk(1))} == {0}
