"""The passes of a compile as a value, and passes of others among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

import tilewright as tw
from tilewright.graph.errors import OperatorError
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode, rebuilt
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.options import PassesError
from tilewright.graph.passes.gelu_recognition import GeluRecognition
from tilewright.graph.passes.identity_removal import IdentityRemoval
from tilewright.graph.passes.passes import PASSES, Passes
from tilewright.graph.passes.pipeline import PIPELINE, optimise
from tilewright.graph.types import TensorType

HERE = __name__


@dataclass(frozen=True)
class Swap:
    """A wrong pass: additions become products."""

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        nodes = (
            GraphNode(Mul(), node.inputs, node.outputs) if node.op == Add() else node
            for node in graph.nodes
        )
        return rebuilt(graph, nodes, graph.constants)


@dataclass(frozen=True)
class Undeclared:
    """It puts an operator into the graph that nobody declared."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        class Own(Relu):
            pass

        nodes = [GraphNode(Own(), node.inputs[:1], node.outputs) for node in graph.nodes]
        return rebuilt(graph, nodes, graph.constants)


@dataclass(frozen=True)
class Gives:
    """It gives what it is told to, or raises it."""

    keeps_rounding: ClassVar[bool] = True
    what: object = None

    def __call__(self, graph: Graph) -> Graph:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what  # type: ignore[return-value]


def leave(graph: Graph) -> Graph:
    """A pass that is a function."""
    return graph


leave.keeps_rounding = True  # type: ignore[attr-defined]


def small() -> Graph:
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (2, 3)))
    return b.finish((b.add(Add(), x, b.add(Relu(), x), output="y"),))


def names(passes: Passes) -> list[str]:
    return [type(one).__name__ for one in passes]


def test_the_usual_ones_are_a_value() -> None:
    assert tw.PASSES is PASSES
    assert tuple(PASSES) == PASSES.passes == PIPELINE
    assert str(PASSES).splitlines()[0] == "IdentityRemoval()"
    assert Passes(PIPELINE) == PASSES


def test_passes_are_put_before_and_after_and_in_place_of_others() -> None:
    at = names(PASSES).index("GeluRecognition")
    for kind in (GeluRecognition, "GeluRecognition"):
        assert names(PASSES.after(kind, Swap()))[at : at + 2] == ["GeluRecognition", "Swap"]
        assert names(PASSES.before(kind, Swap()))[at : at + 2] == ["Swap", "GeluRecognition"]
        replaced = names(PASSES.replace(kind, Swap(), Gives()))
        assert replaced[at : at + 2] == ["Swap", "Gives"]
        assert len(replaced) == len(PASSES) + 1
        assert names(PASSES.without(kind)) == names(PASSES)[:at] + names(PASSES)[at + 1 :]
    assert "IdentityRemoval" not in names(PASSES.without(IdentityRemoval))
    assert PASSES.passes == PIPELINE


def test_of_several_of_a_class_one_is_named() -> None:
    with pytest.raises(OperatorError) as caught:
        PASSES.after(IdentityRemoval, Swap())
    assert str(caught.value) == (
        "OperatorError: passes: after: 3 passes are IdentityRemoval, and place is None; expected "
        "1 to 3. [passes-place]\n"
        "  Hint: after(IdentityRemoval, ..., place=1) is about the first one."
    )
    where = [n for n, name in enumerate(names(PASSES)) if name == "IdentityRemoval"]
    assert names(PASSES.after(IdentityRemoval, Swap(), place=2))[where[1] + 1] == "Swap"
    assert names(PASSES.before(IdentityRemoval, Swap(), place=3))[where[2]] == "Swap"


def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(OperatorError) as caught:
        PASSES.after("GeluRecogniser", Swap())
    text = str(caught.value)
    assert text.startswith(
        "OperatorError: passes: after: no pass is GeluRecogniser; known are 'GeluRecognition', "
    )
    assert text.endswith(" [passes-kind]")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (Swap, "a class; expected a value of it"),
        (3, "not callable; expected a function of a Graph"),
        (small, "without keeps_rounding; expected True or False"),
    ],
)
def test_what_is_no_pass_is_refused(wrong: object, problem: str) -> None:
    with pytest.raises(OperatorError) as caught:
        tw.compile(small(), "python", passes=(wrong,))  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"OperatorError: passes: {wrong!r} is {problem}. [passes-pass]\n"
        "  Hint: keeps_rounding: ClassVar[bool] = False says that sums may be taken in another "
        "order; a strict build leaves such a pass out."
    )


def test_what_is_no_series_is_refused() -> None:
    with pytest.raises(PassesError) as caught:
        tw.compile(small(), "python", passes=3)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "PassesError: compile: passes is 3; expected passes in order. [compile-passes]\n"
        "  Hint: tw.PASSES.after(kind, one) is the usual ones and one more."
    )


@pytest.mark.parametrize("verify", ["all", "kernels", "off"])
def test_what_a_pass_of_others_makes_is_always_compared(verify: str) -> None:
    passes = PASSES.after(GeluRecognition, Swap())
    engine = tw.compile(small(), "python", passes=passes, verify=verify)  # type: ignore[arg-type]
    assert engine.verify()
    (note,) = [n for n in engine.explain().notes if n.startswith("pass Swap")]
    assert note.startswith(f"pass Swap of '{HERE}.Swap': undone; Add 1 -> 0, Mul 0 -> 1; 'y' diff")


def test_a_strict_build_leaves_out_what_rounds_elsewhere() -> None:
    passes = PASSES.after(GeluRecognition, Swap(), leave)
    notes = tw.compile(small(), "python", passes=passes, strict=True).explain().notes
    assert f"pass Swap of '{HERE}.Swap': left out; it may round elsewhere than the model" in notes
    assert f"pass leave of '{HERE}.leave': unchanged" in notes
    assert not [note for note in notes if note.startswith("pass GeluRecognition: unchanged")]


def test_a_pass_that_leaves_what_no_graph_may_hold_is_undone() -> None:
    graph = small()
    after, (report,) = optimise(graph, (Undeclared(),))
    assert after is graph
    assert report.verdict == "undone"
    assert "which nobody declared" in report.problem


def test_a_pass_that_fails_is_told_with_its_name() -> None:
    with pytest.raises(OperatorError) as caught:
        optimise(small(), (Gives(KeyError("lost")),))
    assert str(caught.value) == (
        f"OperatorError: passes: Gives of '{HERE}.Gives' raised KeyError: 'lost'. [pass-raised]\n"
        "  Hint: passes=tw.PASSES compiles without it."
    )
    with pytest.raises(OperatorError) as caught:
        optimise(small(), (Gives(),))
    assert str(caught.value) == (
        f"OperatorError: passes: Gives of '{HERE}.Gives' gives a NoneType; expected a Graph. "
        "[pass-result]"
    )
