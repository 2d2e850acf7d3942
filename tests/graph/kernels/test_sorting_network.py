"""graph/kernels/sorting_network.py: every network sorts (the zero-one principle), and its steps."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.kernels.sorting_network import (
    padded,
    sorted_codes,
    steps_of,
    transpositions_of,
)
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te


def network(rows: int, size: int, count: int) -> PrimFunc:
    """The first numbers of rows of positive ones."""
    x = te.placeholder((rows, size), "float64", name="x")
    made = sorted_codes(lambda *i: x[i], (rows,), size, count, "net")
    return te.func(x, made, name="sorted")


def test_sixteen_zeros_and_ones_are_sorted_whatever_they_are() -> None:
    """A network that sorts all zeros and ones sorts everything (Knuth, section 5.3.4)."""
    bits = np.arange(1 << 16)[:, None] >> np.arange(16) & 1
    x = bits.astype(np.float64) + 1.0
    (found,) = evaluate(network(1 << 16, 16, 16), {"x": x}).values()
    np.testing.assert_array_equal(found, np.sort(x, 1))


@pytest.mark.parametrize("size", [1, 2, 9, 16, 17, 31, 64, 100, 128, 1000, 2048])
def test_rows_of_any_length_are_sorted(size: int) -> None:
    x = 1.0 + np.random.default_rng(size).random((3, size))
    (found,) = evaluate(network(3, size, size), {"x": x}).values()
    np.testing.assert_array_equal(found, np.sort(x, 1))


def test_the_interpreter_agrees_and_less_may_be_wanted() -> None:
    x = 1.0 + np.random.default_rng(0).random((2, 40))
    (found,) = interpret(network(2, 40, 7), x, checked=True)
    np.testing.assert_array_equal(found, np.sort(x, 1)[:, :7])


@pytest.mark.parametrize(
    ("size", "whole", "steps", "transpositions"),
    [(5, 16, 11, 4), (16, 16, 11, 4), (17, 32, 16, 6), (1000, 1024, 83, 4), (2048, 2048, 94, 6)],
)
def test_networks_have_a_power_of_two_of_codes(
    size: int, whole: int, steps: int, transpositions: int
) -> None:
    assert padded(size) == whole
    assert (steps_of(size), transpositions_of(size)) == (steps, transpositions)
