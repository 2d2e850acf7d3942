"""The check of a plan finds every planted overlap, by walking through the steps."""

from __future__ import annotations

import tracemalloc

import pytest

from tilewright.graph.memory_check import CELL, check_plan
from tilewright.graph.memory_plan import MemoryPlan, Placement, Use
from tilewright.tir.errors import InternalError

SIZES = {"a": 100, "b": 100, "c": 64}
USES = (Use((), "a"), Use(("a",), "b", ("a",)), Use(("a", "b"), "c"), Use(("c",), None))
HINT = "\n  Hint: this is a defect of tilewright; please report it with the program that led here."


def plan(
    a: int, b: int, c: int, arena: int = 512, in_place: tuple[tuple[str, str], ...] = ()
) -> MemoryPlan:
    offsets = {"a": a, "b": b, "c": c}
    placements = tuple(Placement(n, at, SIZES[n], 0, 0) for n, at in offsets.items())
    return MemoryPlan(arena, 0, "by hand", placements, in_place)


def refusal(wrong: MemoryPlan, uses: tuple[Use, ...] = USES) -> str:
    with pytest.raises(InternalError) as caught:
        check_plan(wrong, uses, SIZES)
    return str(caught.value)


def test_tensors_apart_are_fine() -> None:
    check_plan(plan(0, 128, 256), USES, SIZES)


def test_a_place_may_be_used_again_when_its_tensor_is_dead() -> None:
    uses = (Use((), "a"), Use(("a",), "b"), Use(("b",), "c"), Use(("c",), None))
    check_plan(plan(0, 128, 0), uses, SIZES)


@pytest.mark.parametrize("at", [0, 64])
def test_a_tensor_that_is_overwritten_before_its_last_read_is_found(at: int) -> None:
    assert refusal(plan(0, at, 256), (Use((), "a"), Use((), "b"), Use(("a",), None))) == (
        "InternalError: memory plan: step 2 reads 'a', whose bytes were not written or are taken. "
        "[plan-check]" + HINT
    )


def test_a_tensor_is_found_to_be_lost_whichever_comes_first() -> None:
    uses = (Use((), "b"), Use((), "a"), Use(("b",), None))
    assert "step 2 reads 'b', whose bytes were not written or are taken" in refusal(
        plan(0, 0, 256), uses
    )


def test_a_tensor_that_was_never_written_is_found() -> None:
    assert "step 0 reads 'a', whose bytes were not written" in refusal(
        plan(0, 128, 256), (Use(("a",), None),)
    )


def test_the_last_bytes_of_the_arena_are_looked_at_too() -> None:
    uses = (Use((), "a"), Use((), "c"), Use(("a",), None))
    wrong = MemoryPlan(
        128, 0, "by hand", (Placement("a", 0, 100, 0, 0), Placement("c", 64, 64, 0, 0))
    )
    assert "step 2 reads 'a', whose bytes were not written or are taken" in refusal(wrong, uses)


def test_an_arena_of_one_cell_is_looked_at_too() -> None:
    places = (Placement("a", 0, 64, 0, 0), Placement("b", 0, 64, 0, 0))
    uses = (Use((), "a"), Use((), "b"), Use(("a",), None))
    with pytest.raises(InternalError, match="step 2 reads 'a'"):
        check_plan(MemoryPlan(64, 0, "by hand", places), uses, {"a": 64, "b": 64})


def test_a_result_over_an_input_of_the_same_step_is_found() -> None:
    assert "step 1 writes 'b' over 'a', which it reads" in refusal(plan(0, 64, 256))
    assert "step 2 writes 'c' over 'b', which it reads" in refusal(plan(0, 128, 192))


def test_a_result_may_take_the_place_of_an_input_that_dies() -> None:
    uses = (Use((), "a"), Use(("a",), "b", ("a",)), Use(("b",), "c"), Use(("c",), None))
    check_plan(plan(0, 0, 256, in_place=(("b", "a"),)), uses, SIZES)
    assert "step 1 writes 'b' over 'a'" in refusal(plan(0, 0, 256), uses)
    unsafe = (uses[0], Use(("a",), "b"), *uses[2:])
    assert "step 1 writes 'b' over 'a'" in refusal(plan(0, 0, 256, in_place=(("b", "a"),)), unsafe)


def test_a_result_in_place_of_an_input_that_is_read_again_is_found() -> None:
    wrong = plan(0, 0, 256, in_place=(("b", "a"),))
    assert "step 2 reads 'a'" in refusal(wrong)


def test_places_outside_the_arena_or_not_aligned_are_found() -> None:
    assert "'c' lies at bytes 512 to 576 of 512" in refusal(plan(0, 128, 512))
    assert "'b' lies at bytes 130 to 230 of 512" in refusal(plan(0, 130, 256))


def test_a_tensor_without_a_place_is_found() -> None:
    part = MemoryPlan(512, 0, "by hand", plan(0, 128, 256).placements[:2])
    assert "step 2 writes 'c', which has no place" in refusal(part)
    assert "step 0 reads 'x', which has no place" in refusal(part, (Use(("x",), None),))


def test_an_arena_of_any_size_is_checked_in_little_memory() -> None:
    huge = 1 << 45
    sizes = dict.fromkeys("abc", huge)
    placements = tuple(Placement(n, at * huge, huge, 0, 0) for at, n in enumerate("abc"))
    tracemalloc.start()
    check_plan(MemoryPlan(3 * huge, 0, "by hand", placements, ()), USES, sizes)
    over = (*placements[:2], Placement("c", huge + CELL, huge, 0, 0))
    uses = (Use((), "a"), Use((), "b"), Use(("a",), "c"), Use(("b",), None))
    with pytest.raises(InternalError, match="step 3 reads 'b', whose bytes were not written"):
        check_plan(MemoryPlan(3 * huge, 0, "by hand", over, ()), uses, sizes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
