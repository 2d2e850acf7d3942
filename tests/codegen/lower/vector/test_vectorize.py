"""Vectorised loops become vectors: the text, and what is refused. Values:
tests/codegen/c/test_values.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.vector.vectorize import Vectorize
from tilewright.tir.errors import TargetError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target


def vectorized(text: str, target: str = "c:avx512") -> str:
    return str(Vectorize(Target.parse(target))(parse(text)))


def test_a_loop_becomes_whole_vectors_and_a_masked_rest() -> None:
    text = """
def f(A: float32[40], C: output(float32[40])):
    for i in vectorized(40):
        C[i] = A[i] + 1.0
"""
    mask = "ramp(0, 1, 16) < broadcast(8, 16)"
    last = f"masked(A[ramp(32, 1, 16)], {mask}) + broadcast(1.0, 16)"
    assert vectorized(text).splitlines()[1:] == [
        "    for i in unrolled(2):",
        "        C[ramp(i * 16, 1, 16)] = A[ramp(i * 16, 1, 16)] + broadcast(1.0, 16)",
        f"    masked(C[ramp(32, 1, 16)], {mask}) = {last}",
    ]


def test_many_vectors_stay_a_loop() -> None:
    text = """
def f(A: float32[1024], C: output(float32[1024])):
    for i in vectorized(1024):
        C[i] = A[i]
"""
    assert "for i in range(64):" in vectorized(text)
    assert "for i in range(128):" in vectorized(text, "c:avx2")


def test_the_widest_type_decides_the_lanes() -> None:
    text = """
def f(A: float64[32], B: float32[32], C: output(float64[32])):
    for i in vectorized(32):
        C[i] = A[i] + cast(B[i], "float64")
"""
    assert 'cast(B[ramp(i * 8, 1, 8)], "float64x8")' in vectorized(text)
    assert 'cast(B[ramp(i * 4, 1, 4)], "float64x4")' in vectorized(text, "c:avx2")


def test_numbers_of_lanes_are_cast_from_int32() -> None:
    text = """
def f(A: output(float32[16]), N: output(int32[16])):
    for i in vectorized(16):
        A[i] = cast(i, "float32")
        N[i] = cast(i, "int32")
"""
    lanes = "ramp(int32(0), 1, 16)"
    assert vectorized(text).splitlines()[1:] == [
        f'    A[ramp(0, 1, 16)] = cast({lanes}, "float32x16")',
        f"    N[ramp(0, 1, 16)] = {lanes}",
    ]


def test_without_vector_registers_the_loop_runs_serially() -> None:
    text = """
def f(A: float32[32], C: output(float32[32])):
    for i in vectorized(32):
        C[i] = A[i]
"""
    assert vectorized(text, "c:scalar") == text.strip().replace("vectorized", "range")


def test_the_inner_of_two_nested_vectorised_loops_wins() -> None:
    text = """
def f(A: float32[4, 16], C: output(float32[4, 16])):
    for i in vectorized(4):
        for j in vectorized(16):
            C[i, j] = A[i, j]
"""
    assert vectorized(text).splitlines()[1:] == [
        "    for i in range(4):",
        "        C[i, ramp(0, 1, 16)] = A[i, ramp(0, 1, 16)]",
    ]


def test_a_condition_that_lanes_share_stays_a_condition() -> None:
    text = """
def f(A: float32[4, 16], C: output(float32[4, 16])):
    for i in range(4):
        for j in vectorized(16):
            if i < 3 and j < i + 5:
                C[i, j] = A[i, j]
"""
    assert vectorized(text).splitlines()[2:] == [
        "        if i < 3:",
        "            masked(C[i, ramp(0, 1, 16)], ramp(i * (-1), 1, 16) < broadcast(5, 16)) = "
        "masked(A[i, ramp(0, 1, 16)], ramp(i * (-1), 1, 16) < broadcast(5, 16))",
    ]


def test_a_select_of_a_load_is_a_masked_load() -> None:
    text = """
def f(A: float32[10], C: output(float32[16])):
    for j in vectorized(16):
        C[j] = select(j < 10, A[j], -1.0)
"""
    assert vectorized(text).splitlines()[1:] == [
        "    C[ramp(0, 1, 16)] = masked(A[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(10, 16), "
        "broadcast(-1.0, 16))"
    ]


def test_a_branch_reads_what_the_condition_has_read_without_a_mask() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    for j in vectorized(16):
        C[j] = select(A[j] < 0.0, A[j] * 2.0, A[j] + 1.0)
"""
    read = "A[ramp(0, 1, 16)]"
    assert vectorized(text).splitlines()[1:] == [
        f"    C[ramp(0, 1, 16)] = select({read} < broadcast(0.0, 16), {read} * broadcast(2.0, 16), "
        f"{read} + broadcast(1.0, 16))"
    ]


def test_a_select_that_lanes_share_evaluates_one_branch() -> None:
    text = """
def f(A: float32[4, 16], C: output(float32[4, 16])):
    for i in range(4):
        for j in vectorized(16):
            C[i, j] = select(1 <= i, A[i - 1, j], 0.0)
"""
    assert vectorized(text).splitlines()[2:] == [
        "        C[i, ramp(0, 1, 16)] = select(1 <= i, A[i - 1, ramp(0, 1, 16)], "
        "broadcast(0.0, 16))"
    ]


def test_an_element_that_lanes_share_is_loaded_only_where_one_is_on() -> None:
    text = """
def f(A: float32[5, 4], C: output(float32[64])):
    for j in range(4):
        for i in vectorized(16):
            C[j * 16 + i] = select(j * 4 + i < 4, A[j + 2, j * 3], 0.0)
"""
    mask = "ramp(j * 4, 1, 16) < broadcast(4, 16)"
    loaded = f"masked(A[j + 2, broadcast(j * 3, 16)], {mask}, broadcast(0.0, 16))"
    assert vectorized(text).splitlines()[2:] == [f"        C[ramp(j * 16, 1, 16)] = {loaded}"]


def test_an_element_that_lanes_share_is_loaded_below_the_test_of_its_size() -> None:
    text = """
def f(m: dim(1, 100), n: dim(1, 64), A: float32[m], C: output(float32[m, n])):
    for o in range(8):
        for i in range(14):
            if {}:
                for v in range(4):
                    for j in vectorized(16):
                        if v * 16 + j < n:
                            C[o * 14 + i, v * 16 + j] = A[o * 14 + i]
"""
    assert "= broadcast(A[o * 14 + i], 16)" in vectorized(text.format("o * 14 + i < m"))
    assert "= masked(A[broadcast(o * 14 + i, 16)]," in vectorized(text.format("o * 14 < m"))


def test_quotients_that_no_lane_carries_over_are_scalar() -> None:
    text = """
def f(A: float32[2, 48], C: output(float32[96])):
    for i in range(6):
        for j in vectorized(16):
            C[i * 16 + j] = A[(i * 16 + j) // 48, (i * 16 + j) % 48]
"""
    assert "A[i // 3, ramp(i * 16 % 48, 1, 16)]" in vectorized(text)
    same = """
def f(A: float32[4, 2], C: output(float32[64])):
    for i in vectorized(64):
        C[i] = A[i // 16, i % 2]
"""
    assert "= A[i, ramp(0, 1, 16) % broadcast(2, 16)]" in vectorized(same)


def test_numbers_of_lanes_need_a_product_where_they_are_far_apart() -> None:
    text = """
def f(C: output(int64[64])):
    for i in vectorized(64):
        C[i] = i * 3
"""
    assert "C[ramp(i * 8, 1, 8)] = ramp(i * 24, 3, 8)" in vectorized(text)
    assert vectorized(text, "c:avx2") == text.strip().replace("vectorized", "range")


def gathering(index: str, kind: str = "int64") -> str:
    return f"""
def f(T: float32[50, 32], N: {kind}[4, 32], C: output(float32[4, 32])):
    for i in range(4):
        for j in vectorized(32):
            C[i, j] = T[max(min({index}, 49), 0), j]
"""


def test_rows_that_data_choose_are_copied_in_vectors_of_the_data() -> None:
    text = vectorized(gathering("N[i, 0]"))
    assert "T[max(min(N[i, 0], 49), 0), ramp(j * 16, 1, 16)]" in text
    assert "ramp(j * 8, 1, 8)" in vectorized(gathering("N[i, 0]"), "c:avx2")


def test_elements_that_data_choose_are_gathered_in_lanes_of_the_index() -> None:
    narrow = gathering('cast(N[i, j], "int64")', "int32")
    assert 'cast(N[i, ramp(j * 16, 1, 16)], "int64x16")' in vectorized(narrow)
    assert 'cast(N[i, ramp(j * 8, 1, 8)], "int64x8")' in vectorized(narrow, "c:avx2")
    wide = gathering("N[i, j]")
    assert "min(N[i, ramp(j * 8, 1, 8)], broadcast(49, 8))" in vectorized(wide)
    assert "for j in range(32):" in vectorized(wide, "c:avx2")  # no minimum of int64


def test_a_value_that_is_widened_as_data_decides_the_lanes() -> None:
    text = """
def f(N: int32[32], A: float32[32], C: output(float32[32])):
    for j in vectorized(32):
        C[j] = select(cast(N[j], "int64") < 4000000000, A[j], 0.0)
"""
    assert 'cast(N[ramp(j * 8, 1, 8)], "int64x8")' in vectorized(text)


def test_a_table_that_int32_cannot_address_is_gathered_lane_after_lane() -> None:
    text = """
def f(T: float32[300000000, 32], N: int32[32], C: output(float32[32])):
    for j in vectorized(32):
        C[j] = T[max(min(cast(N[j], "int64"), 299999999), 0), j]
"""
    assert "for j in range(32):" in vectorized(text)


def test_storage_inside_the_loop_gets_a_dimension_of_lanes() -> None:
    text = """
def f(A: float32[16], C: output(float32[16])):
    for j in vectorized(16):
        s = alloc(float32[2], "register")
        s[1] = A[j]
        C[j] = s[1]
"""
    assert vectorized(text).splitlines()[1:] == [
        '    s = alloc(float32[2, 16], "register")',
        "    s[1, ramp(0, 1, 16)] = A[ramp(0, 1, 16)]",
        "    C[ramp(0, 1, 16)] = s[1, ramp(0, 1, 16)]",
    ]


def test_nothing_to_vectorise_is_the_same_body() -> None:
    func = parse(
        "def f(A: float32[4], C: output(float32[4])):\n    for i in range(4):\n        C[i] = "
        "A[i]\n"
    )
    assert Vectorize(Target.parse("c:avx2"))(func).body is func.body


def test_lanes_that_store_apart_are_refused() -> None:
    text = """
def f(A: float32[20, 16], C: output(float32[16, 20])):
    for i in range(20):
        for j in vectorized(16):
            C[j, i] = A[i, j]
"""
    with pytest.raises(TargetError) as caught:
        vectorized(text)
    assert str(caught.value) == (
        "TargetError: vectorize: the lanes of loop 'j' store to 'C' 20 elements apart; "
        "expected neighbouring elements. [vectorize-store-stride]\n"
        "  Hint: vectorise loop 'i', along which 'C' is contiguous."
    )


def test_one_lane_that_is_left_on_stores_as_a_scalar(check: Callable[..., object]) -> None:
    text = """
def f(A: float32[4, 16], C: output(float32[4])):
    for i in range(4):
        for j in vectorized(16):
            if 6 < j and j < 8:
                C[i] = A[i, j]
"""
    assert "C[i] = A[i, 7]" in vectorized(text)
    check(text)


def test_lanes_that_store_to_one_element_run_one_after_the_other(
    check: Callable[..., object],
) -> None:
    text = """
def f(A: float32[16], C: output(float32[1])):
    C[0] = 0.0
    for j in vectorized(16):
        C[0] = C[0] + A[j]
"""
    assert "for j in range(16):" in vectorized(text)
    check(text)


def test_what_the_first_side_of_a_condition_read_is_read_again_under_the_same_mask(
    check: Callable[..., object],
) -> None:
    text = """
def f(A: float32[16], B: float32[16], C: float32[16], Y: output(bool[16])):
    for i in vectorized(16):
        Y[i] = A[i] < B[i] or A[i] != C[i] and B[i] == C[i]
"""
    a, b, c = (f"{name}[ramp(0, 1, 16)]" for name in "ABC")
    masked = f"masked({c}, not {a} < {b})"
    again = f"masked({c}, not {a} < {b})"
    assert vectorized(text).splitlines()[1:] == [
        f"    Y[ramp(0, 1, 16)] = {a} < {b} or {a} != {masked} and {b} == {again}"
    ]
    check(text)


def test_a_mask_that_holds_what_was_read_under_it_does_not_hold_itself(
    check: Callable[..., object],
) -> None:
    choice = "select(A[i] < B[i] and C[i] <= A[i], C[i], A[i])"
    text = f"""
def f(A: float32[16], B: float32[16], C: float32[16], Y: output(float32[16])):
    for i in vectorized(16):
        Y[i] = select({choice} < float32(0), {choice}, float32(0))
"""
    assert len(vectorized(text)) < 20_000
    check(text)


def test_the_text_of_nested_conditions_grows_with_their_depth_and_not_exponentially() -> None:
    sizes = []
    for depth in (4, 8, 16):
        condition = "A[i] < B[i]"
        for _ in range(depth):
            condition = f"({condition} or A[i] == B[i] and A[i] != A[i])"
        text = f"""
def f(A: float32[16], B: float32[16], Y: output(bool[16])):
    for i in vectorized(16):
        Y[i] = {condition}
"""
        sizes.append(len(vectorized(text)))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize(("depth", "vectors"), [(1, True), (2, False), (12, False)])
def test_a_choice_by_a_choice_goes_lane_by_lane(depth: int, vectors: bool) -> None:
    chosen = "A[i]"
    for _ in range(depth):
        chosen = f"select({chosen}, B[i], A[i])"
    text = f"""
def f(A: bool[16], B: bool[16], Y: output(bool[16])):
    for i in vectorized(16):
        Y[i] = {chosen}
"""
    after = str(Vectorize(Target.parse("c:avx512"))(parse(text)))
    assert ("boolx16" in after or "ramp(" in after) == vectors


def test_what_has_no_masks_runs_in_vectors_where_a_call_leaves_all_lanes() -> None:
    text = """
def f(n: dim(1, 64), A: float32[n], C: output(float32[n])):
    for j in range(16):
        for i in vectorized(4):
            if j * 4 + i < n:
                C[j * 4 + i] = A[j * 4 + i]
"""
    assert vectorized(text, "c:neon").splitlines()[1:] == [
        "    for j in range(16):",
        "        if j * 4 + 3 < n:",
        "            C[ramp(j * 4, 1, 4)] = A[ramp(j * 4, 1, 4)]",
        "        else:",
        "            for i in range(4):",
        "                if j * 4 + i < n:",
        "                    C[j * 4 + i] = A[j * 4 + i]",
    ]
    assert "else" not in vectorized(text, "c:avx2")
    # a test that holds for the last lane alone says nothing of the others
    falling = text.replace("j * 4 + i < n", "n < j * 4 + i")
    assert "else" not in vectorized(falling, "c:neon")


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:neon"])
@pytest.mark.parametrize(
    "value",
    [
        "select(0.0 < A[j], A[j], 7.0)",
        "select(0.0 < A[j], 7.0, A[j])",
        "select(0.0 < B[j], select(0.0 < A[j], A[j], -1.0), A[j])",
        "select(0.0 < A[j] and A[j] < B[j], select(A[j] < 1.0, A[j], 5.0), B[j])",
    ],
)
def test_a_choice_by_what_its_branches_read_chooses_in_a_masked_rest(
    value: str, target: str
) -> None:
    """What a condition has read is read again under the mask of the rest, not of the choice."""
    text = f"""
def f(A: float32[21], B: float32[21], C: output(float32[21])):
    for j in vectorized(21):
        C[j] = {value}
"""
    plain = parse(text)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(21, np.float32) for _ in range(2)]
    vectors = Vectorize(Target.parse(target))(plain)
    assert "masked(" in str(vectors) or target == "c:neon"  # which has no masks for a rest
    found, wanted = (interpret(func, *given) for func in (vectors, plain))
    np.testing.assert_array_equal(found, wanted)
