"""Loads, broadcasts and masks that straight-line code uses more than once."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.storage.common_loads import CommonLoads
from tilewright.tir.parsing.parser import parse


def named(body: str, **options: int) -> str:
    head = (
        "def f(A: float32[64], B: float32[64], C: output(float32[64]), D: output(float32[64])):\n"
    )
    text = (
        head
        + "    for i in range(3):\n"
        + "".join(f"        {line}\n" for line in body.strip().splitlines())
    )
    lines = str(CommonLoads(**options)(parse(text))).splitlines()[2:]
    return "\n".join(line[8:] for line in lines)


def test_a_value_is_named_just_before_its_first_use() -> None:
    before = """\
C[0] = A[i] * B[i]
C[1] = A[i + 1]
C[2] = A[i] * B[i + 1]
C[3] = A[i + 2] * B[i + 1]"""
    assert (
        named(before)
        == """\
A_1: float32 = A[i]
C[0] = A_1 * B[i]
C[1] = A[i + 1]
B_1: float32 = B[i + 1]
C[2] = A_1 * B_1
C[3] = A[i + 2] * B_1"""
    )


def test_a_broadcast_is_named_and_not_the_load_inside() -> None:
    before = """\
C[ramp(0, 1, 16)] = broadcast(A[i], 16) * B[ramp(0, 1, 16)]
C[ramp(16, 1, 16)] = broadcast(A[i], 16) * B[ramp(16, 1, 16)]"""
    assert (
        named(before)
        == """\
A_1: float32x16 = broadcast(A[i], 16)
C[ramp(0, 1, 16)] = A_1 * B[ramp(0, 1, 16)]
C[ramp(16, 1, 16)] = A_1 * B[ramp(16, 1, 16)]"""
    )


def test_a_store_to_the_buffer_ends_a_load() -> None:
    before = """\
D[0] = C[i] + C[i]
C[i] = 1.0
D[1] = C[i] + C[i]"""
    assert (
        named(before)
        == """\
C_1: float32 = C[i]
D[0] = C_1 + C_1
del C_1
C[i] = 1.0
C_1: float32 = C[i]
D[1] = C_1 + C_1"""
    )


@pytest.mark.parametrize(
    ("stored", "read", "named_once"),
    [
        ("[(i + 1) % 2, 3]", "[i % 2, 3]", True),  # another step of two
        ("[(i + 3) % 2, 3]", "[i % 2, 3]", True),
        ("[(i + 2) % 2, 3]", "[i % 2, 3]", False),  # the same one
        ("[i % 2, 3]", "[i % 3, 3]", False),
        ("[i, 4]", "[i, 3]", True),
        ("[i, i]", "[i, 3]", False),
        ("[i, i + 4]", "[i, i + 3]", True),
    ],
)
def test_a_store_to_another_element_ends_no_load(stored: str, read: str, named_once: bool) -> None:
    text = (
        "def f(S: inout(float32[3, 8])):\n"
        "    for i in range(2):\n"
        f"        S{stored} = S{read} + 1.0\n"
        f"        S[i, 7] = S{read}\n"
    )
    after = str(CommonLoads()(parse(text)))
    assert ("S_1: float32 = " in after) == named_once


def test_what_a_scalar_select_may_skip_is_not_loaded_early() -> None:
    before = "C[i] = select(i < 2, A[i + 60] + A[i + 60], 0.0)"
    assert named(before) == before


def test_a_load_that_is_sure_serves_a_branch_too() -> None:
    before = "C[i] = A[i] + select(i < 2, A[i], A[i] * 2.0) + A[i]"
    assert named(before) == "A_1: float32 = A[i]\nC[i] = A_1 + select(i < 2, A_1, A_1 * 2.0) + A_1"


def test_a_mask_is_named_once() -> None:
    mask = "ramp(0, 1, 16) < broadcast(i, 16)"
    before = f"masked(C[ramp(0, 1, 16)], {mask}) = masked(A[ramp(0, 1, 16)], {mask})"
    assert named(before) == (
        f"on: boolx16 = {mask}\nmasked(C[ramp(0, 1, 16)], on) = masked(A[ramp(0, 1, 16)], on)"
    )


def test_at_most_the_most_used_values_of_a_run_are_named() -> None:
    before = "C[0] = A[i] + B[i] + A[i] + B[i] + B[i]"
    assert named(before, max_names=1) == "B_1: float32 = B[i]\nC[0] = A[i] + B_1 + A[i] + B_1 + B_1"


def test_the_mask_of_elements_whose_bits_are_taken_stays_where_it_is() -> None:
    """One of four points looks like one of four lanes; code is written for the first."""
    text = """\
def f(a: uint8[4], b: int8[16], c: output(int32[8])):
    c[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(1, 4), usdot(c[ramp(0, 1, 4)], \
broadcast(reinterpret(masked(a[ramp(0, 1, 4)], ramp(0, 1, 4) < broadcast(1, 4)), "int32"), 4), \
reinterpret(b[ramp(0, 1, 16)], "int32x4")), c[ramp(0, 1, 4)])
    c[ramp(4, 1, 4)] = select(ramp(0, 1, 4) < broadcast(1, 4), broadcast(int32(0), 4), \
c[ramp(4, 1, 4)])
"""
    after = str(CommonLoads()(parse(text)))
    assert "on: boolx4 = ramp(0, 1, 4) < broadcast(1, 4)\n" in after
    assert "reinterpret(masked(a[ramp(0, 1, 4)], ramp(0, 1, 4) < broadcast(1, 4))" in after
    assert after.count("select(on, ") == 2
