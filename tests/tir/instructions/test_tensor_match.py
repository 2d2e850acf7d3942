"""tir/instructions/tensor_match.py: what is found in a nest, and the first thing that differs."""

from __future__ import annotations

import pytest

from tilewright.tir.instructions.tensor_intrinsics import VPDPBUSD
from tilewright.tir.instructions.tensor_match import Match, Mismatch, match_intrinsic
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For
from tilewright.tir.visit import walk

PRODUCT = 'cast(A[k], "int32") * cast(B[i, k], "int32")'


def found(store: str, *, lanes: int = 16, points: int = 4) -> Match | Mismatch:
    """What the nest of a store over lanes `i` and points `k` is."""
    func = parse(
        "def f(A: uint8[64], B: int8[16, 4], D: int8[4, 16], C: output(int32[16])):\n"
        f"    for i in range({lanes}):\n"
        f"        for k in range({points}):\n"
        f"            {store}\n"
    )
    nest = next(node for node in walk(func.body) if isinstance(node, For))
    return match_intrinsic(VPDPBUSD, nest, {})


@pytest.mark.parametrize(
    "store",
    [
        f"C[i] = C[i] + {PRODUCT}",
        f"C[i] = {PRODUCT} + C[i]",
        'C[i] = C[i] + cast(B[i, k], "int32") * cast(A[k], "int32")',
    ],
)
def test_sums_and_products_match_in_any_order(store: str) -> None:
    match = found(store)
    assert isinstance(match, Match)
    names = [(operand.load.buffer.name, operand.lanes_differ) for operand in match.operands]
    assert names == [("A", False), ("B", True)]


@pytest.mark.parametrize(
    ("store", "what", "expected"),
    [
        (
            f"C[i] = C[i] - {PRODUCT}",
            f"it has int32 C[i] - {PRODUCT}",
            'int32 c[vlane] + cast(a[vlane, vq], "int32") * cast(b[vlane, vq], "int32") of '
            'c[vlane] + cast(a[vlane, vq], "int32") * cast(b[vlane, vq], "int32")',
        ),
        (
            'C[i] = C[i] + cast(A[k], "int32") * cast(D[k, i], "int32")',
            "from one iteration to the next of 'i' and of 'k', D[k, i] moves 1 and 16 elements",
            "4 and 1, or 0 and 1",
        ),
        (
            'C[i] = C[i] + cast(A[i * k], "int32") * cast(B[i, k], "int32")',
            "from one iteration to the next of 'i' and of 'k', A[i * k] moves no fixed number "
            "of and no fixed number of elements",
            "4 and 1, or 0 and 1",
        ),
        (
            f"C[0] = C[0] + {PRODUCT}",
            "from one iteration to the next of 'i' and of 'k', C[0] moves 0 and 0 elements",
            "1 and 0",
        ),
        (
            f"C[i] = C[15 - i] + {PRODUCT}",
            "it adds to C[15 - i] and stores to C[i]",
            "one element for both",
        ),
    ],
)
def test_the_first_difference_is_named(store: str, what: str, expected: str) -> None:
    mismatch = found(store)
    assert isinstance(mismatch, Mismatch)
    assert (mismatch.found, mismatch.expected) == (what, expected)
    assert ("transform_layout" in mismatch.hint) == ("moves" in what)


def test_loops_must_have_the_lanes_and_points_of_the_instruction() -> None:
    mismatch = found(f"C[i] = C[i] + {PRODUCT}", lanes=12)
    assert isinstance(mismatch, Mismatch)
    assert mismatch.found == "its loops are 'i' of 12, 'k' of 4"
