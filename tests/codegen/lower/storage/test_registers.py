"""Register-scope buffers become named vectors."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.storage.registers import Registers
from tilewright.tir.errors import TargetError
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

AVX512 = Target.parse("c:avx512")


def named(text: str) -> str:
    return str(Registers(AVX512)(parse(text)))


TILE = """
def f(A: float32[2, 32], C: output(float32[2, 32])):
    T = alloc(float32[2, 32], "register", origin=C)
    T[0, ramp(0, 1, 16)] = A[0, ramp(0, 1, 16)]
    T[1, ramp(16, 1, 16)] = T[0, ramp(0, 1, 16)]
    C[0, ramp(0, 1, 16)] = T[1, ramp(16, 1, 16)]
"""


def test_each_index_becomes_a_register_named_after_it() -> None:
    assert (
        named(TILE)
        == """\
def f(A: float32[2, 32], C: output(float32[2, 32])):
    T_0_0 = alloc(float32x16[()], "register", origin=C)
    T_1_1 = alloc(float32x16[()], "register", origin=C)
    T_0_0[()] = A[0, ramp(0, 1, 16)]
    T_1_1[()] = T_0_0[()]
    C[0, ramp(0, 1, 16)] = T_1_1[()]"""
    )


def test_a_masked_store_whose_other_lanes_nobody_reads_drops_its_mask() -> None:
    mask = "ramp(0, 1, 16) < broadcast(9, 16)"
    text = f"""
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[16], "register")
    masked(T[ramp(0, 1, 16)], {mask}) = masked(A[ramp(0, 1, 16)], {mask})
    masked(C[ramp(0, 1, 16)], {mask}) = masked(T[ramp(0, 1, 16)], {mask})
"""
    assert named(text).splitlines()[2:] == [
        "    T[()] = masked(A[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(9, 16))",
        "    masked(C[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(9, 16)) = T[()]",
    ]


@pytest.mark.parametrize(("read", "kept"), [(3, False), (9, False), (10, True)])
def test_fewer_lanes_of_a_masked_store_may_be_read(read: int, kept: bool) -> None:
    lanes = "ramp(0, 1, 16) < broadcast({}, 16)"
    text = f"""
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[16], "register")
    masked(T[ramp(0, 1, 16)], {lanes.format(9)}) = masked(A[ramp(0, 1, 16)], {lanes.format(9)})
    masked(C[ramp(0, 1, 16)], {lanes.format(read)}) = \
masked(T[ramp(0, 1, 16)], {lanes.format(read)})
"""
    assert ("T[()])" in named(text)) is kept


def test_one_mask_may_be_counted_from_another_lane() -> None:
    text = """
def f(A: float32[8], C: output(float32[8])):
    T = alloc(float32[16], "register")
    masked(T[ramp(8, 1, 8)], ramp(8, 1, 8) < broadcast(11, 8)) = A[ramp(0, 1, 8)]
    masked(C[ramp(0, 1, 8)], ramp(0, 1, 8) < broadcast(3, 8)) = \
masked(T[ramp(8, 1, 8)], ramp(0, 1, 8) < broadcast({}, 8))
"""
    assert "T_1[()] = A[ramp(0, 1, 8)]" in named(text.format(3))
    assert "T_1[()] = select(" in named(text.format(4))


def test_a_register_whose_first_store_leaves_out_lanes_that_are_read_begins_with_zeros() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[16], "register")
    masked(T[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(9, 16)) = A[ramp(0, 1, 16)]
    C[ramp(0, 1, 16)] = T[ramp(0, 1, 16)]
"""
    assert named(text).splitlines()[2:] == [
        "    T[()] = broadcast(0.0, 16)",
        "    T[()] = select(ramp(0, 1, 16) < broadcast(9, 16), A[ramp(0, 1, 16)], T[()])",
        "    C[ramp(0, 1, 16)] = T[()]",
    ]


def test_a_masked_store_whose_other_lanes_are_read_keeps_them() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[16], "register")
    T[ramp(0, 1, 16)] = broadcast(1.0, 16)
    masked(T[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(9, 16)) = A[ramp(0, 1, 16)]
    C[ramp(0, 1, 16)] = T[ramp(0, 1, 16)]
"""
    assert named(text).splitlines()[3:] == [
        "    T[()] = select(ramp(0, 1, 16) < broadcast(9, 16), A[ramp(0, 1, 16)], T[()])",
        "    C[ramp(0, 1, 16)] = T[()]",
    ]


def test_without_vector_registers_a_tile_stays_an_array() -> None:
    func = parse(TILE)
    assert Registers(Target.parse("c:scalar"))(func) is func


def test_an_index_that_a_loop_changes_is_refused() -> None:
    text = """
def f(A: float32[2, 16], C: output(float32[2, 16])):
    T = alloc(float32[2, 16], "register", origin=C)
    for ii in range(2):
        T[ii, ramp(0, 1, 16)] = A[ii, ramp(0, 1, 16)]
"""
    with pytest.raises(TargetError) as caught:
        named(text)
    assert str(caught.value) == (
        "TargetError: registers: 'T' lives in registers, but is indexed with a value that loop "
        "'ii' "
        "changes; expected constant indices. [register-index]\n"
        "  Hint: unroll loop 'ii'."
    )


def test_an_index_that_is_no_run_of_neighbours_is_refused() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[32], "register")
    T[ramp(0, 2, 16)] = A[ramp(0, 1, 16)]
"""
    with pytest.raises(TargetError) as caught:
        named(text)
    assert str(caught.value) == (
        "TargetError: registers: 'T' lives in registers, but is indexed with a value that is "
        "no run "
        "of neighbours; expected constant indices. [register-index]\n"
        "  Hint: vectorise along one dimension of it."
    )


def test_vectors_that_overlap_in_part_are_a_small_array() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    T = alloc(float32[16], "register")
    T[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]
    C[ramp(0, 1, 8)] = T[ramp(4, 1, 8)]
"""
    assert named(text).splitlines()[1:] == [
        '    T = alloc(float32[16], "register")',
        "    for T_0 in range(16):",
        "        T[T_0] = 0.0",
        "    T[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]",
        "    C[ramp(0, 1, 8)] = T[ramp(4, 1, 8)]",
    ]


def test_a_small_array_has_room_for_lanes_in_front_of_it_that_are_off() -> None:
    text = """
def f(C: output(float32[2])):
    T = alloc(float32[1], "register")
    T[0] = 1.0
    C[ramp(0, 1, 2)] = masked(T[ramp(-1, 1, 2)], on, broadcast(3.0, 2))
"""
    text = text.replace("on,", "ramp(0, -1, 2) < broadcast(0, 2),")
    assert named(text).splitlines()[1:] == [
        '    T = alloc(float32[2], "register")',
        "    for T_0 in range(2):",
        "        T[T_0] = 0.0",
        "    T[1] = 1.0",
        "    C[ramp(0, 1, 2)] = select(ramp(0, -1, 2) < broadcast(0, 2), T[ramp(0, 1, 2)], "
        "broadcast(3.0, 2))",
    ]


def test_a_part_of_a_vector_is_lanes_of_its_register() -> None:
    text = """
def f(A: float32[16], C: output(float32[4])):
    T = alloc(float32[16], "register")
    S = alloc(float32[4], "register")
    T[ramp(0, 1, 16)] = A[ramp(0, 1, 16)]
    S[ramp(0, 1, 4)] = T[ramp(4, 1, 4)] + T[ramp(12, 1, 4)]
    C[0] = S[3] + T[7]
"""
    assert named(text).splitlines()[1:] == [
        '    T = alloc(float32x16[()], "register")',
        '    S = alloc(float32x4[()], "register")',
        "    T[()] = A[ramp(0, 1, 16)]",
        "    S[()] = lanes(T[()], 4, 4) + lanes(T[()], 12, 4)",
        "    C[0] = lanes(S[()], 3, 1) + lanes(T[()], 7, 1)",
    ]


@pytest.mark.parametrize("target", ["c:avx512", "c:neon"])
def test_a_masked_store_to_a_small_array_keeps_the_other_lanes(target: str) -> None:
    text = """
def f(A: float32[4], C: output(float32[4])):
    T = alloc(float32[3], "register")
    masked(T[ramp(0, 1, 4)], ramp(0, 1, 4) < broadcast(3, 4)) = A[ramp(0, 1, 4)]
    C[2] = T[2]
"""
    assert str(Registers(Target.parse(target))(parse(text))).splitlines()[1:] == [
        '    T = alloc(float32[4], "register")',
        "    for T_0 in range(4):",
        "        T[T_0] = 0.0",
        "    T[ramp(0, 1, 4)] = select(ramp(0, 1, 4) < broadcast(3, 4), A[ramp(0, 1, 4)], "
        "T[ramp(0, 1, 4)])",
        "    C[2] = T[2]",
    ]


def test_a_masked_store_on_one_of_two_ways_begins_with_zeros() -> None:
    text = """
def f(n: dim(1, 4), A: float32[n], C: output(float32[n])):
    T = alloc(float32[4], "register")
    if 3 < n:
        T[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]
    else:
        masked(T[ramp(0, 1, 4)], ramp(0, 1, 4) < broadcast(n, 4)) = A[ramp(0, 1, 4)]
    C[0] = T[0]
"""
    assert named(text).splitlines()[1:3] == [
        '    T = alloc(float32x4[()], "register")',
        "    T[()] = broadcast(0.0, 4)",
    ]


def test_a_prefetch_of_a_register_goes() -> None:
    text = TILE.replace("    C[0", '    prefetch(T[0, 0], "read", 1)\n    C[0')
    assert named(text) == named(TILE)
