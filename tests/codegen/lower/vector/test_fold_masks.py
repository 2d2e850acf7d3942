"""Masks that are on, or off, in every lane."""

from __future__ import annotations

from tilewright.codegen.lower.vector.fold_masks import FoldMasks
from tilewright.tir.parsing.parser import parse


def folded(body: str) -> list[str]:
    head = "def f(A: float32[64], C: output(float32[64])):\n    for i in range(3):\n        "
    return str(FoldMasks()(parse(head + body + "\n"))).splitlines()[2:]


def test_a_mask_that_is_on_in_all_lanes_is_dropped() -> None:
    assert folded(
        "masked(C[ramp(i * 16, 1, 16)], ramp(i * 16, 1, 16) < broadcast(48, 16)) = "
        "masked(A[ramp(i * 16, 1, 16)], ramp(i * 16, 1, 16) < broadcast(48, 16))"
    ) == ["        C[ramp(i * 16, 1, 16)] = A[ramp(i * 16, 1, 16)]"]


def test_a_store_that_is_off_in_all_lanes_disappears() -> None:
    func = parse(
        "def f(A: float32[64], C: output(float32[64])):\n    for i in range(3):\n"
        "        masked(C[ramp(i * 16, 1, 16)], broadcast(50, 16) < ramp(i * 16, 1, 16)) = "
        "broadcast(0.0, 16)\n"
        "        C[i] = 1.0\n"
    )
    assert str(FoldMasks()(func)).splitlines()[2:] == ["        C[i] = 1.0"]


def test_a_load_that_is_off_in_all_lanes_is_its_other_value() -> None:
    assert folded(
        "C[ramp(i * 16, 1, 16)] = masked(A[ramp(i * 16, 1, 16)], broadcast(50, 16) <= ramp(i * "
        "16, 1, 16), broadcast(2.0, 16))"
    ) == ["        C[ramp(i * 16, 1, 16)] = broadcast(2.0, 16)"]


def test_a_mask_that_some_lanes_leave_stays() -> None:
    vector = "ramp(i * 16, 1, 16)"
    line = f"masked(C[{vector}], {vector} < broadcast(47, 16)) = broadcast(0.0, 16)"
    assert folded(line) == [f"        {line}"]


def test_the_opposite_of_a_mask_of_all_lanes_is_one() -> None:
    vector = "ramp(i * 16, 1, 16)"
    off, on = f"not ({vector} < broadcast(48, 16))", f"not (broadcast(50, 16) < {vector})"
    assert folded(f"masked(C[{vector}], {off}) = broadcast(0.0, 16)") == []
    assert folded(f"masked(C[{vector}], {on}) = broadcast(0.0, 16)") == [
        f"        C[{vector}] = broadcast(0.0, 16)"
    ]


def test_a_conjunct_that_always_holds_is_dropped_from_a_select() -> None:
    assert folded(
        "C[ramp(i * 16, 1, 16)] = select(ramp(i * 16, 1, 16) < broadcast(48, 16) and "
        "ramp(0, 1, 16) < broadcast(3, 16), A[ramp(0, 1, 16)], broadcast(0.0, 16))"
    ) == [
        "        C[ramp(i * 16, 1, 16)] = select(ramp(0, 1, 16) < broadcast(3, 16), A[ramp(0, "
        "1, 16)], broadcast(0.0, 16))"
    ]
