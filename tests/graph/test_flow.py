"""Models that branch and loop, from ONNX to C, against ONNX's own reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.verify import verify
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.reference_program import reference_model
from tilewright.graph.reference.reference import evaluate

from .flow_models import MODELS, Array

NAMES = list(MODELS)


def assert_equal(got: Mapping[str, Array], expected: Sequence[Array], what: str) -> None:
    for (name, one), other in zip(got.items(), expected, strict=True):
        assert one.dtype == other.dtype, (what, name)
        assert one.shape == other.shape, (what, name)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=f"{what}: {name}")


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_means_what_onnx_says_before_and_after_the_passes(name: str) -> None:
    model = MODELS[name]()
    graph = import_onnx(model.proto)
    verify(graph)
    better, reports = optimise(graph)
    assert not [report for report in reports if report.verdict == "undone"]
    for inputs in model.runs:
        expected = model.expected(inputs)
        for which, one in (("imported", graph), ("optimised", better)):
            assert_equal(evaluate(one, inputs, dtype=None), expected, which)


@pytest.mark.parametrize("name", NAMES)
def test_its_programs_mean_the_same(name: str) -> None:
    model = MODELS[name]()
    plain = reference_model(import_onnx(model.proto))
    interpreted = compile(model.proto, "python", cache=False)
    for inputs in model.runs:
        expected = model.expected(inputs)
        assert_equal(plain.in_own_types(inputs), expected, "a kernel for each node")
        assert_equal(interpreted.run(inputs), expected, "interpreted")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NAMES)
def test_an_engine_runs_is_kept_and_is_verified(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    engine = compile(model.proto, cache=False)
    loaded = tw.load(engine.save(tmp_path / "flow.twe"))
    for inputs in model.runs:
        expected = model.expected(inputs)
        for threads in (1, 2):
            assert_equal(engine.run(inputs, threads=threads), expected, f"{threads} threads")
        assert_equal(loaded.run(inputs), expected, "loaded")
        assert loaded.verify(inputs)
