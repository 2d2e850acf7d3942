"""Kernels that read where data says, by their rule, on every instruction set: values, proof, and
the error of a call whose index lies outside.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.lower import DefinitionError
from tilewright.runtime.arrays import Array
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.tir.errors import IRError, TilewrightError
from tilewright.tir.parsing.parser import parse

from ..isas import HERE

pytestmark = [pytest.mark.needs_cc, pytest.mark.isa, pytest.mark.sampled(3)]

ROWS, WIDTH = 50, 37
T = te.placeholder((ROWS, WIDTH), "float32", name="T")
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((ROWS, WIDTH)).astype(np.float32)


def embedding(count: int = 7, kind: str = "int64") -> tw.PrimFunc:
    n = te.placeholder((count,), kind, name="N")
    y = te.compute(
        (count, WIDTH), lambda i, j: T[te.checked(n[i], ROWS, what="token"), j], name="Y"
    )
    return te.func(T, n, y, name="embedding")


def from_the_end() -> tw.PrimFunc:
    """Element [i, j] of the table's column j at N[i, j], which counts from the end below 0."""
    n = te.placeholder((9, WIDTH), "int64", name="N")

    def element(i: te.Var, j: te.Var) -> te.Expr:
        return T[te.checked(te.select(n[i, j] < 0, n[i, j] + ROWS, n[i, j]), ROWS), j]

    return te.func(T, n, te.compute((9, WIDTH), element, name="Y"), name="elements")


def columns(kind: str) -> tw.PrimFunc:
    n = te.placeholder((40,), kind, name="N")
    y = te.compute((ROWS, 40), lambda i, j: T[i, te.clamp_index(n[j], WIDTH)], name="Y")
    return te.func(T, n, y, name="columns")


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("count", [7, 300])
def test_rows_of_a_table(target: str, kind: str, count: int) -> None:
    kernel = tw.build(embedding(count, kind), target)
    assert str(kernel.proof).startswith("proved (")
    tokens = RNG.integers(0, ROWS, count).astype(kind)
    for threads in (1, 3):
        assert np.array_equal(kernel(TABLE, tokens, threads=threads), TABLE[tokens])


@pytest.mark.parametrize("target", HERE)
def test_elements_that_count_from_the_end(target: str) -> None:
    kernel = tw.build(from_the_end(), target)
    assert str(kernel.proof).startswith("proved (")
    places = RNG.integers(-ROWS, ROWS, (9, WIDTH))
    expected = np.take_along_axis(TABLE, np.where(places < 0, places + ROWS, places), 0)
    assert np.array_equal(kernel(TABLE, places), expected)
    places[3, 5] = -ROWS - 2
    with pytest.raises(IndexError, match=r"'index' is -2; expected 0 to 49"):
        kernel(TABLE, places)


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("kind", ["int32", "int64", "int8"])
def test_columns_are_gathered(target: str, kind: str) -> None:
    kernel = tw.build(columns(kind), target)
    assert str(kernel.proof).startswith("proved (")
    places = RNG.integers(-100, 100, 40).astype(kind)
    assert np.array_equal(kernel(TABLE, places), TABLE[:, np.clip(places, 0, WIDTH - 1)])


def test_wide_and_narrow_indices_are_gathered_by_instructions() -> None:
    assert "_mm512_i32gather_ps" in tw.build(columns("int32"), "c:avx512").source
    assert "_mm512_cvtepi64_epi32" in tw.build(columns("int64"), "c:avx512").source
    assert "_mm256_i32gather_ps" in tw.build(columns("int32"), "c:avx2").source
    assert "gather" not in tw.build(embedding(), "c:avx512").source.split("*/", 1)[1]


CALLS: dict[str, Callable[[tw.Kernel], tw.Kernel]] = {
    "built": lambda kernel: kernel,
    "pickled": lambda kernel: pickle.loads(pickle.dumps(kernel)),
}


@pytest.mark.parametrize("target", [*HERE, "python"])
@pytest.mark.parametrize("made", CALLS)
@pytest.mark.parametrize("wrong", [ROWS, -1, 1 << 40, -(1 << 63)])
def test_a_token_outside_of_the_table_is_an_index_error_after_the_call(
    target: str, made: str, wrong: int
) -> None:
    kernel = CALLS[made](tw.build(embedding(), target))
    tokens = np.array([0, 1, wrong, 3, 4, 5, ROWS - 1])
    out = np.zeros((7, WIDTH), np.float32)
    with pytest.raises(IndexRangeError) as caught:
        kernel(TABLE, tokens, out, threads=2)
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, TilewrightError)
    assert str(caught.value) == (
        f"IndexRangeError: embedding: 'token' is {wrong}; expected 0 to 49. [index-range]\n"
        "  Note: the outputs were computed with the nearest index that exists."
    )
    assert np.array_equal(out, TABLE[np.clip(tokens, 0, ROWS - 1)])
    tokens[2] = 2
    assert np.array_equal(kernel(TABLE, tokens), TABLE[tokens])  # nothing sticks to the next call


def test_a_kernel_with_checks_shows_results_alone_and_is_timed() -> None:
    kernel = tw.build(embedding())
    assert kernel.signature == ("embedding(T: float32[50, 37], N: int64[7]) -> Y: float32[7, 37]")
    tokens = np.arange(7)
    assert kernel.time(TABLE, tokens, seconds=0.01).median > 0
    assert kernel.work is not None
    assert kernel.work.bytes == 4 * (7 * WIDTH + 7 * WIDTH) + 8 * 7 + 8


@pytest.mark.parametrize("target", ["c:scalar", "python"])
def test_a_text_that_reads_where_data_says_is_refused_however_it_was_made(target: str) -> None:
    func = parse("""\
def pick(T: float32[8], I: int64[4], Y: output(float32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[I[vi]]
""")
    with pytest.raises(DefinitionError) as caught:
        tw.build(func, target)
    assert str(caught.value) == (
        "DefinitionError: build: block 'Y' of 'pick' reads dimension 0 of 'T' at I[vi], which is "
        "data; expected it clamped to 0 .. 7. [definition-data]"
    )


OPEN_ROWS, OPEN_WIDTH = te.dim("rows", 0, 50), te.dim("width", 1, 40)
OPEN = te.placeholder((OPEN_ROWS, OPEN_WIDTH), "float32", name="T")
COUNT = te.dim("count", 0, 20)


def open_rows(kind: str) -> tw.PrimFunc:
    """Rows of a table that may be empty, which counts from the end below 0."""
    n = te.placeholder((COUNT,), kind, name="N")

    def element(i: te.Var, j: te.Var) -> te.Expr:
        token = te.cast(n[i], "int64")
        place = te.select(token < 0, token + OPEN_ROWS, token)
        row = OPEN[te.checked(place, OPEN_ROWS, what="token"), j]
        return te.select(OPEN_ROWS > 0, row, 0.0)

    return te.func(OPEN, n, te.compute((COUNT, OPEN_WIDTH), element, name="Y"), name="open_rows")


def open_columns(kind: str) -> tw.PrimFunc:
    n = te.placeholder((COUNT,), kind, name="N")

    def element(i: te.Var, j: te.Var) -> te.Expr:
        return OPEN[i, te.clamp_index(n[j], OPEN_WIDTH)]

    return te.func(OPEN, n, te.compute((OPEN_ROWS, COUNT), element, name="Y"), name="open_columns")


def table_of(rows: int, width: int) -> Array:
    return np.ascontiguousarray(RNG.standard_normal((rows, width)).astype(np.float32))


@pytest.mark.parametrize("target", [*HERE, "python"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_rows_of_a_table_whose_size_a_call_decides(target: str, kind: str) -> None:
    kernel = tw.build(open_rows(kind), target)
    if target != "python":
        assert str(kernel.proof).startswith("proved (")
    for rows, width, count in ((50, 40, 20), (1, 1, 1), (17, 33, 0), (17, 7, 9), (0, 5, 0)):
        table = table_of(rows, width)
        tokens = RNG.integers(-rows, max(rows, 1), count).astype(kind)
        assert np.array_equal(kernel(table, tokens), table[tokens])
        if not rows or not count:
            continue
        for wrong, told in ((rows, rows), (-rows - 2, -2), (49 if rows < 49 else 60, None)):
            given = tokens.copy()
            given[-1] = wrong
            out = np.zeros((count, width), np.float32)
            with pytest.raises(IndexRangeError, match="; expected 0 to rows - 1") as caught:
                kernel(table, given, out)
            assert f"'token' is {wrong if told is None else told};" in str(caught.value)
            assert np.array_equal(out, table[np.clip(given, -rows, rows - 1)])


@pytest.mark.parametrize("target", [*HERE, "python"])
def test_an_empty_table_has_no_rows_and_any_index_into_it_is_an_error(target: str) -> None:
    kernel = tw.build(open_rows("int64"), target)
    for tokens in ([0], [3, 1], [-1]):
        out = np.ones((len(tokens), 3), np.float32)
        with pytest.raises(IndexRangeError, match="'token' is -1; expected 0 to rows - 1"):
            kernel(table_of(0, 3), np.array(tokens), out)
        assert (out == 0).all()


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("kind", ["int32", "int64", "int8"])
def test_columns_of_an_open_width_are_gathered(target: str, kind: str) -> None:
    kernel = tw.build(open_columns(kind), target)
    assert str(kernel.proof).startswith("proved (")
    for rows, width, count in ((50, 40, 20), (3, 1, 17), (0, 4, 2), (5, 13, 0)):
        table, places = table_of(rows, width), RNG.integers(-100, 100, count).astype(kind)
        assert np.array_equal(kernel(table, places), table[:, np.clip(places, 0, width - 1)])


def test_a_clamp_of_the_bounds_alone_is_refused() -> None:
    n = te.placeholder((4,), "int64", name="N")
    with pytest.raises(IRError) as caught:
        te.compute((4, OPEN_WIDTH), lambda i, j: OPEN[te.clamp_index(n[i], 50), j], name="Y")
    assert str(caught.value) == (
        "IRError: te.compute: 'Y' reads dimension 0 of 'T' at max(min(N[i], 49), 0), which is "
        "data; expected it checked, or clamped to 0 .. rows-1. [te-index-data]\n"
        "  Hint: te.checked(max(min(N[i], 49), 0), rows): a call raises IndexError for what lies "
        "outside.\n"
        "  Hint: te.clamp_index(max(min(N[i], 49), 0), rows) takes the nearest index."
    )


def test_a_table_that_may_be_empty_is_not_read_unasked() -> None:
    n = te.placeholder((4,), "int64", name="N")
    with pytest.raises(IRError) as caught:
        te.compute((4, OPEN_WIDTH), lambda i, j: OPEN[te.checked(n[i], OPEN_ROWS), j], name="Y")
    assert str(caught.value) == (
        "IRError: te.compute: 'Y' reads 'T' at max(min(N[i], rows - 1), 0), which is data, along "
        "an axis that may be empty, 'rows'; expected that it asks whether rows > 0. "
        "[te-index-empty]\n"
        "  Hint: te.select(rows > 0, T[...], 0)"
    )
