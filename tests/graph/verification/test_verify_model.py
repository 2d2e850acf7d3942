"""graph/verification: what is compared with another system, and the first node that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto
from onnx.reference.ops.op_relu import Relu

from tilewright import calibrate, compile, verify_model
from tilewright.graph.options import OptionError
from tilewright.graph.verification import setting, systems
from tilewright.graph.verification.differences import ValueBound, difference
from tilewright.graph.verification.systems import (
    SYSTEMS,
    ModelRun,
    ReferenceSystem,
    SystemFailed,
    SystemMissing,
    UnknownSystem,
)
from tilewright.runtime.arrays import Array

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
    sums (float[batch, 3] x) => (float[batch, 3] y, int64[batch, 1] best)
    <float[3, 3] w = {1, 2, 3, 0.5, 1, 1, 2, 0, 1}> {
        shifted = MatMul (x, w)
        [rectify] kept = Relu (shifted)
        doubled = Add (kept, kept)
        y = Sub (doubled, x)
        best = ArgMax <axis = 1> (y)
    }
"""
PYTHON = {"target": "python", "shapes": {"batch": (1, 2, 4)}}


@pytest.fixture
def model() -> ModelProto:
    """Five nodes, of which a Relu comes second."""
    return onnx.parser.parse_model(MODEL)


@pytest.fixture
def wrong_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Relu of the reference that is off by a hundredth."""
    right = Relu._run
    monkeypatch.setattr(Relu, "_run", lambda self, x: (right(self, x)[0] + np.float32(0.01),))


@pytest.mark.parametrize("against", ["onnxruntime", "reference"])
def test_equal_models_are_equal_within_and_without(model: ModelProto, against: str) -> None:
    if against == "onnxruntime":
        pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    report = verify_model(model, against=against, intermediates=True, sizes={"batch": 3}, **PYTHON)
    assert report
    assert (report.runs, report.first) == (3, None)
    assert [(one.name, one.shape, one.unlike) for one in report.outputs] == [
        ("y", (3, 3), 0),
        ("best", (3, 1), 0),
    ]
    assert report.inside is not None
    assert (report.inside.compared, report.inside.left_out) == (5, ())
    assert str(report).endswith("  5 values within compared; none differs")


def test_the_first_node_that_differs_is_named(model: ModelProto, wrong_relu: None) -> None:
    given = {"x": np.array([[1, -2, 0.5]], np.float32)}
    report = verify_model(model, against="reference", inputs=given, intermediates=True, **PYTHON)
    assert not report
    first = report.first
    assert first is not None
    assert (first.node, first.operator, first.is_kept) == ("rectify", "Relu", True)
    assert first.value.error == pytest.approx(0.01)
    assert first.alone is not None
    assert not first.alone.is_equal
    (read,) = first.inputs
    assert (read.name, read.shape, read.low, read.high) == ("shifted", (1, 3), "0", "1.5")
    assert [one.name for one in first.outputs] == ["kept"]
    text = str(report)
    assert "node 'rectify' (Relu): the first differing value of an engine whose values" in text
    assert "reads shifted: float32[1, 3], 0 to 1.5" in text
    assert "alone, on what the other system gave it, differs, too: kept: float32[1, 3]" in text


def test_what_nobody_reads_is_no_value_within() -> None:
    """The mask of a Dropout of opset 7: onnxruntime gives 0 there, ONNX's reference 1."""
    text = """
<ir_version: 8, opset_import: ["": 9]>
drops (float[2, 3] x) => (float[2, 3] y) {
    kept, mask = Dropout(x)
    y = Relu(kept)
}
"""
    for against in ("onnxruntime", "reference"):
        if against == "onnxruntime":
            pytest.importorskip("onnxruntime")
        report = verify_model(
            onnx.parser.parse_model(text), against=against, intermediates=True, target="python"
        )
        assert report
        assert report.inside is not None
        assert report.inside.compared == 2


@dataclass(frozen=True)
class FusionFault:
    """The reference, which is off behind a Relu where a model has one output."""

    name: str = "fused"
    title: str = "fused 1.0"

    def load(self, model: str | ModelProto) -> ModelRun:
        assert isinstance(model, ModelProto)
        run = ReferenceSystem().load(model)
        is_off = len(model.graph.output) < 3 and any(n.op_type == "Relu" for n in model.graph.node)

        def off(inputs: Mapping[str, Array]) -> dict[str, Array]:
            found = run(inputs)
            return {n: a + a.dtype.type(1) if is_off else a for n, a in found.items()}

        return off


def test_what_differs_only_where_nothing_is_kept_is_bisected(
    model: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "fused", FusionFault())
    report = verify_model(model, against="fused", intermediates=True, **PYTHON)
    first = report.first
    assert first is not None
    assert (first.node, first.is_kept) == ("rectify", False)
    assert report.inside is not None
    assert report.inside.compared == 5
    assert "no value differs where all are kept, so that fusion or the plan" in str(report)


def test_systems_that_are_not_there_are_refused(
    model: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownSystem) as unknown:
        verify_model(model, against="onxruntime")
    assert str(unknown.value) == (
        "UnknownSystem: verify: there is no system 'onxruntime'; known are 'onnxruntime', "
        "'reference'. [verify-system]"
    )
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    with pytest.raises(SystemMissing) as missing:
        verify_model(model)
    assert str(missing.value) == (
        "SystemMissing: verify: 'onnxruntime' is not installed. [verify-system-missing]\n"
        "  Hint: python -m pip install onnxruntime\n"
        "  Hint: 'reference', the evaluator of the onnx package, is always there."
    )


def test_what_another_system_cannot_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Relu, "_run", lambda self, x: 1 / 0)
    with pytest.raises(SystemFailed) as failed:
        verify_model(onnx.parser.parse_model(MODEL), against="reference", **PYTHON)
    version = ReferenceSystem().title
    assert str(failed.value) == (
        f"SystemFailed: verify: {version} cannot run this model: division by zero. "
        "[verify-system-fails]"
    )
    monkeypatch.setattr(Relu, "_run", lambda self, x: ([x],))
    only = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> a (float[1] x) => (float[1] y) { y = Relu (x) }'
    )
    with pytest.raises(SystemFailed) as failed:
        verify_model(only, against="reference", target="python")
    assert str(failed.value) == (
        f"SystemFailed: verify: output 'y' of {version} is a list; expected a tensor. "
        "[verify-system-output]"
    )


def compared(ours: Array, theirs: Array, **bound: float) -> str:
    """The text of a difference."""
    return str(difference("y", ours, theirs, ValueBound(**bound), "seed 0"))


def test_differences_say_where_and_what() -> None:
    one, nan, inf = np.float32(1), np.float32(np.nan), np.float32(np.inf)
    assert compared(np.array([one, 2]), np.array([one, 2])) == (
        "y: float64[2]: off by 0 (0 of theirs), 0 of the allowed at [0]: 1, theirs 1; seed 0"
    )
    assert compared(np.array([[one, 3 * one]]), np.array([[one, 2 * one]])) == (
        "y: float32[1, 2]: off by 1 (0.5 of theirs), 5e+03 of the allowed at [0, 1]: 3, theirs 2; "
        "seed 0"
    )
    assert compared(np.array([nan, one, inf]), np.array([nan, nan, inf])) == (
        "y: float32[3]: off by 0 (0 of theirs), inf of the allowed at [1]: 1, theirs nan; 1 NaN or "
        "infinite in one alone; seed 0"
    )
    assert compared(np.zeros((2, 0), np.float32), np.zeros((2, 1), np.float32)) == (
        "y: float32[2, 0]: its shape is [2, 0], theirs [2, 1], seed 0"
    )
    assert compared(np.zeros(1, np.int32), np.zeros(1, np.int64)) == (
        "y: int32[1]: its type is int32, theirs int64, seed 0"
    )


@pytest.mark.parametrize(
    ("kind", "off", "is_equal"),
    [
        (np.float32, 0.9e-4, True),
        (np.float32, 1.1e-4, False),
        (np.float64, 0.9e-11, True),
        (np.float64, 1.1e-11, False),
        (np.float16, 1e-2, True),
        (np.float16, 3e-2, False),
        (ml_dtypes.bfloat16, 0.1, True),
        (np.int32, 0.0, True),
        (np.int32, 1.0, False),
    ],
)
def test_each_type_has_its_tolerance(kind: type, off: float, is_equal: bool) -> None:
    theirs = np.array([1, 0.5]).astype(kind)
    assert (
        difference("y", (theirs + off).astype(kind), theirs, ValueBound(), "").is_equal is is_equal
    )


def test_integers_may_differ_by_what_rounding_explains() -> None:
    ours, theirs = np.array([3], np.uint8), np.array([4], np.uint8)
    bound = ValueBound(roundings=lambda: {"y": 1.0})
    assert difference("y", ours, theirs, bound, "").is_equal
    assert not difference("y", ours - 1, theirs, bound, "").is_equal
    assert not difference("y", ours, theirs, ValueBound(roundings=lambda: {"y": 0.0}), "").is_equal
    assert difference("y", ours, theirs, ValueBound(atol=1.0), "").share == float("inf")


NARROW = """<ir_version: 9, opset_import: ["" : 17]>
    classes (float[8, 64] x) => (float[8, 4] y) {
        [fc1] a = MatMul (x, w)
        b = Relu (a)
        [fc2] y = MatMul (b, v)
    }
"""


@pytest.fixture(scope="module")
def classes() -> ModelProto:
    """Two products of random weights."""
    model, rng = onnx.parser.parse_model(NARROW), np.random.default_rng(0)
    for name, shape in (("w", (64, 64)), ("v", (64, 4))):
        weights = rng.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return model


@pytest.mark.needs_cc
def test_products_of_16_bits_are_held_to_what_their_type_allows(classes: ModelProto) -> None:
    precision = {"fc1": "bfloat16"}
    report = verify_model(classes, against="reference", precision=precision)
    assert report
    (one,) = report.outputs
    assert 1e-4 < one.error / np.abs(float(one.theirs)) < 1
    assert one.share < 0.2  # of 10 times 2**-6
    # an engine says itself what it has
    engine = compile(classes, precision=precision)
    assert verify_model(classes, against="reference", engine=engine).outputs == report.outputs
    plain = verify_model(classes, against="reference", engine=compile(classes))
    assert plain.outputs[0].error < one.error / 100
    assert not verify_model(classes, against="reference", engine=engine, rtol=1e-4)


@pytest.mark.needs_cc
def test_products_of_bytes_are_held_to_what_the_caller_says(
    classes: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [np.random.default_rng(n).standard_normal((8, 64), np.float32) for n in range(3)]
    how: dict[str, Any] = {"precision": "int8", "calibration": calibrate(classes, data)}
    how["target"] = "c:avx2"
    report = verify_model(classes, against="reference", tolerance=0.05, **how)
    assert report
    assert report.outputs[0].share > 1e-2
    # what rounding of the model itself might explain is of no account
    monkeypatch.setattr(setting, "roundings_of", lambda *_: {"y": 1e9})
    assert not verify_model(classes, against="reference", tolerance=1e-4, **how)
    engine = compile(classes, **how)
    said = (
        "OptionError: verify: products multiply bytes, which round by the ranges of a calibration: "
        "no type says what outputs may be off by; expected atol, rtol or tolerance. "
        "[verify-bytes-bound]\n"
        "  Hint: tolerance=0.05 allows 5 % of an output's largest magnitude; "
        "compile(..., accuracy=...) holds a metric on data."
    )
    given: dict[str, Any]
    for given in (how, {"engine": engine}):
        with pytest.raises(OptionError) as caught:
            verify_model(classes, against="reference", **given)
        assert str(caught.value) == said


def test_values_within_a_model_of_narrower_products_are_not_compared(classes: ModelProto) -> None:
    with pytest.raises(OptionError) as caught:
        verify_model(classes, precision="float16", intermediates=True, against="reference")
    assert str(caught.value) == (
        "OptionError: verify: intermediates are asked for of a model with products in float16, of "
        "whose values no other system has the same; expected the outputs alone, or a model in "
        "float32. [verify-precision-inside]\n"
        "  Hint: engine.explain().precision says what bytes change in each product."
    )
