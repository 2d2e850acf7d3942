"""Networks of JAX and flax: values, and what passes recognise in them.

make_programs.py, beside this file, writes the programs; jax is not needed here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.graph.importers.jaxpr.stored import Stored, load
from tilewright.graph.importers.jaxpr.importer import import_jaxpr
from tilewright.graph.ir.ir import Graph, RegionOperator
from tilewright.graph.passes.pipeline import PIPELINE, optimise
from tilewright.graph.reference.reference import evaluate

STRICT = tuple(one for one in PIPELINE if one.keeps_rounding)

HERE = Path(__file__).parent / "models"
NAMES = tuple(sorted(path.stem for path in HERE.glob("*.npz")))
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def _check(stored: Stored, found: dict[str, Array]) -> None:
    """Within 1e-5 of the largest element: JAX rounds in float32, too."""
    assert len(found) == len(stored.wanted)
    for (name, array), expected in zip(found.items(), stored.wanted, strict=True):
        bound = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(array, expected, rtol=0, atol=bound, err_msg=name)


def _count(graph: Graph, counts: Counter[str]) -> Counter[str]:
    for node in graph.nodes:
        counts[node.op.title] += 1
        if isinstance(node.op, RegionOperator):
            for region in node.op.regions:
                _count(region, counts)
    return counts


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_jax(name: str) -> None:
    stored = load(HERE / f"{name}.npz")
    graph = import_jaxpr(stored.program)
    _check(stored, evaluate(graph, stored.given, dtype=None))


@pytest.mark.parametrize("name", NAMES)
def test_all_that_a_network_spells_out_is_recognised(name: str) -> None:
    stored = load(HERE / f"{name}.npz")
    graph, reports = optimise(import_jaxpr(stored.program))
    counts = _count(graph, Counter())
    assert {title: counts[title] for title in stored.operators} == stored.operators
    assert not [str(report) for report in reports if report.verdict == "undone"]
    _check(stored, evaluate(graph, stored.given, dtype=None))


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_build_keeps_what_rounds_otherwise(name: str) -> None:
    stored = load(HERE / f"{name}.npz")
    graph, reports = optimise(import_jaxpr(stored.program), STRICT)
    counts = _count(graph, Counter())
    assert not counts["LayerNormalization"]
    assert not counts["Attention"]
    assert not [str(report) for report in reports if report.verdict == "undone"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(2)
def test_engines_compute_the_same(name: str) -> None:
    stored = load(HERE / f"{name}.npz")
    engine = tw.compile(import_jaxpr(stored.program), cache=False)
    _check(stored, engine.run(stored.given))
