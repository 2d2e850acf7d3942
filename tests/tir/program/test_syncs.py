"""Where threads wait in branches and loops, and what is refused of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.program.program import (
    Branch,
    Copy,
    KeepLargest,
    Launch,
    LoopRow,
    Repeat,
    Slice,
    Step,
    Sync,
)
from tilewright.tir.program.syncs import place_syncs, verify_program

from ...checked_program import embedding
from ...looping_program import MADE, MORE, NUMBER, SUM, C, N, X, Y, looping, vector


def placed(*steps: Step) -> tuple[Step, ...]:
    """The steps with their Syncs, and those of them anew."""
    program = place_syncs(replace(looping(), body=steps))
    assert place_syncs(program) is program
    verify_program(program)
    return program.body


def refused(*steps: Step) -> str:
    with pytest.raises(IRError) as caught:
        verify_program(replace(looping(), body=steps))
    return str(caught.value)


def launch(function: str, *arguments: Slice) -> Launch:
    return Launch(function, arguments)


def without(steps: Sequence[Step], number: int) -> tuple[tuple[Step, ...], int]:
    """The steps without the Sync of that number; how many there were."""
    found: list[Step] = []
    seen = 0
    for step in steps:
        match step:
            case Sync():
                seen += 1
                if seen - 1 != number:
                    found.append(step)
            case Branch():
                then, count = without(step.then, number - seen)
                seen += count
                otherwise, count = without(step.otherwise, number - seen)
                seen += count
                found.append(replace(step, then=then, otherwise=otherwise))
            case Repeat():
                body, count = without(step.body, number - seen)
                seen += count
                found.append(replace(step, body=body))
            case _:
                found.append(step)
    return tuple(found), seen


def test_without_any_one_of_its_syncs_a_program_is_refused() -> None:
    program = looping()
    verify_program(program)
    _, count = without(program.body, -1)
    assert count == 8
    for number in range(count):
        body, _ = without(program.body, number)
        with pytest.raises(IRError):
            verify_program(replace(program, body=body))


def test_a_condition_is_read_behind_a_sync_and_not_written_before_another() -> None:
    more = launch("below", NUMBER, MORE)
    copy = Copy(X, Y)
    assert placed(more, Branch(MORE, (copy,), ())) == (more, Sync(), Branch(MORE, (copy,), ()))
    later = Branch(MORE, (), (copy,)), Sync(), more
    assert placed(*later) == later
    loop = Repeat(0, 3, MORE, (Sync(), more, Sync()))
    assert placed(Repeat(0, 3, MORE, (more,))) == (loop,)


def test_what_only_the_first_iteration_waits_for_is_waited_for_before_the_loop() -> None:
    copy, add = Copy(X, Y), launch("add", Y, X, SUM)
    assert placed(copy, Repeat(0, 3, None, (add,))) == (
        copy,
        Sync(),
        Repeat(0, 3, None, (add, Sync())),
    )


def test_behind_a_loop_that_may_not_run_what_came_before_is_waited_for() -> None:
    copy, read = Copy(X, SUM), Copy(SUM, Y)
    empty = Repeat(0, 3, None, (Sync(),))
    assert placed(copy, empty, read) == (copy, empty, read)
    never = replace(empty, count=N)
    assert placed(copy, never, read) == (copy, never, Sync(), read)


def test_behind_a_branch_both_of_its_ways_are_waited_for() -> None:
    read = launch("negate", MADE, Y)
    for branch in (Branch(C, (Copy(X, MADE),), ()), Branch(C, (), (Copy(X, MADE),))):
        assert placed(branch, read) == (branch, Sync(), read)


def test_loops_are_well_formed() -> None:
    copy = Copy(X, Y)
    assert refused(Repeat(0, 3, None, (copy,))) == (
        "IRError: program: an iteration of 'for i0 below 3:' ends without a sync; expected one, so "
        "that the next one finds all that it did. [program-iteration]"
    )
    loop = Repeat(0, 3, None, (Sync(),))
    assert refused(loop, loop) == (
        "IRError: program: two loops have the number 0; expected one each. [program-loop]"
    )
    assert refused(loop, Copy(vector("input", 3, LoopRow(0, 3)), Y)) == (
        "IRError: program: 'copy(input[3][i0]: float32[4] -> output[0]: float32[4])' follows loop "
        "0; expected one that it is in. [program-row]"
    )
    assert refused(Repeat(0, C, None, (Sync(),))) == (
        "IRError: program: 'for i0 below input[1]: bool[()]:' asks input[1]: bool[()]; expected "
        "one int64. [program-asked]"
    )
    assert "asks input[0]: int64[()]; expected one bool. [program-asked]" in refused(
        Branch(N, (), ())
    )


def test_a_row_needs_its_whole_array() -> None:
    assert refused(Repeat(0, 4, None, (Copy(vector("input", 3, LoopRow(0, 3)), Y), Sync()))) == (
        "IRError: program: 'copy(input[3][i0]: float32[4] -> output[0]: float32[4])' follows the "
        "rows of an array of 3 through 'for i0 below 4:'; expected as many iterations. "
        "[program-rows]"
    )
    outside = vector("arena", 0, LoopRow(0, 17))
    assert "which does not exist. [program-slice]" in refused(
        Repeat(0, 17, None, (Copy(X, outside), Sync()))
    )


def test_the_check_of_a_launch_in_a_loop_is_kept() -> None:
    program = embedding()
    verify_program(program)
    words = [check.word for check in program.checks]
    nested = replace(program, body=(Repeat(0, 2, None, (*program.body, Sync())),))
    with pytest.raises(IRError) as caught:
        verify_program(nested)
    assert str(caught.value).endswith(
        "may run several times or not at all; expected the largest result of its check of "
        f"'{program.checks[0].check.what}' to be kept. [program-check-kept]"
    )
    kept = [replace(w, position=program.arena_bytes + 8 * n) for n, w in enumerate(words)]
    keeping = tuple(KeepLargest(one, other) for one, other in zip(words, kept, strict=True))
    body = (Repeat(0, 2, None, (*program.body, Sync(), *keeping, Sync())),)
    longer = replace(program, body=body, arena_bytes=program.arena_bytes + 8 * len(words))
    verify_program(longer)
    assert [check.word for check in longer.checks] == kept

    with pytest.raises(IRError) as caught:
        verify_program(replace(longer, body=(*body, Copy(words[0], kept[0]))))
    assert "[program-check]" in str(caught.value)
