"""Rules of primitives: values of programs that hold many calls.

make_programs.py, beside this file, writes the programs; jax is not needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.graph.importers.jaxpr.stored import load
from tilewright.graph.importers.jaxpr.importer import import_jaxpr
from tilewright.graph.importers.jaxpr.program import Jaxpr, Parameter
from tilewright.graph.importers.jaxpr.rules.table import RULES
from tilewright.graph.reference.reference import evaluate

HERE = Path(__file__).parent
FAMILIES = tuple(sorted(path.stem for path in HERE.glob("*.npz")))
# made of a while loop by ours, by JAX of open sizes or of a derivative of a sort (test_programs.py)
ELSEWHERE = {"closed_call", "dim_as_value", "eq_to", "lt_to"}
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def _compare(family: str, run: Callable[[dict[str, Array]], dict[str, Array]]) -> None:
    stored = load(HERE / f"{family}.npz")
    found = run(stored.given)
    assert len(found) == len(stored.wanted)
    for (name, array), expected in zip(found.items(), stored.wanted, strict=True):
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(
            array, expected, rtol=3e-5, atol=3e-6, equal_nan=True, err_msg=name
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_jax(family: str) -> None:
    graph = import_jaxpr(load(HERE / f"{family}.npz").program)
    _compare(family, lambda given: evaluate(graph, given, dtype=None))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.sampled(3)
def test_engines_compute_the_same(family: str) -> None:
    graph = import_jaxpr(load(HERE / f"{family}.npz").program)
    _compare(family, tw.compile(graph, cache=False).run)


def test_random_numbers_are_those_of_jax_to_the_bit() -> None:
    stored = load(HERE / "random.npz")
    found = evaluate(import_jaxpr(stored.program), stored.given, dtype=None)
    for array, expected in zip(found.values(), stored.wanted, strict=True):
        if expected.dtype.kind in "ui":
            np.testing.assert_array_equal(array, expected)


def _primitives(jaxpr: Jaxpr) -> Iterator[str]:
    for item in jaxpr.equations:
        yield item.primitive
        for value in item.parameters.values():
            yield from _within(value)


def _within(value: Parameter) -> Iterator[str]:
    if isinstance(value, Jaxpr):
        yield from _primitives(value)
    elif isinstance(value, tuple):
        for one in value:
            yield from _within(one)


def test_each_rule_stands_in_a_program() -> None:
    called = {
        name
        for family in FAMILIES
        for name in _primitives(load(HERE / f"{family}.npz").program.jaxpr)
    }
    assert set(RULES) - called == ELSEWHERE
