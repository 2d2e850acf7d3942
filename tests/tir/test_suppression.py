"""tir/suppression.py: what a suppression means, how it is named, what it takes; as a statement,
what the interpreter, the evaluator and the verifier make of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.tir.buffer import Buffer, array
from tilewright.tir.dtype import dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.scatter import ScatterFunction
from tilewright.tir.steps import step_named
from tilewright.tir.suppression import (
    SIDES,
    SUPPRESS,
    Array,
    SuppressionFunction,
    suppressed,
    suppression_problem,
)
from tilewright.tir.text.equal import equal
from tilewright.tir.verify.verify import Stage, VerificationError, verify


def boxes(rows: int, size: int, seed: int = 0) -> list[Array]:
    """Sides, areas, counts and a share: some boxes are of no area or no number, some counts are
    larger than there are boxes.
    """
    rng = np.random.default_rng(seed)
    corners = np.round(rng.random((2, rows, size), np.float32) * 4, 1)
    sizes = np.round(rng.random((2, rows, size), np.float32) * 3, 1)
    left, top, right, bottom = *corners, *(corners + sizes)
    area = ((right - left) * (bottom - top)).astype(np.float32)
    area[:, ::7] = np.nan
    left[:, 3::11] = np.nan
    bottom[:, 5::13] = np.inf
    counts = rng.integers(-1, size + 5, rows).astype(np.int32)
    counts[0] = size
    return [left, top, right, bottom, area, counts, np.array(0.45, np.float32)]


def one_by_one(arrays: list[Array], most: int) -> tuple[Array, Array]:
    """The meaning, spelled out: a box beside each that is kept, in float32."""
    *sides, counts, share = arrays
    rows, size = sides[0].shape
    kept, numbers = np.full((rows, most), -1, np.int32), np.zeros(rows, np.int32)
    for row in range(rows):
        for k in range(min(size, int(counts[row]))):
            earlier = kept[row, : numbers[row]]
            if numbers[row] < most and not any(overlap(sides, row, k, j) > share for j in earlier):
                kept[row, numbers[row]] = k
                numbers[row] += 1
    return kept, numbers


def overlap(sides: list[Array], row: int, k: int, j: int) -> np.float32:
    def lower(a: np.float32, b: np.float32) -> np.float32:
        return a if a < b else b

    def upper(a: np.float32, b: np.float32) -> np.float32:
        return a if a > b else b

    left, top, right, bottom, area = ((side[row, k], side[row, j]) for side in sides)
    with np.errstate(all="ignore"):
        width = upper(lower(*right) - upper(*left), np.float32(0))
        height = upper(lower(*bottom) - upper(*top), np.float32(0))
        common = width * height
        union = (area[0] + area[1]) - common
        real = common > 0 and union > 0
        return np.float32(common / union if real else -np.inf)


def func_of(rows: int, size: int, most: int) -> PrimFunc:
    sides = [te.placeholder((rows, size), "float32", name=name) for name in SIDES]
    count = te.placeholder((rows,), "int32", name="count")
    share = te.placeholder((), "float32", name="share")
    left, top, right, bottom, area = sides
    kept, number = te.suppress(
        (left, top, right, bottom, area), count, share, most=most, name=("kept", "number")
    )
    return te.func(*sides, count, share, kept, number, name="suppression")


FORMS = [(1, 1, 1), (3, 40, 40), (4, 90, 7)]


@pytest.mark.parametrize(("rows", "size", "most"), FORMS)
def test_a_box_is_kept_that_overlaps_none_kept_before(rows: int, size: int, most: int) -> None:
    arrays = boxes(rows, size)
    expected = one_by_one(arrays, most)
    for found, own in zip(suppressed(arrays, most), expected, strict=True):
        np.testing.assert_array_equal(found, own)
    assert size == 1 or 0 < expected[1].max() < size


@pytest.mark.parametrize(("rows", "size", "most"), FORMS)
def test_interpreted_and_evaluated_it_is_the_same(rows: int, size: int, most: int) -> None:
    func, arrays = func_of(rows, size, most), boxes(rows, size)
    expected = one_by_one(arrays, most)
    for checked in (False, True):
        for found, own in zip(interpret(func, *arrays, checked=checked), expected, strict=True):
            np.testing.assert_array_equal(found, own)
    made = evaluate(func, arrays)
    np.testing.assert_array_equal(made["kept"], expected[0])
    np.testing.assert_array_equal(made["number"], expected[1])


def test_the_share_itself_is_not_more_than_it() -> None:
    """Of two boxes that have 9 of 20 in common, both stay; with less room for it, one."""
    left, right = np.zeros((1, 2), np.float32), np.array([[9, 20]], np.float32)
    top, bottom = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    sides = [left, top, right, bottom, right, np.array([2], np.int32)]
    for share, kept in ((np.float32(0.45), 2), (np.nextafter(np.float32(0.45), np.float32(0)), 1)):
        assert suppressed([*sides, np.asarray(share)], 2)[1].tolist() == [kept]


def test_its_text_is_read_back() -> None:
    func = func_of(2, 5, 3)
    assert f'extern("{SUPPRESS}", ' in str(func)
    assert equal(parse(str(func)), func)
    assert func.externs == ()
    assert step_named(SUPPRESS) == SuppressionFunction()
    assert step_named("tw_scatter_add_at_0") == ScatterFunction("add", 0)
    assert step_named("sort_rows") is None


def buffer(name: str, *shape: int, kind: str = "float32") -> Buffer:
    return array(name, dtype(kind), shape)


ROWS = tuple(buffer(name, 2, 5) for name in SIDES)
COUNT, SHARE = buffer("count", 2, kind="int32"), buffer("share")
KEPT, NUMBER = buffer("kept", 2, 3, kind="int32"), buffer("number", 2, kind="int32")
PROBLEMS = {
    "no share": (
        (*ROWS, COUNT),
        (KEPT, NUMBER),
        "6 inputs and 2 outputs; expected left, top, right, bottom, area, count and share, and "
        "what is kept and its number",
    ),
    "no number": (
        (*ROWS, COUNT, SHARE),
        (KEPT,),
        "7 inputs and 1 outputs; expected left, top, right, bottom, area, count and share, and "
        "what is kept and its number",
    ),
    "other shapes": (
        (*ROWS[:4], buffer("area", 2, 6), COUNT, SHARE),
        (KEPT, NUMBER),
        "'left' is float32[2, 5], and the share float32[]; expected boxes",
    ),
    "a share of several": (
        (*ROWS, COUNT, buffer("share", 1)),
        (KEPT, NUMBER),
        "'left' is float32[2, 5], and the share float32[1]; expected boxes",
    ),
    "a count for all": (
        (*ROWS, buffer("count", 1, kind="int32"), SHARE),
        (KEPT, NUMBER),
        "'count' is int32[1]; expected an int32 for each row of float32 boxes",
    ),
    "counts of 64 bits": (
        (*ROWS, buffer("count", 2, kind="int64"), SHARE),
        (KEPT, NUMBER),
        "'count' is int64[2]; expected an int32 for each row of float32 boxes",
    ),
    "places of 64 bits": (
        (*ROWS, COUNT, SHARE),
        (buffer("kept", 2, 3, kind="int64"), NUMBER),
        "'kept' is int64[2, 3]; expected int32 places of boxes in 2 rows",
    ),
    "no room": (
        (*ROWS, COUNT, SHARE),
        (buffer("kept", 2, 0, kind="int32"), NUMBER),
        "'kept' is int32[2, 0]; expected int32 places of boxes in 2 rows",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_does_not_fit_is_said(name: str) -> None:
    inputs, outputs, problem = PROBLEMS[name]
    assert suppression_problem(inputs, outputs) == problem


def test_what_fits_has_no_problem() -> None:
    assert suppression_problem((*ROWS, COUNT, SHARE), (KEPT, NUMBER)) is None


def test_the_verifier_asks() -> None:
    wrong = parse(str(func_of(2, 5, 3)).replace("count: int32[2]", "count: int32[1]"))
    with pytest.raises(VerificationError) as error:
        verify(wrong, Stage.TENSOR)
    assert "verify: 'count' is int32[1]; expected an int32 for each row" in str(error.value)
