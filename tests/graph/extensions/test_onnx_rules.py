"""Nodes of ONNX models that are operators of others."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.graph.errors import ModelError, OperatorError, UnsupportedOperator
from tilewright.graph.extensions.operators import DECLARED
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.node import NodeReader, NotSupported
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Mul
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array
from tilewright.tir.expr import Expr

DOMAIN = "tests.onnx"


class Scaled(tw.Elementwise):
    """What the declarations below have in common."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (arrays[0] * np.asarray(self.factor, arrays[0].dtype),)  # type: ignore[operator]

    def element(self, *elements: Expr) -> Expr:
        return elements[0] * self.factor

    @property
    def factor(self) -> float:
        """What each element is multiplied with."""
        return 1.0


@tw.operator("tests.onnx::Times", onnx=(DOMAIN, "Times", (1, 3)))
class Times(Scaled):
    by: float
    mode: Literal["once", "twice"] = "once"
    also: tuple[int, ...] = ()
    flag: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        if self.by == 0:
            raise ValueError("by is 0")

    @property
    def factor(self) -> float:
        product = float(np.prod(self.also)) * self.by
        return product**2 if self.mode == "twice" else product


def _power(node: NodeReader) -> object:
    """A node with an attribute that no field has, of which each step is one of ours."""
    power = node.integer("power")
    if power < 1:
        raise NotSupported(f"power is {power}")
    value = node.value(0)
    for _ in range(power - 1):
        value = node.emit(Mul(), value, node.value(0))
    return Times(1.0), (value,)


@tw.operator(
    "tests.onnx::Power",
    onnx=tw.OnnxRule(DOMAIN, "Power", build=_power, attributes=("power",)),
)
class Power(Scaled):
    pass


def _nothing(node: NodeReader) -> object:
    return "nothing"


def _raises(node: NodeReader) -> object:
    raise KeyError("lost")


@tw.operator("tests.onnx::Nothing", onnx=tw.OnnxRule(DOMAIN, "Nothing", build=_nothing))
class Nothing(Scaled):
    pass


@tw.operator("tests.onnx::Raises", onnx=tw.OnnxRule(DOMAIN, "Raises", build=_raises))
class Raises(Scaled):
    pass


def model(name: str, domain: str = DOMAIN, opset: int = 1, **attributes: object) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in "xy")
    node = helper.make_node(name, ["x"], ["y"], "n", domain=domain, **attributes)
    opsets = [helper.make_opsetid("", 17)]
    opsets += [helper.make_opsetid(domain, opset)] if domain and opset else []
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def imported(name: str, **options: object) -> Graph:
    return import_onnx(model(name, **options))  # type: ignore[arg-type]


def reason(name: str, **options: object) -> str:
    """Why a node is not imported."""
    with pytest.raises(UnsupportedOperator) as caught:
        imported(name, **options)
    (node,) = caught.value.nodes
    return node.reason


def test_attributes_are_fields_by_name() -> None:
    graph = imported("Times", by=2.0, mode="twice", also=[3, 4], flag=1, label="n")
    assert [node.op for node in graph.nodes] == [Times(2.0, "twice", (3, 4), True, "n")]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], x * 24**2)
    assert imported("Times", by=2).nodes[0].op == Times(2.0)  # an exporter writes integers


def test_what_is_no_field_is_refused_by_name() -> None:
    assert reason("Times", by=2.0, size=3) == (
        "attribute 'size' is not known; known are 'by', 'mode', 'also', 'flag', 'label'"
    )
    assert reason("Times") == "it lacks 'by', a field of Times"
    assert reason("Times", by="two") == "'by' is 'two'; expected float"
    assert reason("Times", by=2.0, flag=2) == "'flag' is 2; expected bool"
    assert reason("Times", by=2.0, mode="thrice") == (
        "'mode' is 'thrice'; expected typing.Literal['once', 'twice']"
    )
    assert reason("Times", by=0.0) == "Times(by=0.0) raises ValueError: by is 0"
    tensor = helper.make_tensor("t", TensorProto.FLOAT, (1,), [1.0])
    assert reason("Times", by=tensor) == (
        "attribute 'by' is of kind tensor; expected a number, a text or a list"
    )


def test_versions_are_opsets_of_the_domain() -> None:
    assert imported("Times", opset=3, by=2.0).nodes[0].op == Times(2.0)
    assert reason("Times", opset=2, by=2.0) == "its version 2 is not known; known are 1, 3"
    assert reason("Times", opset=0, by=2.0) == f"the model says no opset of '{DOMAIN}'"


def test_a_function_says_what_a_node_is() -> None:
    graph = imported("Power", power=3)
    assert [node.op for node in graph.nodes] == [Mul(), Mul(), Times(1.0)]
    x = np.full((2, 3), 2.0, np.float32)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], x**3)
    assert reason("Power", power=0) == "power is 0"
    assert reason("Power", power=2, other=1) == (
        "attribute 'other' is not known; known are 'power'"
    )


def test_a_function_that_fails_or_gives_something_else_is_told() -> None:
    with pytest.raises(OperatorError) as caught:
        imported("Raises")
    assert str(caught.value).splitlines()[0] == (
        f"OperatorError: operators: the ONNX rule of operator 'tests.onnx::Raises', version 1, of "
        f"'{__name__}.Raises' raised KeyError: 'lost'. [operator-onnx-raised]"
    )
    with pytest.raises(OperatorError) as caught:
        imported("Nothing")
    assert (
        "gives 'nothing'; expected an operator with the names of its inputs. [operator-onnx-result]"
        in str(caught.value)
    )


def test_inputs_that_do_not_fit_are_refused_with_the_node() -> None:
    bad = model("Times", by=2.0)
    bad.graph.node[0].input.append("x")
    with pytest.raises(ModelError) as caught:
        import_onnx(bad)
    assert caught.value.code == "op-arity"
    assert "node 'n' (Times)" in str(caught.value)


def test_it_comes_before_a_function_of_the_model() -> None:
    own = model("Times", by=2.0)
    body = helper.make_node("Neg", ["a"], ["b"])
    function = helper.make_function(
        DOMAIN, "Times", ["a"], ["b"], [body], [helper.make_opsetid("", 17)], ["by"]
    )
    own.functions.append(function)
    assert import_onnx(own).nodes[0].op == Times(2.0)


def test_two_rules_for_one_node_are_refused() -> None:
    @tw.operator("tests.onnx::Relu", onnx=("", "Relu", (14,)))
    class Relu(Scaled):
        pass

    try:
        assert reason("Relu", domain="") == (
            f"tilewright has a rule for it, and operator 'tests.onnx::Relu', version 1, of "
            f"'{__name__}.{Relu.__qualname__}' declares one, too"
        )
    finally:
        del DECLARED.onnx["Relu"]


def test_what_onnx_defines_as_a_function_is_that() -> None:
    @tw.operator("tests.onnx::Celu", onnx=("", "Celu", (12,)))
    class Celu(Scaled):
        pass

    try:
        assert reason("Celu", domain="").startswith("tilewright has a rule for it, and operator")
    finally:
        del DECLARED.onnx["Celu"]


def test_what_onnx_has_and_tilewright_lacks_can_be_declared() -> None:
    assert "works on text" in reason("StringNormalizer", domain="")

    @tw.operator("tests.onnx::Normal", onnx=("", "StringNormalizer", (10,)))
    class Normal(Scaled):
        pass

    try:
        assert isinstance(imported("StringNormalizer", domain="").nodes[0].op, Normal)
    finally:  # other tests ask for an operator that is refused
        del DECLARED.onnx["StringNormalizer"]


def test_a_domain_that_nobody_brings_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        imported("Thing", domain="nobody.ops")
    assert str(caught.value) == (
        "UnsupportedOperator: model: 1 of 1 nodes cannot be imported. [onnx-unsupported]\n"
        "  in the model:\n"
        "    node 'n': Thing of nobody.ops opset 1: there is no such core operator\n"
        "  Hint: @tw.operator(name, onnx=(domain, type, (opset,))) declares an operator of your "
        "own; a function of the model may spell it in operators of ONNX, too."
    )
