"""schedule/index_map.py: maps print, parse, and give every element back."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schedule.index_map import IndexMap
from tilewright.tir.analysis.simplify import simplify
from tilewright.tir.expr import Const, index

TEXTS = [
    "lambda i: (i,)",
    "lambda i, j: (j, i)",
    "lambda k, n: (n // 48, k, n % 48)",
    "lambda a, b: (a // 6, b, a // 2 % 3, a % 2)",
    "lambda i, j: (0, j, i)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_map_prints_as_the_text_that_makes_it(text: str) -> None:
    assert str(IndexMap.parse(text)) == text


def test_a_map_of_a_function_is_the_map_of_its_text() -> None:
    made = IndexMap.of(lambda k, n: (n // 48, k, n % 48))
    assert str(made) == TEXTS[2]


def numbers(items: tuple[object, ...]) -> tuple[int, ...]:
    found = [simplify(item) for item in items]  # type: ignore[arg-type]
    assert all(isinstance(item, Const) for item in found)
    return tuple(int(item.value) for item in found if isinstance(item, Const))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (13, 50), (12, 96)])
def test_every_element_has_a_cell_of_its_own_and_is_found_again(
    text: str, shape: tuple[int, int]
) -> None:
    made = IndexMap.parse(text)
    old = shape[: len(made.sources)]
    new = made.shape(old)
    cells = set()
    for point in itertools.product(*(range(n) for n in old)):
        cell = numbers(made.apply(tuple(index(value) for value in point)))
        assert all(0 <= at < n for at, n in zip(cell, new, strict=True))
        assert numbers(made.inverse(tuple(index(at) for at in cell))) == point
        cells.add(cell)
    count = 1
    for extent in old:
        count *= extent
    assert len(cells) == count


@given(st.integers(1, 40), st.lists(st.integers(2, 5), max_size=3))
def test_any_digits_of_an_index_keep_it(extent: int, sizes: list[int]) -> None:
    weight, parts = 1, []
    for size in sizes:
        parts.append(f"i // {weight} % {size}")
        weight *= size
    made = IndexMap.parse(f"lambda i: ({', '.join([f'i // {weight}', *parts])},)")
    new = made.shape((extent,))
    for value in range(extent):
        cell = numbers(made.apply((index(value),)))
        assert all(0 <= at < n for at, n in zip(cell, new, strict=True))
        assert numbers(made.inverse(tuple(index(at) for at in cell))) == (value,)


def test_panels_are_counted_whole() -> None:
    assert IndexMap.parse(TEXTS[2]).shape((3, 50)) == (2, 3, 48)
    assert IndexMap.parse(TEXTS[2]).shape((3, 5)) == (1, 3, 48)
    assert IndexMap.parse("lambda i: (i % 8,)").shape((5,)) == (8,)


def test_an_index_of_one_value_needs_no_digit() -> None:
    made = IndexMap.parse("lambda i, j: (j,)")
    assert made.shape((1, 5)) == (5,)
    assert numbers(made.inverse((index(3),))) == (0, 3)
