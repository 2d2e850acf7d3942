"""codegen/lower/threads/copy_at_once.py: copies that nothing waits for end where they stand."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.threads.copy_at_once import CopyAtOnce
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal

from ....schedule.grids import tiled
from ....schedule.programs import matmul

A100 = Target.parse("cuda:sm_80")


def row_sums(rows: int, columns: int) -> PrimFunc:
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="Y")
    return te.func(x, y, name="row_sums")


def a_row_for_each_thread(sch: Schedule) -> None:
    """Each thread fetches parts of its own row, ahead, which no other thread touches."""
    row, column = sch.loops("Y")
    block, thread = sch.split(row, (None, 32))
    part, inside = sch.split(column, (None, 4))
    sch.reorder(block, part, thread, inside)
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    copy = sch.cache_read("Y", "X")
    sch.bind(sch.compute_at(copy, part)[0], "threadIdx.x")
    sch.set_scope(copy, "shared")
    sch.annotate(part, "stages", 3)
    sch.stage("Y", "Y", block, "register")


def test_ends_of_groups_go_where_no_barrier_waits_for_them() -> None:
    nest = lower_to_nest(Schedule(row_sums(64, 64)).apply(a_row_for_each_thread).func)
    text = str(nest)
    assert text.count("commit(X_cache, 2)") == 2
    assert "barrier()" not in text
    kept = "\n".join(line for line in text.splitlines() if "commit(" not in line)
    assert equal(CopyAtOnce()(nest), parse(kept))


def test_a_barrier_before_the_loop_does_not_wait_for_its_copies() -> None:
    nest = lower_to_nest(Schedule(row_sums(64, 64)).apply(a_row_for_each_thread).func)
    lines = str(nest).splitlines()
    at = next(n for n, line in enumerate(lines) if "for k_0 in range(16)" in line)
    waiting = parse("\n".join((*lines[:at], "        barrier()", *lines[at:])))
    assert "commit(" not in str(CopyAtOnce()(waiting))


def test_those_that_a_barrier_waits_for_stay() -> None:
    nest = lower_to_nest(Schedule(matmul(16, 16, 12)).apply(tiled(stages=2)).func)
    assert CopyAtOnce()(nest) is nest


@pytest.mark.needs_cxx
def test_each_thread_has_what_it_fetched_itself() -> None:
    sch = Schedule(row_sums(64, 64), A100).apply(a_row_for_each_thread)
    kernel = tw.build(sch, A100)
    assert kernel.proof is not None
    assert kernel.proof.status == "proved"
    assert "tw_cp_async" not in kernel.source
    given = np.random.default_rng(0).integers(-4, 5, (64, 64)).astype(np.float32)
    np.testing.assert_array_equal(tw.emulated(kernel, checked=True)(given), given.sum(axis=1))
