"""ONNX's own node tests: what we import gives the expected results; the rest is refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.draws import drawing_nodes
from tilewright.graph.ir.ir import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate

from .onnx_cases import array, check_output, flat, load_cases, read, reason


def check(case: TestCase, graph: Graph) -> None:
    """A graph gives what the case expects, before and after the passes."""
    is_drawn = drawing_nodes(graph) > 0
    for version in (graph, optimise(graph)[0]):
        for inputs, outputs in case.data_sets:
            names = (value.name for value in case.model.graph.input)
            given = flat(names, inputs)
            results = evaluate(version, {name: given[name] for name in graph.inputs}, dtype=None)
            expected_of = flat((value.name for value in case.model.graph.output), outputs)
            for name, expected in zip(graph.outputs, expected_of.values(), strict=True):
                check_output(case, results[name], expected, is_drawn=is_drawn)


def test_every_case_is_right_or_refused_for_a_reason_that_is_known(
    golden: Callable[[str, str], None], root: Path, request: pytest.FixtureRequest
) -> None:
    """tests/graph/onnx_expected.txt has the reasons; one case more that is right is news, too."""
    version = f"onnx {onnx.__version__}: "
    known = (root / "tests/graph/onnx_expected.txt").read_text(encoding="utf-8")
    if not (known.startswith(version) or request.config.getoption("--update-golden")):
        pytest.skip(f"the reasons are known of the cases of {known.partition(':')[0]}")
    refused: dict[str, list[str]] = {}
    right = with_values = 0
    for case in load_cases():
        try:
            graph, said = read(case)
        except ModelError as error:
            refused.setdefault(reason(error), []).append(case.name)
            continue
        check(case, graph)
        right += 1
        with_values += bool(said)
    total = right + sum(map(len, refused.values()))
    lines = [
        f"{version}{right} of {total} cases are right, {with_values} of them where compile knows",
        "the value of an input (constants=). The others are refused, for:",
    ]
    for why, names in sorted(refused.items(), key=lambda item: (-len(item[1]), item[0])):
        lines += ["", f"{why}  ({len(names)})", *(f"    {name}" for name in sorted(names))]
    golden("../graph/onnx_expected.txt", "\n".join(lines))


@pytest.mark.needs_cc
@pytest.mark.sampled(32)
@pytest.mark.parametrize("part", range(32))
def test_cases_are_right_as_engines(part: int) -> None:
    """A thirty-second part of all in each."""
    wrong = []
    for case in load_cases()[part::32]:
        try:
            graph, _ = read(case)
        except ModelError:
            continue  # as the test above says
        try:
            check_engine(case, graph)
        except Exception as error:  # so that all are told
            wrong.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def check_engine(case: TestCase, graph: Graph) -> None:
    """An engine does what its reference does, and gives what the case expects."""
    engine, is_drawn = compile(graph, cache=False), drawing_nodes(graph) > 0
    # random places are none that a MaxPool gave
    has_places = any(node.op_type == "MaxUnpool" for node in case.model.graph.node)
    for inputs, outputs in case.data_sets:
        values = flat((value.name for value in case.model.graph.input), inputs)
        given = {name: values[name] for name in graph.inputs}
        assert engine.verify(given if has_places else None)
        results = engine.run(given)
        expected_of = flat((value.name for value in case.model.graph.output), outputs)
        for name, expected in zip(graph.outputs, expected_of.values(), strict=True):
            check_output(case, results[name], expected, is_drawn=is_drawn)


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
