"""Rules of primitives: values of programs that hold many calls.

make_programs.py, beside this file, writes the programs; jax is not needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from stored import load

import tilewright as tw
from tilewright.graph.importers.jaxpr.importer import import_jaxpr
from tilewright.graph.importers.jaxpr.program import Jaxpr, Parameter
from tilewright.graph.importers.jaxpr.rules.table import RULES
from tilewright.graph.reference.reference import evaluate

HERE = Path(__file__).parent
FAMILIES = tuple(sorted(path.stem for path in HERE.glob("*.npz")))
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
