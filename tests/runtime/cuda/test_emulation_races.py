"""Races and barriers of random programs, as checked mode sees them and as defined."""

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

READ, WRITE, ADD, BARRIER, WARP_BARRIER = range(5)
THREADS, BLOCKS = 80, 3

# each thread runs the program's steps; an access is made by the thread that the step names
SOURCE = """\
extern "C" __global__ void program(const int* __restrict__ steps, int n, float* cell)
{
    __shared__ float tile[1];
    const int tx = (int)threadIdx.x, bx = (int)blockIdx.x;
    float seen = 0.0f;
    for (int i = 0; i < n; ++i) {
        const int kind = steps[4 * i];
        if (kind == 3) __syncthreads();
        else if (kind == 4) __syncwarp();
        else if (steps[4 * i + 1] == bx && steps[4 * i + 2] == tx) {
            float* where = steps[4 * i + 3] ? &tile[0] : &cell[0];
            if (kind == 0) seen = *where;
            else if (kind == 1) *where = seen;
            else atomicAdd(where, 1.0f);
        }
    }
}
"""


@dataclass(frozen=True)
class Step:
    kind: int
    block: int
    thread: int
    shared: bool


def conflict(program: list[Step], one: int, other: int) -> bool:
    """Whether two accesses of a program race, by the definition."""
    first, second = program[one], program[other]
    if first.shared != second.shared or {first.kind, second.kind} in ({READ}, {ADD}):
        return False
    if first.block != second.block:
        return not first.shared
    if first.thread == second.thread:
        return False
    between = {step.kind for step in program[one:other]}
    same_warp = first.thread // 32 == second.thread // 32
    return BARRIER not in between and not (same_warp and WARP_BARRIER in between)


def has_race(program: list[Step]) -> bool:
    accesses = [index for index, step in enumerate(program) if step.kind < BARRIER]
    return any(conflict(program, one, other) for one, other in combinations(accesses, 2))


def needed_barriers(program: list[Step]) -> int:
    """How many barriers, over all blocks, are all that stands between two accesses."""
    found = set()
    for one, other in combinations(range(len(program)), 2):
        first, second = program[one], program[other]
        between = [i for i in range(one, other) if program[i].kind == BARRIER]
        if max(first.kind, second.kind) < BARRIER and len(between) == 1:
            without = [step for step in program[one : other + 1] if step.kind != BARRIER]
            if first.block == second.block and conflict(without, 0, len(without) - 1):
                found.add((first.block, between[0]))
    return len(found)


few = st.sampled_from([0, 1, 5, 33, 40, 70])
steps = st.builds(
    Step,
    kind=st.sampled_from([READ, READ, WRITE, ADD, BARRIER, WARP_BARRIER]),
    block=st.integers(0, BLOCKS - 1),
    thread=few,
    shared=st.booleans(),
)


@settings(max_examples=200)
@given(st.lists(steps, min_size=2, max_size=10))
def test_a_race_is_found_just_where_there_is_one_and_a_needed_barrier_is_known(
    program: list[Step],
) -> None:
    table = np.array([[s.kind, s.block, s.thread, s.shared] for s in program], np.int32)
    arrays = {"steps": table, "cell": np.zeros(1, np.float32)}
    launch = flat("program", BLOCKS, THREADS, ("steps", "count", "cell"))
    report = emulate(SOURCE, [launch], {**arrays, "count": len(program)}, checked=True)
    kinds = {finding.kind for finding in report.findings}
    assert kinds <= {"race", "unwritten"}
    assert ("race" in kinds) == has_race(program), str(report)
    if "race" not in kinds:
        assert sum(barrier.needed for barrier in report.barriers) == needed_barriers(program)
