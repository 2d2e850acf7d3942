"""Calls of programs of PyTorch that are operators of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import ModelError, OperatorError, UnsupportedOperator
from tilewright.graph.extensions.operators import DECLARED
from tilewright.graph.importers.aten.importer import import_program
from tilewright.graph.importers.aten.program import (
    Argument,
    ExportedGraph,
    ExportedNode,
    ExportedProgram,
    Named,
    RecordedType,
)
from tilewright.graph.importers.aten.writer import AtenValue, AtenWriter
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.types import Array
from tilewright.tir.expr import Expr

FLOATS = RecordedType("float32", (2, 3))


class Blend(tw.Elementwise):
    """What the declarations below have in common."""

    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        return ((a + b) * np.asarray(0.5, a.dtype),)  # type: ignore[operator]

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return (a + b) * 0.5


@tw.operator("tests.aten::Middle", aten="testlib::middle")
class Middle(Blend):
    sparse: bool = False  # a name that schemas of aten's own have for what changes no value
    sizes: tuple[int, ...] = ()


def _twice(w: AtenWriter, self: AtenValue, times: int = 2) -> AtenValue:
    if times != 2:
        raise KeyError(times)
    return w.emit(Add(), self, self)


@tw.operator("tests.aten::Twice", aten=tw.AtenRule("testlib::twice.Tensor", _twice))
class Twice(Blend):
    pass


@tw.operator("tests.aten::Wider", aten="testlib::wider")
class Wider(Blend):
    pass


@tw.operator("tests.aten::Erf", aten="aten::special_airy_ai")
class Airy(tw.Elementwise):
    arity = (1, 1)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def element(self, *elements: Expr) -> Expr:
        return elements[0]


def program(
    target: str, recorded: RecordedType = FLOATS, outputs: int = 1, **arguments: Argument
) -> Graph:
    given = {"self": Named("x"), **arguments}
    made = ("y",)[:outputs]
    node = ExportedNode("call", target, given, made, "inner", "model.py:7")
    relu = ExportedNode("relu", "aten.relu.default", {"self": Named("x")}, ("r",))
    types = {"x": FLOATS, "y": recorded, "r": FLOATS}
    graph = ExportedGraph(("x",), (Named(*made or ("r",)),), (relu, node), types)
    return import_program(ExportedProgram("p", graph, {}, ("x",), ("out",), {}, {}))


def reason(target: str, **options: object) -> str:
    """Why a call is not imported."""
    with pytest.raises(UnsupportedOperator) as caught:
        program(target, **options)  # type: ignore[arg-type]
    (node,) = caught.value.nodes
    return str(node)


def test_tensors_are_inputs_and_the_other_arguments_fields() -> None:
    graph = program("testlib.middle.default", other=Named("x"), sparse=True, sizes=(1, 2))
    assert graph.nodes[-1].op == Middle(True, (1, 2))
    graph = program("testlib.middle.default", others=(Named("x"),))
    assert graph.nodes[-1].op == Middle()


def test_what_is_no_field_is_refused_by_name() -> None:
    where = "node 'call' (inner at model.py:7): testlib.middle.default: "
    assert reason("testlib.middle.default", other=Named("x"), scale=2.0) == (
        f"{where}'scale' is no field of Middle; known are 'sparse', 'sizes'"
    )
    assert reason("testlib.middle.default", other=Named("x"), sparse=0.5) == (
        f"{where}'sparse' is 0.5; expected bool"
    )


def test_a_function_says_what_a_call_is() -> None:
    assert program("testlib.twice.Tensor").nodes[-1].op == Add()
    with pytest.raises(OperatorError) as caught:
        program("testlib.twice.Tensor", times=3)
    assert str(caught.value) == (
        "OperatorError: operators: the aten rule of operator 'tests.aten::Twice', version 1, of "
        f"'{__name__}.Twice' raised KeyError: 3. [operator-aten-raised]\n"
        "  in node 'call' (testlib.twice.Tensor)\n"
        "  Hint: its parameters, behind the writer, are those of the operator's schema."
    )
    with pytest.raises(OperatorError, match="unexpected keyword argument 'thrice'"):
        program("testlib.twice.Tensor", thrice=3)


def test_what_it_infers_is_what_the_exporter_recorded() -> None:
    with pytest.raises(ModelError) as caught:
        program("testlib.wider.default", RecordedType("float32", (2, 4)), other=Named("x"))
    assert caught.value.code == "aten-type"
    assert caught.value.hints == (
        f"operator 'tests.aten::Wider', version 1, of '{__name__}.Wider' and its declaration in "
        "torch.library contradict each other.",
    )


def test_an_operator_of_aten_that_tilewright_lacks_can_be_declared() -> None:
    assert program("aten.special_airy_ai.default").nodes[-1].op == Airy()


def test_one_that_writes_to_an_argument_is_refused() -> None:
    assert reason("testlib.middle.default", outputs=0, other=Named("x")) == (
        "node 'call' (inner at model.py:7): testlib.middle.default: it has no output, so it writes "
        "to an argument"
    )


def test_in_an_archive_of_torch_too() -> None:
    @tw.operator("tests.aten::Scale", aten="my::scale_")
    class Scale(tw.Elementwise):
        by: float = 1.0

        def reference(self, *arrays: Array) -> tuple[Array, ...]:
            return arrays

        def element(self, *elements: Expr) -> Expr:
            return elements[0]

    with pytest.raises(UnsupportedOperator) as caught:
        import_pt2(Path(__file__).parent / "writes.pt2")
    (node,) = caught.value.nodes
    assert node.reason == "it has no output, so it writes to an argument"


def test_a_library_that_nobody_brings_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        program("nobody.thing.default")
    assert str(caught.value) == (
        "UnsupportedOperator: model: 1 of 2 nodes cannot be imported. [aten-unsupported]\n"
        "  in the model:\n"
        "    node 'call' (inner at model.py:7): nobody.thing.default: there is no rule for it\n"
        "  Hint: @tw.operator(name, aten='library::operator') declares an operator of your own."
    )


def test_two_rules_for_one_call_are_refused() -> None:
    @tw.operator("tests.aten::Relu", aten="aten::relu")
    class Relu(Blend):
        pass

    try:
        with pytest.raises(UnsupportedOperator) as caught:
            program("testlib.twice.Tensor")
        (node,) = caught.value.nodes
        assert node.reason.startswith("tilewright has a rule for it, and operator 'tests.aten::R")
    finally:
        del DECLARED.aten["aten.relu"]
