"""Random models that branch and loop within each other, against ONNX's own reference: of closed
sizes in each form that a model takes, of open ones as an engine at several sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.fuzz.random_model import RandomModel, random_model
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.reference_program import reference_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.verification.systems import SystemFailed, system_named
from tilewright.runtime.arrays import Array

pytestmark = pytest.mark.needs_cc


def inputs_of(drawn: RandomModel) -> Iterator[dict[str, Array]]:
    """At the least, the usual and the largest sizes, with other counts and flags."""
    for number, (trips, flag) in enumerate(((0, True), (2, False), (3, True))):
        sizes = {name: ends[number] for name, ends in drawn.ranges.items()}
        given = drawn.inputs(sizes, drawn.seed + number)
        yield {**given, "trips": np.array(trips), "flag": np.array(flag)}


def check(seed: int, target: str | None) -> None:
    drawn = random_model(seed, "regions")
    read = import_onnx(drawn.proto)
    better, reports = optimise(read)
    assert not [report for report in reports if report.verdict == "undone"]
    plain = reference_model(read)
    engine = compile(drawn.proto, target, cache=False, verify="off")
    for given in inputs_of(drawn):
        compare(drawn, given, "graph", evaluate(read, given, dtype=None))
        compare(drawn, given, "after the passes", evaluate(better, given, dtype=None))
        compare(drawn, given, "a kernel for each node", plain.in_own_types(given))
        compare(drawn, given, "engine", engine.run(given, threads=2))


def check_open(seed: int, target: str | None) -> None:
    """What onnxruntime says at each size, and one set of bits on any number of threads."""
    drawn = random_model(seed, "both")
    read = import_onnx(drawn.proto, shapes=drawn.ranges)
    better, reports = optimise(read)
    assert not [report for report in reports if report.verdict == "undone"]
    engine = compile(drawn.proto, target, cache=False, verify="off", shapes=drawn.ranges)
    for given in inputs_of(drawn):
        compare(drawn, given, "after the passes", evaluate(better, given, dtype=None))
        found = engine.run(given, threads=2)
        compare(drawn, given, "engine", found)
        for name, array in engine.run(given, threads=1).items():
            assert array.tobytes() == found[name].tobytes()


def judged(drawn: RandomModel, given: dict[str, Array]) -> dict[str, Array]:
    """What onnxruntime computes; where it lacks a kernel, ONNX's reference."""
    try:
        return system_named("onnxruntime").load(drawn.proto)(given)
    except SystemFailed:
        return system_named("reference").load(drawn.proto)(given)


def compare(
    drawn: RandomModel, given: dict[str, Array], way: str, found: Mapping[str, Array]
) -> None:
    expected = judged(drawn, given)
    for name, array in expected.items():
        assert found[name].shape == array.shape
        np.testing.assert_allclose(
            found[name], array, rtol=1e-3, atol=1e-4, err_msg=f"{way}: {name}"
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_gives_what_onnx_says(seed: int) -> None:
    check(seed, "c:scalar")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_gives_it_at_every_size(seed: int) -> None:
    check_open(seed, "c:scalar")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_random_models_give_what_onnx_says(seed: int) -> None:
    check(seed, None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 260))
def test_random_models_give_it_at_every_size(seed: int) -> None:
    check_open(seed, None)
