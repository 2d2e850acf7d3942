"""codegen/lower/vector/wide_accesses.py: neighbours go to and from memory in one piece, where they
may.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.codegen.lower.loops.unroll import Unroll
from tilewright.codegen.lower.vector.wide_accesses import WideAccesses, divisor
from tilewright.tir.analysis.linear import linear
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.visit import stores

from ...conftest import random_arrays

A100 = Target.parse("cuda:sm_80")


def wide(text: str) -> list[str]:
    """The lines of the body, after its values were held against those of the loops."""
    func = parse(text)
    made = WideAccesses()(func)
    verify(Unroll(A100)(made), Stage.LOWERED)
    arrays = random_arrays(func).values()
    for one, other in zip(interpret(func, *arrays), interpret(made, *arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    return [line.removeprefix("    ") for line in str(made).splitlines()[1:]]


def looped(statement: str, count: int = 4, loops: int = 3, size: int = 64) -> list[str]:
    """A statement in a vectorised loop `v` inside of a loop `i`."""
    return wide(
        f"def f(A: float32[{size}], H: float16[{size}], N: int32[{size}], "
        f"Y: output(float32[{size}])):\n"
        f"    for i in range({loops}):\n"
        f"        for v in vectorized({count}):\n"
        f"            {statement}\n"
    )[1:]


def lanes_moved(statement: str, count: int = 4, size: int = 64) -> list[int]:
    """How many lanes each load and store that is wide moves."""
    ramps = re.findall(
        r"ramp\([^()]*(?:\([^()]*\))*[^()]*, 1, (\d+)\)",
        "\n".join(looped(statement, count, size=size)),
    )
    return [int(lanes) for lanes in ramps]


def test_four_floats_are_loaded_computed_and_stored() -> None:
    assert looped("Y[i * 4 + v] = A[i * 4 + v] * 2.0 + A[i]") == [
        "    A_1: float32x4 = A[ramp(i * 4, 1, 4)]",
        "    Y[ramp(i * 4, 1, 4)] = vector(lanes(A_1, 0, 1) * 2.0 + A[i], lanes(A_1, 1, 1) * 2.0 + "
        "A[i], lanes(A_1, 2, 1) * 2.0 + A[i], lanes(A_1, 3, 1) * 2.0 + A[i])",
    ]


def test_a_copy_is_a_load_and_a_store() -> None:
    assert looped("Y[i * 4 + v] = A[i * 4 + v]")[-1] == "    Y[ramp(i * 4, 1, 4)] = A_1"


def test_a_choice_that_all_lanes_share_is_made_once() -> None:
    assert looped("Y[i * 4 + v] = select(1 <= (i * 4 + v) // 8, A[i * 4 + v], 0.0)") == [
        "    if 1 <= i // 2:",
        "        A_1: float32x4 = A[ramp(i * 4, 1, 4)]",
        "        Y[ramp(i * 4, 1, 4)] = A_1",
        "    else:",
        "        Y[ramp(i * 4, 1, 4)] = vector(0.0, 0.0, 0.0, 0.0)",
    ]
    assert lanes_moved("Y[i * 4 + v] = select(i + v < 3, A[i * 4 + v], 0.0)") == [4]


def test_eight_floats_are_two_vectors_and_eight_halves_one() -> None:
    statement = 'Y[i * 8 + v] = cast(H[i * 8 + v], "float32")'
    assert lanes_moved(statement, 8) == [8, 4, 4]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("i * 4 + v", [4, 4]),
        ("i * 6 + v", [2] * 4),  # multiples of 6 are multiples of 2
        ("i * 8 + v + 2", [2] * 4),
        ("i * 5 + v", []),
        ("i * 4 + v + 1", []),
        ("i * 8 + v * 2", []),  # no neighbours
        ("i * 4 + (3 - v)", []),
        ("min(i * 8, 12) + v", [4, 4]),
        ("i * 12 // 3 + v", [4, 4]),
        ("(i * 4 + v) % 8", [4, 4]),
        ("(i * 2 + v) % 4", []),  # lanes go round
        ('cast(N[i], "int64") * 0 + v', [4, 4]),
    ],
)
def test_the_index_decides_how_many_lanes_one_address_allows(
    index: str, expected: list[int]
) -> None:
    assert lanes_moved(f"Y[{index}] = A[{index}]") == expected


def test_lanes_that_all_take_part_or_none_are_tested_once() -> None:
    assert looped("if i * 4 + v < 8:\n                Y[i * 4 + v] = A[i * 4 + v]")[:2] == [
        "    if i * 4 < 8:",
        "        A_1: float32x4 = A[ramp(i * 4, 1, 4)]",
    ]


def test_lanes_that_take_part_one_by_one_go_to_memory_one_by_one() -> None:
    condition = "if i * 4 + v < 9:\n                Y[i * 4 + v] = A[i * 4 + v]"
    assert looped(condition) == [
        "    for v in unrolled(4):",
        "        if i * 4 + v < 9:",
        "            Y[i * 4 + v] = A[i * 4 + v]",
    ]


def test_what_only_some_lanes_read_is_not_read_for_all() -> None:
    statement = "Y[i * 4 + v] = select(0 < i + v, A[max(i * 4 + v - 1, 0)], A[i * 4 + v])"
    assert lanes_moved(statement) == [4]


def test_a_buffer_that_is_read_and_written_is_read_before() -> None:
    lines = looped("Y[i * 4 + v] = A[i * 4 + v]\n            Y[i * 4 + v] = Y[i * 4 + v] + 1.0")
    places = [line.split("ramp")[0].strip() for line in lines if "ramp" in line]
    assert places == ["A_1: float32x4 = A[", "Y[", "Y_1: float32x4 = Y[", "Y["]


def test_names_are_those_of_one_lane() -> None:
    line = looped("Y[i * 4 + v] = let(x, A[i * 4 + v], x * x)")[-1]
    assert "let(x_3, lanes(A_1, 3, 1), x_3 * x_3)" in line


def test_an_odd_number_of_lanes_and_loops_inside_are_copies() -> None:
    assert looped("Y[i * 4 + v] = A[i * 4 + v]", 3)[0] == "    for v in unrolled(3):"
    inner = "for w in range(2):\n                Y[i * 8 + v * 2 + w] = A[i * 8 + v * 2 + w]"
    assert looped(inner)[0] == "    for v in unrolled(4):"


def test_the_inner_of_two_vectorised_loops_moves_vectors() -> None:
    inner = "for w in vectorized(4):\n                Y[i * 16 + v * 4 + w] = A[i * 16 + v * 4 + w]"
    assert looped(inner)[0] == "    for v in unrolled(4):"
    assert lanes_moved(inner) == [4, 4]


def test_a_threads_own_buffers_are_never_vectors() -> None:
    lines = wide(
        "def f(A: float32[16], Y: output(float32[16])):\n"
        '    C = alloc(float32[16], "register")\n'
        "    for v in vectorized(16):\n"
        "        C[v] = A[v]\n"
        "    for w in vectorized(16):\n"
        "        Y[w] = C[w]\n"
    )
    assert sum("C[ramp" in line for line in lines) == 0
    assert sum("ramp" in line for line in lines) == 8


def test_a_function_without_vectors_is_left_alone() -> None:
    func = parse("def f(Y: output(float32[4])):\n    for i in range(4):\n        Y[i] = 1.0\n")
    assert WideAccesses()(func) is func


@pytest.mark.parametrize(
    ("text", "expected"),
    [("i * 12 + j * 8", 4), ("i * 6 + 3", 3), ("0", 0), ("i * 9 % 6", 3), ("i * 9 // 2", 1)],
)
def test_what_divides_an_index(text: str, expected: int) -> None:
    func = parse(
        "def f(Y: output(int64[1])):\n    for i in range(9):\n        for j in range(9):\n"
        f"            Y[0] = {text}\n"
    )
    value = stores(func.body)[0].value
    assert divisor(linear(value)) == expected
