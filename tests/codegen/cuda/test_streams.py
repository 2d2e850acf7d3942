from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.codegen.cuda.streams import (
    Placed,
    missing_wait,
    order_ahead,
    place_on_streams,
    placed_at,
)
from tilewright.codegen.program_artifact import slices_of

from ...gpu_program import BYTES, ROWS, add, arena, branches, open_rows, piece, program

X, Y = piece("input", 0), piece("output", 0)


def placed(made: CudaProgram, most: int = 4) -> list[tuple[int, tuple[int, ...]]]:
    return [(step.stream, step.waits) for step in place_on_streams(made, most)]


def test_a_chain_stays_on_one_stream() -> None:
    chain = program(add(X, X, arena(0)), add(arena(0), X, arena(1)), add(arena(1), X, Y))
    assert placed(chain) == [(0, ()), (0, ()), (0, ())]


def test_branches_run_beside_each_other_and_meet() -> None:
    assert placed(branches()) == [(0, ()), (1, ()), (1, ()), (1, (0,))]


def test_a_wait_covers_all_that_came_before_on_its_stream() -> None:
    made = program(
        add(X, X, arena(0)),
        add(X, X, arena(1)),
        add(arena(0), X, arena(2)),
        add(arena(0), arena(2), arena(3)),
        add(arena(1), arena(0), arena(4)),
        add(arena(4), arena(2), arena(5)),
        add(arena(5), arena(3), Y),
    )
    assert placed(made) == [
        (0, ()),
        (1, ()),
        (0, ()),
        (0, ()),
        (1, (0,)),
        (1, (2,)),
        (1, (3,)),
    ]


def test_what_is_overwritten_has_been_read() -> None:
    made = program(add(X, X, arena(0)), add(arena(0), X, arena(1)), add(X, X, arena(0)))
    assert placed(made) == [(0, ()), (0, ()), (0, ())]


def test_there_are_no_more_streams_than_asked_for() -> None:
    made = program(*(add(X, X, arena(n)) for n in range(6)))
    assert [stream for stream, _ in placed(made)] == [0, 1, 2, 3, 0, 1]
    assert placed(made, most=1) == [(0, ())] * 6


places = st.integers(0, 15).map(lambda half: piece("arena", half * BYTES // 2))
steps = st.builds(add, places, places, places)


def ordered(all_steps: tuple[Placed, ...]) -> set[tuple[int, int]]:
    """The pairs of steps that a device runs one after the other."""
    before: list[set[int]] = []
    last: dict[int, int] = {}
    for number, step in enumerate(all_steps):
        direct = {*step.waits, *([last[step.stream]] if step.stream in last else [])}
        before.append(direct.union(*(before[one] for one in direct)))
        last[step.stream] = number
    return {(one, number) for number, earlier in enumerate(before) for one in earlier}


@given(st.lists(steps, max_size=14), st.integers(1, 5))
def test_steps_that_depend_are_in_order(body: list, most: int) -> None:
    """Arrays overlap by halves, so that much is overwritten in part."""
    made = program(*body)
    found = place_on_streams(made, most)
    assert [step.step for step in found] == body
    pairs = ordered(found)
    for (one, first), (other, second) in combinations(enumerate(body), 2):
        conflict = any(
            a.overlaps(b)
            for mine, theirs in ((first, second), (second, first))
            for a in made.written(mine)
            for b in slices_of(theirs)
        )
        assert not conflict or (one, other) in pairs
    assert missing_wait(made, found) is None
    for stream in range(most):
        order = order_ahead(found, stream)
        assert sorted(order) == list(range(len(body)))
        places = {number: place for place, number in enumerate(order)}
        assert all(places[one] < places[other] for one, other in pairs)


def test_a_stream_that_goes_ahead_leaves_behind_what_it_does_not_wait_for() -> None:
    found = place_on_streams(branches())
    assert [(step.stream, step.waits) for step in found] == [(0, ()), (1, ()), (1, ()), (1, (0,))]
    assert order_ahead(found, 0) == [0, 1, 2, 3]
    assert order_ahead(found, 1) == [1, 2, 0, 3]
    without = [replace(step, waits=()) for step in found]
    assert order_ahead(without, 1) == [1, 2, 3, 0]


def test_a_wait_that_is_missing_is_named() -> None:
    made = branches()
    without = [replace(step, waits=()) for step in place_on_streams(made)]
    assert missing_wait(made, without) == (0, 3)


def test_a_step_runs_where_it_runs_at_all_sizes() -> None:
    placed = place_on_streams(open_rows())
    for rows in (0, 5):
        there = placed_at(placed, {ROWS: rows})
        assert [(item.stream, item.waits) for item in there] == [
            (item.stream, item.waits) for item in placed
        ]
        assert tuple(item.step for item in there) == open_rows().at({ROWS: rows}).steps
