"""ONNX's own node tests: what we import gives the expected results; the rest is refused by name."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

# Why a case may be refused: no such operator, an element type or an opset that we do not have,
# inputs that are no tensors, sizes that stay open, branches that give other types
REFUSALS = {
    "onnx-unsupported",
    "model-dtype",
    "onnx-opset",
    "onnx-input-kind",
    "shapes-open",
    "if-types",
}


def array(value: Array | TensorProto) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def load_cases() -> list[TestCase]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators of the cases overflow on purpose
        return load_model_tests(kind="node")


def check(case: TestCase, graph: Graph) -> None:
    """A graph gives what the case expects, before and after the passes."""
    for version in (graph, optimise(graph)[0]):
        for inputs, outputs in case.data_sets:
            names = (value.name for value in case.model.graph.input)
            given = dict(zip(names, map(array, inputs), strict=True))
            results = evaluate(version, {name: given[name] for name in graph.inputs}, dtype=None)
            for name, expected in zip(graph.outputs, map(array, outputs), strict=True):
                assert results[name].dtype == expected.dtype, case.name
                assert results[name].shape == expected.shape, case.name
                atol = max(case.atol, _noise(case, expected))
                np.testing.assert_allclose(
                    results[name], expected, rtol=case.rtol, atol=atol, err_msg=case.name
                )


def _noise(case: TestCase, expected: Array) -> float:
    """What rounding leaves of a zero in a spectrum: the cases of DFT have float32's."""
    kinds = {node.op_type for node in case.model.graph.node}
    return 1e-6 * float(np.abs(expected).max(initial=0)) if "DFT" in kinds else 0.0


@pytest.mark.slow
def test_every_case_is_right_or_refused() -> None:
    outcomes: Counter[str] = Counter()
    for case in load_cases():
        try:
            graph = import_onnx(case.model)
        except ModelError as error:
            outcomes[error.code] += 1
            continue
        outcomes["imported"] += 1
        check(case, graph)
    assert outcomes.pop("imported") >= 400
    assert set(outcomes) <= REFUSALS


@pytest.mark.slow
def test_every_case_of_several_outputs_from_one_kernel_is_right() -> None:
    """Those of TopK with their k, which a case passes at run time, as a constant."""
    found: Counter[str] = Counter()
    for case in load_cases():
        kinds = {node.op_type for node in case.model.graph.node}
        if not kinds <= {"TopK", "DynamicQuantizeLinear"}:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        if "TopK" in kinds:
            ((_, k), _) = case.data_sets[0]
            model.graph.initializer.append(numpy_helper.from_array(array(k), "k"))
        graph = import_onnx(model)
        found.update(kinds)
        check(case, graph)
        assert compile(graph, cache=False).verify()
    assert found["TopK"] >= 6
    assert found["DynamicQuantizeLinear"] == 3


@pytest.mark.slow
def test_every_case_of_branches_and_loops_is_right_as_an_engine() -> None:
    found: Counter[str] = Counter()
    for case in load_cases():
        kinds = {node.op_type for node in case.model.graph.node} & {"If", "Loop", "Scan"}
        if not kinds:
            continue
        try:
            graph = import_onnx(case.model)
        except ModelError:
            continue
        found.update(kinds)
        check(case, graph)
        assert compile(graph, cache=False).verify()
    assert found["Scan"] >= 15
    assert found["If"] >= 1


@pytest.mark.slow
def test_every_case_whose_data_decide_sizes_is_right_as_an_engine() -> None:
    wanted = {"NonZero", "Compress", "Unique", "NonMaxSuppression", "Range", "TopK"}
    found: Counter[str] = Counter()
    for case in load_cases():
        kinds = {node.op_type for node in case.model.graph.node}
        if not kinds <= wanted:
            continue
        shapes = {"output": (0, 3, 20)} if "Range" in kinds else None
        try:
            graph = import_onnx(case.model, shapes=shapes)
        except ModelError:
            continue  # as the first test says
        found.update(kinds)
        check(case, graph)
        engine = compile(graph, cache=False)
        assert engine.verify()
        for inputs, outputs in case.data_sets:
            names = (value.name for value in case.model.graph.input)
            given = dict(zip(names, map(array, inputs), strict=True))
            results = engine.run({name: given[name] for name in graph.inputs})
            for got, expected in zip(results.values(), map(array, outputs), strict=True):
                assert got.shape == expected.shape, case.name
                np.testing.assert_allclose(got, expected, rtol=case.rtol, err_msg=case.name)
    assert found["NonMaxSuppression"] >= 10
    assert found["TopK"] >= 6
    assert min(found["NonZero"], found["Compress"], found["Unique"], found["Range"]) >= 1


@pytest.mark.slow
def test_every_case_of_recurrent_operators_is_right_as_an_engine() -> None:
    found: Counter[str] = Counter()
    for case in load_cases():
        kinds = {node.op_type for node in case.model.graph.node} & {"LSTM", "GRU", "RNN"}
        if not kinds:
            continue
        graph = import_onnx(case.model)
        found.update(kinds)
        check(case, graph)
        assert compile(graph, cache=False).verify()
    assert min(found[kind] for kind in ("LSTM", "GRU", "RNN")) >= 6
