"""Elements that lie near each other are loaded with their neighbours and shuffled: the text, what
stays a gather, and values on each instruction set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.lower.loops.unroll import Unroll
from tilewright.codegen.lower.vector.fold_masks import FoldMasks
from tilewright.codegen.lower.vector.shuffled_loads import ShuffledLoads
from tilewright.codegen.lower.vector.vectorize import Vectorize
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify

from ...conftest import Outputs, random_arrays

KINDS = ("float32", "float64", "int32", "int64")


def gathers(text: str, target: str) -> PrimFunc:
    """The function in vectors, as the pass is given it."""
    one = Target.parse(target)
    return FoldMasks()(Unroll(one)(Vectorize(one)(parse(text))))


def shuffled(text: str, target: str = "c:avx512") -> str:
    before = gathers(text, target)
    after = ShuffledLoads(Target.parse(target))(before)
    verify(after, Stage.LOWERED, underway=True)
    return "" if after is before else str(after)


def along(count: int, size: int, value: str, kind: str = "float32") -> str:
    """`count` elements of a row of `size` ones, beside each other."""
    return f"""
def f(A: {kind}[{size}], C: output({kind}[{count}])):
    for j in vectorized({count}):
        C[j] = {value}
"""


def test_each_second_element_is_of_two_loads() -> None:
    """The second load ends with the last element that is read."""
    line = shuffled(along(8, 15, "A[2*j]"), "c:avx2").splitlines()[1]
    loads = "A[ramp(0, 1, 8)], A[ramp(7, 1, 8)]"
    assert line == f"    C[ramp(0, 1, 8)] = shuffle({loads}, 0, 2, 4, 6, 9, 11, 13, 15)"


def test_neighbours_of_what_is_read_are_read_where_there_are_some() -> None:
    """So both of these have the same loads."""
    for value, order in (("A[2*j]", "0, 2, 4, 6, 8"), ("A[2*j + 1]", "1, 3, 5, 7, 9")):
        text = shuffled(along(8, 16, value), "c:avx2")
        assert f"shuffle(A[ramp(0, 1, 8)], A[ramp(8, 1, 8)], {order}, " in text


def test_what_runs_backwards_is_of_one_load() -> None:
    text = shuffled(along(4, 9, "A[7 - j]"), "c:avx2")
    assert "shuffle(A[ramp(4, 1, 4)], A[ramp(4, 1, 4)], 3, 2, 1, 0)" in text


def test_fewer_neighbours_than_lanes_are_loaded_with_a_mask() -> None:
    text = shuffled(along(16, 8, "A[j // 2]"))
    load = "masked(A[ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(8, 16))"
    assert f"shuffle({load}, {load}, 0, 0, 1, 1, 2, 2" in text


def test_lanes_that_are_off_keep_what_they_have() -> None:
    text = shuffled(along(5, 40, "select(j < 3, A[7*j], 1.0)"), "c:avx512")
    assert (
        "ramp(0, 1, 8) < broadcast(3, 8), shuffle(A[ramp(0, 1, 8)], A[ramp(8, 1, 8)], 0, 7, 14"
        in text
    )
    assert text.endswith("broadcast(1.0, 8))")


def test_columns_of_a_few_are_read_as_they_lie() -> None:
    text = shuffled("""
def f(A: float32[16, 2], C: output(float32[2, 16])):
    for i in unrolled(2):
        for j in vectorized(16):
            C[i, j] = A[j, i]
""")
    first, second = (
        f"A[ramp({n}, 1, 16) // broadcast(2, 16), ramp({n}, 1, 16) % broadcast(2, 16)]"
        for n in (0, 16)
    )
    assert text.count(f"shuffle({first}, {second}, ") == 2


def test_rows_that_are_laid_side_by_side_are_loaded_once_each() -> None:
    text = shuffled("""
def f(A: float32[3, 32], C: output(float32[96])):
    for i in range(2):
        for j in unrolled(3):
            for k in vectorized(16):
                C[i * 48 + j * 16 + k] = A[(j * 16 + k) % 3, i * 16 + (j * 16 + k) // 3]
""")
    for row in range(3):
        assert text.count(f"A[{row}, ramp(i * 16, 1, 16)]") == 3


STAY = {
    "a scalar target": ("c:scalar", along(16, 32, "A[2*j]")),
    "an instruction set without such shuffles": ("c:neon", along(4, 8, "A[2*j]")),
    "neighbours": ("c:avx512", along(16, 17, "A[j + 1]")),
    "one element": ("c:avx512", along(16, 17, "A[0]")),
    "elements far apart": ("c:avx512", along(16, 256, "A[16*j]")),
    "rows far apart": ("c:avx512", along(16, 512, "A[j % 7 * 64 + j // 7]")),
    "bytes": ("c:avx512", along(16, 32, "A[2*j]", "uint8")),
}


@pytest.mark.parametrize(("target", "text"), STAY.values(), ids=STAY)
def test_what_is_no_such_load_stays_as_it_is(target: str, text: str) -> None:
    assert shuffled(text, target) == ""


def test_places_that_data_decide_stay_gathers() -> None:
    text = """
def f(A: float32[32], I: int32[16], C: output(float32[16])):
    for j in vectorized(16):
        C[j] = A[min(max(cast(I[j], "int64"), 0), 31)]
"""
    assert shuffled(text) == ""


READ = {
    "each second": (30, 61, "A[2*j + 1]"),
    "each third": (16, 50, "A[3*j]"),
    "backwards": (21, 40, "A[39 - j]"),
    "backwards, each second": (16, 33, "A[32 - 2*j]"),
    "twice": (32, 16, "A[j // 2]"),
    "each a few times": (27, 6, "A[j // 5]"),
    "in turns": (32, 12, "A[j % 4 + j // 16]"),
    "to and fro": (32, 17, "A[min(j, 31 - j)]"),
    "some": (13, 40, "select(j < 9, A[3*j], A[0])"),
    "under a mask": (13, 40, "select(2 < j, A[3*j - 9], A[j + 2])"),
}


@pytest.mark.parametrize("target", ["c:avx2", "c:avx512"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READ)
def test_the_lanes_are_those_of_the_gathers(name: str, kind: str, target: str) -> None:
    """An interpreter refuses what lies outside of a buffer."""
    func = parse(along(*READ[name], kind))
    given = random_arrays(func)
    after = ShuffledLoads(Target.parse(target))(gathers(str(func), target))
    got, expected = (interpret(one, *given.values()) for one in (after, func))
    np.testing.assert_array_equal(got[0], expected[0])


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READ)
def test_compiled_shuffles_have_the_interpreters_bits(
    name: str, kind: str, check: Callable[..., Outputs]
) -> None:
    check(along(*READ[name], kind))


def test_most_of_these_are_shuffled() -> None:
    found = {
        (name, target)
        for name, read in READ.items()
        for target in ("c:avx2", "c:avx512")
        if shuffled(along(*read), target)
    }
    assert {name for name, _ in found} == READ.keys()
    assert len(found) >= 2 * len(READ) - 4
