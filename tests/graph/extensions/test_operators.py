"""Operators of others: how they are declared, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import OperatorError
from tilewright.graph.extensions.operators import DECLARED, declaration_of
from tilewright.graph.extensions.rules import AtenRule, OnnxRule
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.types import Array, TensorType
from tilewright.tir.expr import Expr


class Halved(tw.Elementwise):
    """x / 2: what the tests below declare under other names."""

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (arrays[0] * np.asarray(0.5, arrays[0].dtype),)

    def element(self, *elements: Expr) -> Expr:
        return elements[0] * 0.5


@tw.operator("tests.declared::Shifted", version=3, onnx=("tests.declared", "Shifted", (1, 2)))
class Shifted(Halved):
    """(x + by) / 2."""

    by: float = 1.0
    over: tuple[int, ...] = ()

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return ((arrays[0] + np.asarray(self.by, arrays[0].dtype)) * 0.5,)  # type: ignore[operator]

    def element(self, *elements: Expr) -> Expr:
        return (elements[0] + self.by) * 0.5


def graph(op: tw.Operator) -> Graph:
    b = GraphBuilder("g")
    return b.finish({"y": b.add(op, b.input("x", TensorType("float32", (2, 3))))})


def refusal(name: str, kind: type, **options: object) -> str:
    with pytest.raises(OperatorError) as caught:
        tw.operator(name, **options)(kind)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_class_is_a_frozen_dataclass_of_its_annotations() -> None:
    assert [item.name for item in fields(Shifted)] == ["by", "over"]
    assert repr(Shifted(2.0)) == "Shifted(by=2.0, over=())"
    assert Shifted(2.0) == Shifted(2.0) != Shifted(3.0)
    assert hash(Shifted(2.0)) == hash(Shifted(2.0))
    assert pickle.loads(pickle.dumps(Shifted(2.0, (1,)))) == Shifted(2.0, (1,))
    with pytest.raises(AttributeError):
        Shifted(2.0).by = 1.0  # type: ignore[misc]
    found = declaration_of(Shifted)
    assert found is not None
    assert (found.name, found.version) == ("tests.declared::Shifted", 3)
    assert found.onnx == OnnxRule("tests.declared", "Shifted", (1, 2))


def test_a_graph_holds_it_and_says_its_fields() -> None:
    assert "y = Shifted[by=2.0](x)" in str(graph(Shifted(2.0)))
    engine = tw.compile(graph(Shifted(2.0)), "python")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(engine(x), (x + 2) / 2)
    assert engine.verify()


def test_an_operator_that_nobody_declared_is_refused_with_what_to_do() -> None:
    with pytest.raises(OperatorError) as caught:
        tw.compile(graph(Halved()), "python")
    assert str(caught.value) == (
        f"OperatorError: verify: graph 'g': node 'y' (Halved) holds {__name__}.Halved, which "
        "nobody declared; expected one of tilewright's operators, or a declared one. "
        "[operator-unknown]\n"
        '  Hint: @tw.operator("my.ops::Halved") above the class declares it.'
    )


@tw.operator("tests.declared::Listed")
class Listed(Halved):
    steps: list[int] = field(default_factory=list)


def test_an_operator_without_a_hash_is_refused() -> None:
    with pytest.raises(OperatorError) as caught:
        tw.compile(graph(Listed()), "python")
    assert str(caught.value) == (
        "OperatorError: verify: graph 'g': node 'y' (Listed) holds operator "
        f"'tests.declared::Listed', version 1, of '{__name__}.Listed', which has no hash: "
        "unhashable type: 'list'. [operator-hash]\n"
        "  Hint: fields are numbers, texts and tuples of them: a tuple for a list."
    )


def test_a_dataclass_is_taken_as_it_is() -> None:
    @tw.operator("tests.declared::Kept")
    @dataclass(frozen=True, slots=True)
    class Kept(Halved):
        pass

    assert declaration_of(Kept) is not None


def test_a_class_that_is_defined_again_takes_its_own_place() -> None:
    def defined() -> type[tw.Operator]:
        @tw.operator("tests.declared::Again", onnx=("tests.declared", "Again", (1,)))
        class Again(Halved):
            pass

        return Again

    first, second = defined(), defined()
    assert declaration_of(first) is None
    assert DECLARED.names["tests.declared::Again"].kind is second
    assert DECLARED.onnx["tests.declared.Again"].kind is second


def test_a_name_of_somebody_else_is_refused() -> None:
    text = refusal("tests.declared::Shifted", Halved)
    assert text.splitlines()[0].startswith(
        f"OperatorError: operators: operator 'tests.declared::Shifted' is declared twice, in "
        f"{__name__}.Shifted ("
    )
    assert text.endswith(
        "expected one of them. [operator-twice]\n"
        "  Hint: a name, and a node of models, belongs to one package: rename one."
    )
    text = refusal("tests.declared::Other", Halved, onnx=("tests.declared", "Shifted", (1,)))
    assert "tests.declared.Shifted of ONNX is declared twice" in text


def test_a_name_has_a_namespace() -> None:
    assert refusal("Halved", Halved) == (
        "OperatorError: operators: the name 'Halved' has no namespace; expected one like "
        "'my.ops::Mish'. [operator-name]"
    )


def test_a_version_is_a_number() -> None:
    assert refusal("my::Halved", Halved, version="2") == (
        "OperatorError: operators: the version of 'my::Halved' is '2'; expected 1, 2, ... "
        "[operator-version]"
    )


def test_a_class_that_is_no_operator_is_refused() -> None:
    assert refusal("my::Halved", int) == (
        "OperatorError: operators: int, 'my::Halved', is no operator; expected a subclass of "
        "tw.Operator. [operator-class]"
    )

    class Abstract(tw.Elementwise):
        pass

    assert "'my::Abstract', lacks element, reference; expected a class" in refusal(
        "my::Abstract", Abstract
    )

    class Thawed(Halved):
        def __setattr__(self, name: str, value: object) -> None: ...

    assert "cannot be a frozen dataclass: Cannot overwrite attribute __setattr__" in refusal(
        "my::Thawed", Thawed
    )

    @dataclass(frozen=True)
    class Half(Halved):
        by: float = field(default=0.0, compare=False)

    assert "has the field 'by', which takes no part in init, repr, == and hash" in refusal(
        "my::Half", Half
    )


def test_rules_say_which_nodes() -> None:
    assert refusal("my::Halved", Halved, onnx=("my", "Halved")) == (
        "OperatorError: operators: onnx of 'my::Halved' is ('my', 'Halved'); expected the domain, "
        "the name and the versions of its nodes, as in ('my.ops', 'Mish', (1,)), or an OnnxRule. "
        "[operator-onnx]"
    )
    assert refusal("my::Halved", Halved, aten="halved") == (
        "OperatorError: operators: aten of 'my::Halved' is 'halved'; expected the name of an "
        "operator of torch.library, as in 'my::mish', or an AtenRule. [operator-aten]"
    )
    assert AtenRule("my::halved.default").key == "my.halved"
    assert OnnxRule("", "Halved").key == "Halved"


class _Mode:
    pass


def test_a_field_that_no_model_can_say_needs_a_function() -> None:
    @dataclass(frozen=True)
    class Chosen(Halved):
        mode: _Mode

    assert refusal("my::Chosen", Chosen, onnx=("my", "Chosen", (1,))) == (
        "OperatorError: operators: the field 'mode' of 'my::Chosen' is _Mode; expected a number, a "
        "text or a tuple of them, which a model can say. [operator-field]\n"
        "  Hint: an OnnxRule or an AtenRule with build=... makes it of other attributes."
    )


def failing(method: str) -> tw.Operator:
    """An operator of which a method fails."""

    class Failing(Halved):
        pass

    def fail(*arguments: object, **named: object) -> object:
        raise KeyError("lost")

    setattr(Failing, method, fail)
    return tw.operator(f"tests.declared::Failing{method.title()}")(Failing)()


@pytest.mark.parametrize("method", ["infer", "reference", "express"])
def test_a_method_that_fails_is_told_with_the_operator(method: str) -> None:
    op = failing(method)
    with pytest.raises(OperatorError) as caught:
        tw.compile(graph(op), "python")
    place = f"{__name__}.failing.<locals>.Failing"
    assert str(caught.value).splitlines()[0] == (
        f"OperatorError: operators: '{method}' of operator 'tests.declared::"
        f"Failing{method.title()}', version 1, of '{place}' raised KeyError: 'lost'. "
        "[operator-raised]"
    )


def test_an_expression_that_contradicts_the_reference_is_told() -> None:
    @tw.operator("tests.declared::Wrong")
    class Wrong(Halved):
        def element(self, *elements: Expr) -> Expr:
            return elements[0] * 0.25

    with pytest.raises(OperatorError) as caught:
        tw.compile(graph(Wrong()), "python")
    place = f"{__name__}.{test_an_expression_that_contradicts_the_reference_is_told.__name__}"
    text = str(caught.value).replace(place, "HERE")
    assert text == (
        "OperatorError: plan: 'express' of operator 'tests.declared::Wrong', version 1, of "
        "'HERE.<locals>.Wrong' contradicts its 'reference': Wrong (y) does not compute what NumPy "
        "does: it differs by 0.5 of its largest element; rounding explains 1e-11. "
        "[operator-function]\n"
        "  Hint: tw.check_operator(operator, cases) shows on which data."
    )


def test_two_outputs_are_two_values() -> None:
    @tw.operator("tests.declared::Ends")
    class Ends(tw.Operator):
        role = tw.OperatorRole.GENERAL
        output_count = 2

        def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
            (x,) = types
            return (TensorType(x.dtype, x.shape[:-1]),) * 2

        def reference(self, *arrays: Array) -> tuple[Array, ...]:
            (x,) = arrays
            return x.min(-1), x.max(-1)

        def express(self, *tensors: tw.te.Tensor, name: str) -> tuple[tw.te.Tensor, ...]:
            (x,) = tensors
            rows, size = x.shape
            found = []
            for what in ("min", "max"):
                k = tw.te.reduce_axis(size, name="k")
                reduce = getattr(tw.te, what)
                found.append(
                    tw.te.compute(
                        (rows,),
                        lambda i, k=k, reduce=reduce: reduce(x[i, k], axis=k),
                        name=f"{name}_{what}",
                    )
                )
            return tuple(found)

    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (4, 5)))
    b.add_node(GraphNode(Ends(), (x,), ("low", "high")))
    engine = tw.compile(b.finish(("low", "high")), "python")
    given = np.random.default_rng(0).standard_normal((4, 5), np.float32)
    found = engine.run({"x": given})
    np.testing.assert_array_equal(found["low"], given.min(-1))
    np.testing.assert_array_equal(found["high"], given.max(-1))
