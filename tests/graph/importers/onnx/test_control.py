"""If, Loop and Scan on their way into a graph: names, what is decided at once, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import GraphProto, helper

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.nested import all_graphs, reads_of
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ir.verify import verify
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.regions.branch import IfElse
from tilewright.graph.regions.loop import Loop

from ...flow_models import BOOL, INT64, MODELS, body, floats, graph, model, node, value


def loop_of(read: Graph) -> Loop:
    (op,) = (n.op for n in read.nodes if isinstance(n.op, Loop))
    return op


def step(**constants: object) -> GraphProto:
    return body(
        "step", [node("Add", ["s", "x"], ["next"])], [value("s", shape=(3,))], ["next"], **constants
    )


X = [value("x", shape=(3,))]
N, C = value("n", INT64, ()), value("c", BOOL, ())


def loop(
    inputs: Sequence[str],
    inner: GraphProto,
    *given: onnx.ValueInfoProto,
    outputs: int = 1,
    **held: object,
) -> onnx.ModelProto:
    names = [f"y{n}" for n in range(outputs)]
    nodes = [node("Loop", inputs, names, name="loop", body=inner)]
    return model(nodes, [*given, *X], [value(name) for name in names], **held)


def test_a_count_that_is_a_constant_belongs_to_the_operator() -> None:
    for held, count in ((5, 5), (-1, 0)):
        op = loop_of(import_onnx(loop(["k", "", "x"], step(), k=np.array(held))))
        assert (op.count, op.counted, op.conditional) == (count, False, False)
    op = loop_of(import_onnx(loop(["n", "", "x"], step(), N)))
    assert (op.count, op.counted, op.conditional) == (None, True, False)


def test_a_condition_is_asked_where_it_may_be_false() -> None:
    op = loop_of(import_onnx(loop(["n", "c", "x"], step(), N, C)))
    assert (op.counted, op.conditional) == (True, True)
    op = loop_of(import_onnx(loop(["n", "no", "x"], step(), N, no=False)))
    assert (op.count, op.counted, op.conditional) == (0, False, False)
    once = body(
        "step",
        [node("Add", ["s", "x"], ["next"]), node("Identity", ["no"], ["stop"])],
        [value("s", shape=(3,))],
        ["next"],
        "stop",
    )
    for count in ("", "k"):
        op = loop_of(import_onnx(loop([count, "yes", "x"], once, no=False, k=np.array(4))))
        assert (op.count, op.conditional) == (1, False)


def test_without_a_condition_what_the_body_says_is_not_asked() -> None:
    never = body(
        "step",
        [node("Add", ["s", "x"], ["next"]), node("Not", ["before"], ["stop"])],
        [value("s", shape=(3,))],
        ["next"],
        "stop",
    )
    read = import_onnx(loop(["n", "", "x"], never, N))
    x = floats((3,))
    np.testing.assert_allclose(evaluate(read, {"n": np.array(3), "x": x})["y0"], 4 * x, rtol=1e-6)


def test_what_a_region_takes_from_outside_becomes_an_input_and_a_constant_one_of_its_own() -> None:
    read = import_onnx(MODELS["invariant"]().proto)
    (taken,) = (n for n in read.nodes if isinstance(n.op, Loop))
    assert taken.inputs == ("n", "x", "x", "x")
    assert loop_of(read).body.inputs == ("i", "s", "kept", "x")
    assert set(loop_of(read).body.constants) == {"before", "goes_on", "w"}
    verify(read)


def test_a_branch_that_is_taken_at_once_has_names_of_its_own() -> None:
    def side(name: str, op: str) -> GraphProto:
        return graph(name, [node(op, ["x"], ["t"]), node("Neg", ["t"], ["u"])], [], [value("u")])

    nodes = [
        node("If", ["yes"], ["a"], then_branch=side("one", "Relu"), else_branch=side("two", "Exp")),
        node("If", ["no"], ["b"], then_branch=side("one", "Exp"), else_branch=side("two", "Abs")),
        node("Add", ["a", "b"], ["y"]),
    ]
    read = import_onnx(model(nodes, X, [value("y")], no=False))
    assert [n.op.title for n in read.nodes if n.op.title != "Identity"] == [
        *("Relu", "Mul", "Abs", "Mul", "Add")
    ]
    x = floats((3,))
    found = evaluate(read, {"x": x})["y"]
    np.testing.assert_allclose(found, -np.maximum(x, 0) - np.abs(x), rtol=1e-6)


def test_a_branch_that_is_not_taken_need_not_be_known() -> None:
    known = graph("known", [node("Relu", ["x"], ["t"])], [], [value("t")])
    other = graph("other", [node("Frobnicate", ["x"], ["u"])], [], [value("u")])
    nodes = [node("If", ["yes"], ["y"], then_branch=known, else_branch=other)]
    import_onnx(model(nodes, X, [value("y")]))


def test_nodes_that_cannot_be_imported_are_collected_from_regions_too() -> None:
    inner = body(
        "step",
        [
            node("Frobnicate", ["s"], ["f"], name="first"),
            node("Gargle", ["f"], ["next"], name="lost"),
            node("Gurgle", ["s"], ["other"], name="second"),
        ],
        [value("s", shape=(3,))],
        ["next", "other"],
    )
    with pytest.raises(ModelError) as caught:
        import_onnx(loop(["n", "", "x"], inner, N))
    text = str(caught.value)
    assert text.startswith("UnsupportedOperator: model: 3 of 5 nodes cannot be imported.")
    assert all(f"node '{name}'" in text for name in ("first", "second", "lost"))
    assert "node 'loop'" not in text


def test_the_graphs_of_a_model_are_read_in_an_order_of_their_own() -> None:
    """A body may read what stands behind its node."""
    made = loop(["n", "", "x"], step(h=floats((3,))), N)
    inner = made.graph.node[0].attribute[0].g
    inner.node[1].input[1] = "later"
    made.graph.node.append(node("Exp", ["x"], ["later"]))
    x = floats((3,))
    found = evaluate(import_onnx(made), {"n": np.array(2), "x": x})["y0"]
    np.testing.assert_allclose(found, x + 2 * np.exp(x), rtol=1e-6)


def test_what_a_node_reads_is_what_its_graphs_read() -> None:
    made = MODELS["nested"]().proto.graph
    assert set(reads_of(made.node[0])) == {"n", "yes", "x"}
    assert len(list(all_graphs(made))) == 5


def refusal(made: onnx.ModelProto, shapes: Mapping[str, tuple[int, int, int]] | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        import_onnx(made, shapes=shapes)
    return str(caught.value)


def test_refusals(golden: Callable[[str, str], None]) -> None:
    rows = body(
        "step",
        [node("Add", ["s", "x"], ["next"])],
        [value("s", shape=(3,))],
        ["next", "next"],
    )
    grows = body(
        "step", [node("Concat", ["s", "x"], ["next"], axis=0)], [value("s", shape=(3,))], ["next"]
    )
    more = step()
    more.input.append(value("t", shape=(3,)))
    less = body("step", [], [value("s", shape=(3,))], [])
    deep: GraphProto = graph("deep", [node("Relu", ["x"], ["t"])], [], [value("t")])
    flat = deep
    for _ in range(17):
        inner = node("If", ["c"], ["t"], name="if", then_branch=deep, else_branch=flat)
        deep = graph("deep", [inner], [], [value("t")])
    scan = [node("Scan", ["x", "w"], ["a", "b"], name="scan", body=rows, num_scan_inputs=2)]
    texts = [
        refusal(loop(["n", "", "x"], rows, N, outputs=2)),
        refusal(loop(["", "", "x"], step())),
        refusal(loop(["k", "", "x"], step(), k=np.array(1 << 50))),
        refusal(loop(["n", "", "x"], grows, N)),
        refusal(loop(["n", "", "x"], more, N)),
        refusal(loop(["n", "", "x"], less, N)),
        refusal(loop(["x", "", "x"], step())),
        refusal(model(deep.node, [C, *X], [value("t")])),
        refusal(model(scan, [*X, value("w", shape=(4, 3))], [value("a"), value("b")])),
    ]
    golden("errors/onnx_control.txt", "\n\n".join(texts))


def open_branch(condition: str, *given: onnx.ValueInfoProto) -> onnx.ModelProto:
    """Relu or Exp of an array of open sizes, in the shape that it has outside."""
    sides = {
        f"{name}_branch": graph(
            name,
            [node(operator, ["x"], ["made"]), node("Reshape", ["made", "shape"], [name])],
            [],
            [value(name)],
        )
        for name, operator in (("then", "Relu"), ("else", "Exp"))
    }
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", "columns"])
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("If", [condition], ["y"], name="if", **sides),
    ]
    return model(nodes, [*given, x], [value("y")])


SIZES = {"rows": (1, 4, 8), "columns": (2, 2, 6)}


def test_a_branch_reads_what_has_open_sizes() -> None:
    read = import_onnx(open_branch("c", C), shapes=SIZES)
    assert str(read.types["y"]) == "float32[rows, columns]"
    (branch,) = (item.op for item in read.nodes if isinstance(item.op, IfElse))
    assert [region.inputs for region in branch.regions] == [("x",), ("x",)]  # not the shape
    for shape in ((1, 6), (8, 2)):
        given = {"c": np.array(False), "x": floats(shape)}
        np.testing.assert_array_equal(evaluate(read, given)["y"], np.exp(np.float64(given["x"])))


def test_branches_of_other_open_shapes_are_refused() -> None:
    made = open_branch("c", C)
    other = onnx.helper.make_node("Transpose", ["made"], ["else"], name="turned")
    made.graph.node[1].attribute[0].g.node[1].CopyFrom(other)
    with pytest.raises(ModelError) as caught:
        import_onnx(made, shapes=SIZES)
    assert str(caught.value) == (
        "ModelError: If: result 0 is float32[rows, columns] where the condition is true and "
        "float32[columns, rows] where it is false; expected one type, since memory is planned "
        "before a run. [if-types]\n"
        "  in node 'if' (If):\n"
        "    'c': bool[]\n"
        "    'x': float32[rows, columns]\n"
        "  Hint: let both branches give the larger shape, padded, or make the condition a "
        "constant: then one branch alone is compiled."
    )


def test_a_scan_over_arrays_of_two_open_lengths_is_refused() -> None:
    row = graph("row", [node("Add", ["a", "b"], ["y"])], [value("a"), value("b")], [value("y")])
    scan = node("Scan", ["x", "z"], ["ys"], name="scan", body=row, num_scan_inputs=2)
    made = model([scan], [value(n, shape=(s, 3)) for n, s in ("xm", "zn")], [value("ys")])
    text = refusal(made, shapes={"m": (1, 2, 4), "n": (1, 2, 4)})
    assert "node 'scan': Scan of ai.onnx opset 17: it scans arrays of [m, n] rows; expected" in text


def test_a_branch_that_a_constant_decides_may_have_open_sizes() -> None:
    read = import_onnx(open_branch("yes"), shapes=SIZES)
    assert [dim.name for dim in read.dims] == ["rows", "columns"]
    for shape in ((1, 6), (8, 2)):
        x = floats(shape)
        np.testing.assert_array_equal(evaluate(read, {"x": x})["y"], np.maximum(x, 0))
