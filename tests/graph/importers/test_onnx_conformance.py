"""ONNX's own node tests: what we import gives the expected results; the rest is refused by name."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.draws import drawing_nodes
from tilewright.graph.ir.ir import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

WANTED = re.compile(r"input '(.*)' is not a constant")
KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def array(value: Array | TensorProto) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def load_cases() -> list[TestCase]:
    """ONNX's node tests, and its models with stored data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators of the cases overflow on purpose
        cases = load_model_tests(kind="node")
    stored = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return [*cases, *map(with_data, stored)]


def with_data(case: TestCase) -> TestCase:
    """A case whose model and data lie in files."""
    folder = Path(case.model_dir)
    sets = [
        tuple(
            [
                TensorProto.FromString((at / f"{what}_{n}.pb").read_bytes())
                for n in range(len(list(at.glob(f"{what}_*.pb"))))
            ]
            for what in ("input", "output")
        )
        for at in sorted(folder.glob("test_data_set_*"))
    ]
    return replace(case, model=onnx.load(folder / "model.onnx"), data_sets=sets)


def flat(names: Iterable[str], values: Iterable[object]) -> dict[str, Array]:
    """Values by name, those of a sequence 'x' as 'x[0]', 'x[1]', ...; optional ones that are none
    are left out.
    """
    found: dict[str, Array] = {}
    for name, value in zip(names, values, strict=False):
        if isinstance(value, list):
            found |= {f"{name}[{n}]": array(one) for n, one in enumerate(value)}
        elif value is not None:
            found[name] = array(value)
    return found


def structures(case: TestCase) -> tuple[dict[str, Sequence[object]], dict[str, None]]:
    """What is said of inputs that are no tensors: shapes of sequences, and what is not there."""
    names = [value.name for value in case.model.graph.input]
    values = dict(zip(names, case.data_sets[0][0], strict=False))
    listed = {name: value for name, value in values.items() if isinstance(value, list)}
    shapes: dict[str, Sequence[object]] = {
        name: [array(one).shape for one in value] for name, value in listed.items()
    }
    if listed:  # a symbol of an element's shape may be one of a tensor's
        tensors = {name: value for name, value in values.items() if hasattr(value, "shape")}
        shapes |= {name: value.shape for name, value in tensors.items()}
    return shapes, {name: None for name, value in values.items() if value is None}


def read(case: TestCase) -> tuple[Graph, dict[str, Array]]:
    """The graph of a case, and the values of inputs that are said when it is read, because rules
    want to know them. Raises: ModelError.
    """
    said: dict[str, Array] = {}
    names = [value.name for value in case.model.graph.input]
    shapes, absent = structures(case)
    while True:
        try:
            others = {name: shape for name, shape in shapes.items() if name not in said}
            return import_onnx(case.model, shapes=others, constants={**said, **absent}), said
        except UnsupportedOperator as error:
            wanted = {name for item in error.nodes for name in WANTED.findall(item.reason)}
            new = wanted.intersection(names).difference(said)
            values = flat(names, case.data_sets[0][0])
            if not new or len(case.data_sets) > 1:
                raise
            said |= {name: values[name] for name in new}


def reason(error: ModelError) -> str:
    """Why a model is refused, without what differs from case to case: the names of its values."""
    if not isinstance(error, UnsupportedOperator):
        return f"[{error.code}]"
    parts = [f"{part.kind}: {part.reason}" for part in error.parts]
    nodes = [f"{node.operator}: {node.reason}" for node in error.nodes]
    return re.sub(r"'[^']*'", "'...'", (parts + nodes)[0]).partition("; expected one of ")[0]


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


def check_output(case: TestCase, got: Array, expected: Array, *, is_drawn: bool = False) -> None:
    """An output is what a case expects, within its tolerances; where it is drawn, of its type."""
    assert got.dtype == expected.dtype, case.name
    assert got.shape == expected.shape, case.name
    if is_drawn:
        return
    kinds = {node.op_type for node in case.model.graph.node}
    # what rounding leaves of a zero in a spectrum: the cases of DFT have float32's
    noise = 1e-6 * float(np.abs(expected).max(initial=0)) if "DFT" in kinds else 0.0
    atol = max(case.atol, noise)
    # cases in 16 bits round after every step: two last places
    rtol = max(case.rtol, {"bfloat16": 2**-6, "float16": 2**-9}.get(expected.dtype.name, 0.0))
    if expected.dtype.kind == "V":  # of ml_dtypes
        got, expected = (array.astype(np.float64) for array in (got, expected))
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=case.name)


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
    for case in load_cases()[part::32]:
        try:
            graph, _ = read(case)
        except ModelError:
            continue  # as the test above says
        engine, is_drawn = compile(graph, cache=False), drawing_nodes(graph) > 0
        assert engine.verify(), case.name
        for inputs, outputs in case.data_sets:
            names = (value.name for value in case.model.graph.input)
            given = flat(names, inputs)
            results = engine.run({name: given[name] for name in graph.inputs})
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
