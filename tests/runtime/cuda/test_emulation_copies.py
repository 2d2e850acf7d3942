"""Copies that land late: random programs, as checked mode sees them and as defined."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.runtime.cuda.emulator.emulator import emulate

from ...launches import flat

pytestmark = pytest.mark.needs_cxx

READ, WRITE, COPY, COMMIT, WAIT_ALL, WAIT_ONE, BARRIER, WARP_BARRIER = range(8)
THREADS = 80

# an access or a copy is made by the thread that the step names, all else by every thread
SOURCE = """\
extern "C" __global__ void program(const int* __restrict__ steps, int n, const float* x)
{
    __shared__ float tile[1];
    const int tx = (int)threadIdx.x;
    float seen = 0.0f;
    if (tx == 79) tile[0] = 1.0f;
    __syncthreads();
    for (int i = 0; i < n; ++i) {
        const int kind = steps[2 * i];
        if (kind == 3) tw_cp_async_commit();
        else if (kind == 4) tw_cp_async_wait<0>();
        else if (kind == 5) tw_cp_async_wait<1>();
        else if (kind == 6) __syncthreads();
        else if (kind == 7) __syncwarp();
        else if (steps[2 * i + 1] == tx) {
            if (kind == 0) seen = tile[0];
            else if (kind == 1) tile[0] = seen;
            else tw_cp_async_4(&tile[0], &x[0]);
        }
    }
}
"""


@dataclass(frozen=True)
class Step:
    kind: int
    thread: int


def landing(program: list[Step], issued: int) -> int:
    """Where a copy lands; behind the end where it never does."""
    committed = 0
    for index in range(issued, len(program)):
        kind = program[index].kind
        committed += kind == COMMIT
        if (kind == WAIT_ALL and committed > 0) or (kind == WAIT_ONE and committed > 1):
            return index
    return len(program)


def comes_before(program: list[Step], one: int, first: int, other: int, second: int) -> bool:
    """Whether what a first thread does at one place is done before a second's, at another."""
    if one >= other:
        return False
    if first == second:
        return True
    between = {step.kind for step in program[one:other]}
    return BARRIER in between or (first // 32 == second // 32 and WARP_BARRIER in between)


def conflict(program: list[Step], one: int, other: int) -> bool:
    first, second = program[one], program[other]
    if first.kind == second.kind == READ:
        return False
    ends = [landing(program, i) if program[i].kind == COPY else i for i in (one, other)]
    return not (
        comes_before(program, ends[0], first.thread, other, second.thread)
        or comes_before(program, ends[1], second.thread, one, first.thread)
    )


steps = st.builds(
    Step,
    kind=st.sampled_from(
        [READ, READ, WRITE, COPY, COPY, COMMIT, COMMIT, WAIT_ALL, WAIT_ONE, BARRIER, WARP_BARRIER]
    ),
    thread=st.sampled_from([0, 1, 5, 33, 70]),
)


@settings(max_examples=250)
@given(st.lists(steps, min_size=2, max_size=12))
def test_an_access_and_a_copy_conflict_just_where_nothing_orders_them(program: list[Step]) -> None:
    table = np.array([[step.kind, step.thread] for step in program], np.int32)
    arrays = {"steps": table, "x": np.zeros(1, np.float32)}
    launch = flat("program", 1, THREADS, ("steps", "count", "x"))
    report = emulate(SOURCE, [launch], {**arrays, "count": len(program)}, checked=True)
    assert {finding.kind for finding in report.findings} <= {"race", "early"}
    touches = [index for index, step in enumerate(program) if step.kind <= COPY]
    expected = any(conflict(program, one, other) for one, other in combinations(touches, 2))
    assert bool(report) != expected, str(report)
