"""graph/importers/onnx/functions.py: a node without a rule is read as what its function says."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.graph.importers.onnx.test_importer import node, refusal
from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.limits import ImportLimits
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

OWN = "com.example"
X = np.array([[-2.0, -0.5, 0.0], [0.25, 1.0, 3.0]], np.float32)


def call(op: str, inputs: str, output: str, **attributes: object) -> NodeProto:
    return helper.make_node(
        op, inputs.split(" "), output.split(), name=output, domain=OWN, **attributes
    )


def function(
    name: str,
    inputs: str,
    outputs: str,
    nodes: list[NodeProto],
    *,
    attributes: tuple[str, ...] = (),
    defaults: dict[str, object] | None = None,
) -> FunctionProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
    made = helper.make_function(
        OWN, name, inputs.split(), outputs.split(), nodes, opsets, list(attributes)
    )
    given = (defaults or {}).items()
    made.attribute_proto.extend(helper.make_attribute(key, value) for key, value in given)
    return made


def referring(made: NodeProto, name: str, to: str, kind: int) -> NodeProto:
    """A node with an attribute that is one of the function around it."""
    made.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=kind))
    return made


def model(
    nodes: list[NodeProto], functions: list[FunctionProto], *, opset: int = 17, outputs: str = "y"
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs.split()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def computed(made: ModelProto) -> dict[str, Array]:
    """What the graph gives; the same as ONNX's evaluator."""
    found = evaluate(import_onnx(made), {"x": X})
    wanted = ReferenceEvaluator(made).run(None, {"x": X})
    for got, expected in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    return found


LEAKY = referring(node("LeakyRelu", "a", "r"), "alpha", "slope", onnx.AttributeProto.FLOAT)
LEAK = function("Leak", "a", "r", [LEAKY], attributes=("slope",))


@pytest.mark.parametrize(
    ("op", "attributes", "opset"),
    [
        ("Celu", {"alpha": 0.5}, 28),
        ("Shrink", {"bias": 0.25, "lambd": 0.75}, 9),
        ("ThresholdedRelu", {"alpha": 0.5}, 22),
        ("MeanVarianceNormalization", {"axes": [1]}, 13),
        ("ReduceLogSumExp", {}, 28),
    ],
)
def test_an_operator_is_what_its_schema_says(
    op: str, attributes: dict[str, object], opset: int
) -> None:
    computed(model([node(op, "x", "y", **attributes)], [], opset=opset))


def test_outputs_that_a_rule_does_not_know_come_from_the_function() -> None:
    made = helper.make_node("LayerNormalization", ["x", "s"], ["y", "mean", "scale"])
    ones = node("Constant", "", "s", value_floats=[1.0, 2.0, 3.0])
    found = computed(model([ones, made], [], outputs="y mean scale"))
    assert [array.shape for array in found.values()] == [(2, 3), (2, 1), (2, 1)]


def test_functions_of_the_model_are_read_with_the_attributes_of_each_call() -> None:
    calls = [call("Leak", "x", "h", slope=0.5), call("Leak", "h", "y", slope=0.25)]
    found = evaluate(import_onnx(model(calls, [LEAK])), {"x": X})["y"]
    np.testing.assert_allclose(found, np.where(X < 0, X * 0.125, X))


def test_an_attribute_has_the_default_of_the_function_or_of_its_operator() -> None:
    said = function("Said", "a", "r", [LEAKY], defaults={"slope": 0.5})
    unsaid = function("Unsaid", "a", "r", [LEAKY])  # then that of LeakyRelu, 0.01
    made = model([call("Said", "x", "y"), call("Unsaid", "x", "z")], [said, unsaid], outputs="y z")
    found = evaluate(import_onnx(made), {"x": X})
    np.testing.assert_allclose(found["y"], np.where(X < 0, X * 0.5, X))
    np.testing.assert_allclose(found["z"], np.where(X < 0, X * 0.01, X), rtol=1e-6)


def test_functions_may_call_others_and_leave_out_inputs_and_outputs() -> None:
    bounded = function("Bounded", "a low high", "r", [node("Clip", "a low high", "r")])
    both = function(
        "Both",
        "a",
        "least twice",
        [
            node("Constant", "", "low", value_float=-1.0),
            call("Bounded", "a low ", "least"),
            node("Add", "a a", "twice"),
        ],
    )
    alone = helper.make_node("Both", ["x"], ["", "y"], domain=OWN)
    made = model([alone, call("Both", "x", "z")], [bounded, both], outputs="y z")
    found = evaluate(import_onnx(made), {"x": X})
    np.testing.assert_array_equal(found["y"], X + X)
    np.testing.assert_array_equal(found["z"], np.maximum(X, -1))


def test_an_attribute_reaches_the_graphs_within_the_nodes_of_a_function() -> None:
    branch = helper.make_graph([LEAKY], "then", [], [onnx.ValueInfoProto(name="r")])
    other = helper.make_graph([node("Neg", "a", "m")], "else", [], [onnx.ValueInfoProto(name="m")])
    total = node("ReduceSum", "a", "total", keepdims=0)
    zero = node("Constant", "", "zero", value_float=0.0)
    question = node("Greater", "total zero", "question")
    chosen = helper.make_node("If", ["question"], ["c"], then_branch=branch, else_branch=other)
    chooses = function("Chooses", "a", "c", [total, zero, question, chosen], attributes=("slope",))
    graph = import_onnx(model([call("Chooses", "x", "y", slope=0.5)], [chooses]))
    np.testing.assert_allclose(evaluate(graph, {"x": X})["y"], np.where(X < 0, X * 0.5, X))
    np.testing.assert_allclose(evaluate(graph, {"x": -X})["y"], X)


def test_the_values_of_a_function_are_its_own() -> None:
    """It sees none of the model's, and names that both have are two values."""
    inner = function("Inner", "a", "r", [node("Neg", "a", "h"), node("Abs", "h", "r")])
    nodes = [node("Exp", "x", "h"), call("Inner", "h", "r"), node("Sub", "r h", "y")]
    computed(model(nodes, [inner]))
    reaching = function("Reaching", "a", "r", [node("Add", "a x", "r")])
    text = refusal(model([call("Reaching", "x", "y")], [reaching]))
    assert "node 'y/n_r' (Add) reads 'x', which nothing defines. [onnx-undefined]" in text


def test_what_a_function_cannot_be_read_for_is_named_with_the_call() -> None:
    odd = function("Odd", "a", "r", [node("Frobnicate", "a", "r")])
    text = refusal(model([call("Odd", "x", "y")], [odd]), UnsupportedOperator)
    assert "node 'y/n_r': Frobnicate of ai.onnx opset 17: there is no such core operator" in text
    wide = model([helper.make_node("Leak", ["x", "x"], ["y"], name="wide", domain=OWN)], [LEAK])
    assert (
        "node 'wide': Leak of com.example opset 1: it has 2 inputs and 1 outputs, its function 1 "
        "and 1" in refusal(wide, UnsupportedOperator)
    )
    extra = model([node("Celu", "x", "y", beta=2.0)], [], opset=22)
    assert "attribute 'beta' is not known" in refusal(extra, UnsupportedOperator)


def test_functions_without_end_are_refused() -> None:
    endless = function("Endless", "a", "r", [call("Endless", "a", "r")])
    text = refusal(model([call("Endless", "x", "y")], [endless]))
    assert text == (
        "ModelError: model: functions call each other more than 16 deep, from 'Endless' on; "
        "expected fewer. [onnx-function-depth]"
    )
    doubling = [
        function(f"F{n}", "a", "r", [call(f"F{n + 1}", "a", "b"), call(f"F{n + 1}", "b", "r")])
        for n in range(14)
    ]
    last = function("F14", "a", "r", [node("Neg", "a", "r")])
    most = ImportLimits(nodes=1000)
    text = refusal(model([call("F0", "x", "y")], [*doubling, last]), limits=most)
    assert "nodes; expected at most 1000. [onnx-nodes]" in text


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            helper.make_node("LayerNormalization", ["x"], ["y", "m"]),
            "has 1 inputs; expected 2 to 3",
        ),
        (helper.make_node("LayerNormalization", ["x", ""], ["y", "m"]), "lacks its input Scale"),
        (helper.make_node("Shrink", ["x"], ["y"], lambd="a"), "'lambd' is not of kind float"),
    ],
)
def test_a_call_that_does_not_fit_its_operator_never_reaches_onnx(
    made: NodeProto, why: str
) -> None:
    """Which would end the process."""
    made_of = model([made], [], outputs=" ".join(made.output), opset=21)
    assert why in refusal(made_of, UnsupportedOperator)
