"""Sequences and optional values: what becomes of their tensors, of inputs and outputs, of loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import ImportLimits, import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

from ....flow_models import BOOL, FLOAT, INT64, body, floats, graph, node, value

X, Y = floats((2, 6), 1), floats((2, 6), 2)


def sequence(name: str, kind: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, kind, None)


def optional(name: str, element: onnx.TypeProto) -> ValueInfoProto:
    return helper.make_value_info(name, helper.make_optional_type_proto(element))


def model(
    nodes: Sequence[NodeProto],
    outputs: str,
    *,
    inputs: Sequence[ValueInfoProto] = (value("x", shape=(2, 6)), value("y", shape=(2, 6))),
    opset: int = 18,
    **held: object,
) -> onnx.ModelProto:
    made = graph(
        "g", nodes, inputs, [ValueInfoProto(name=name) for name in outputs.split()], **held
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def flat(names: Sequence[str], values: Sequence[object]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, one in zip(names, values, strict=True):
        if isinstance(one, list):
            found |= {f"{name}[{n}]": np.asarray(part) for n, part in enumerate(one)}
        elif one is not None:
            found[name] = np.asarray(one)
    return found


def check(made: onnx.ModelProto, given: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """What a model of x and y gives is what onnxruntime gives."""
    feeds = {"x": X, "y": Y} if given is None else dict(given)
    read = import_onnx(made)
    got = evaluate(read, {name: feeds[name] for name in read.inputs}, dtype=None)
    names = [item.name for item in made.graph.output]
    session = onnxruntime.InferenceSession(made.SerializeToString())
    taken = {item.name: feeds[item.name] for item in session.get_inputs()}
    expected = flat(names, session.run(None, taken))
    assert list(got) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-6)
        assert got[name].dtype == array.dtype
    return got


PAIR = node("SequenceConstruct", ["x", "y"], ["s"])


def test_positions_count_from_both_ends() -> None:
    for place in (-2, -1, 0, 1):
        check(model([PAIR, node("SequenceAt", ["s", "n"], ["z"])], "z", n=np.array(place)))
        check(model([PAIR, node("SequenceErase", ["s", "n"], ["z"])], "z", n=np.array(place)))
        check(
            model([PAIR, node("SequenceInsert", ["s", "y", "n"], ["z"])], "z", n=np.array([place]))
        )
    got = check(model([PAIR, node("SequenceErase", ["s"], ["z"])], "z"))
    assert list(got) == ["z[0]"]
    check(model([PAIR, node("SequenceInsert", ["s", "x"], ["z"])], "z"))


def test_lengths_and_positions_may_be_computed() -> None:
    nodes = [
        PAIR,
        node("SequenceInsert", ["s", "x"], ["t"]),
        node("SequenceLength", ["t"], ["n"]),
        node("Sub", ["n", "one"], ["last"]),
        node("SequenceAt", ["t", "last"], ["z"]),
    ]
    got = check(model(nodes, "z n", one=np.array(1)))
    np.testing.assert_array_equal(got["z"], X)
    assert got["n"] == 3


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_pieces_of_a_tensor(axis: int) -> None:
    whole = node("SplitToSequence", ["x"], ["z"], axis=axis)
    check(model([whole], "z"))
    check(model([node("SplitToSequence", ["x"], ["z"], axis=axis, keepdims=0)], "z"))
    sizes = [1, 1] if axis == 0 else [1, 0, 5]
    for size in (np.array(4), np.array(2), np.array(sizes)):
        check(model([node("SplitToSequence", ["x", "n"], ["z"], axis=axis)], "z", n=size))


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (-1, 0), (0, 1), (2, 1), (-1, 1), (-3, 1)])
def test_tensors_are_joined_or_stacked(axis: int, new: int) -> None:
    joined = node("ConcatFromSequence", ["s"], ["z"], axis=axis, new_axis=new)
    check(model([PAIR, joined], "z"))


def test_a_body_is_applied_to_each_tensor() -> None:
    inner = graph(
        "each",
        [node("Add", ["a", "b"], ["c"]), node("Mul", ["c", "y"], ["d"])],
        [value("a"), value("b")],
        [value("c"), value("d")],
    )
    both = node("SequenceMap", ["s", "s"], ["p", "q"], body=inner)
    one = node("SequenceMap", ["s", "x"], ["r", "unread"], body=inner)
    got = check(model([PAIR, both, one], "p q r"))
    assert list(got) == ["p[0]", "p[1]", "q[0]", "q[1]", "r[0]", "r[1]"]


def loop(nodes: Sequence[NodeProto], *inputs: str, count: str = "n", until: str = "") -> NodeProto:
    """A loop that carries a sequence t, and makes a row of it."""
    inner = body("step", nodes, [sequence("t")], ["u", "row"], until, one=np.array(1))
    inner.output[1].CopyFrom(sequence("u"))
    inner.output[2].CopyFrom(value("row", INT64, ()))
    return node("Loop", [count, "" if not until else "yes", *inputs], ["z", "rows"], body=inner)


GROWS = [
    node("Cast", ["i"], ["number"], to=FLOAT),
    node("Mul", ["x", "number"], ["made"]),
    node("SequenceInsert", ["t", "made"], ["u"]),
    node("SequenceLength", ["u"], ["row"]),
]


def test_a_loop_that_carries_a_sequence_is_its_iterations() -> None:
    got = check(model([PAIR, loop(GROWS, "s")], "z rows", n=np.array(3)))
    assert list(got) == [*(f"z[{n}]" for n in range(5)), "rows"]
    assert got["rows"].tolist() == [3, 4, 5]
    early = [*GROWS, node("Less", ["i", "one"], ["goes_on"])]
    made = model([PAIR, loop(early, "s", until="goes_on")], "z rows", n=np.array(9), yes=True)
    assert check(made)["rows"].tolist() == [3, 4]
    endless = model([PAIR, loop(early, "s", count="", until="goes_on")], "z", yes=True)
    assert len(check(endless)) == 4


def test_a_loop_reads_the_sequence_around_it() -> None:
    inner = body(
        "step",
        [node("SequenceAt", ["s", "i"], ["taken"]), node("Add", ["a", "taken"], ["b"])],
        [value("a", shape=(2, 6))],
        ["b"],
    )
    check(model([PAIR, node("Loop", ["n", "", "x"], ["z"], body=inner)], "z", n=np.array(2)))


def branch(*names: str) -> GraphProto:
    made = node("SequenceConstruct", list(names), ["made"])
    return graph("branch", [made], [], [sequence("made")])


CONDITION = value("c", BOOL, ())
INPUTS = (value("x", shape=(2, 6)), value("y", shape=(2, 6)), CONDITION)


def test_a_branch_may_give_a_sequence_of_one_length() -> None:
    chosen = node("If", ["c"], ["z"], then_branch=branch("x", "y"), else_branch=branch("y", "y"))
    made = model([chosen], "z", inputs=INPUTS)
    for flag in (True, False):
        check(made, {"x": X, "y": Y, "c": np.array(flag)})
    engine = compile(made, "python", cache=False)
    got = engine.run({"x": X, "y": Y, "c": np.array(False)})
    np.testing.assert_array_equal(got["z[0]"], Y)
    both = [PAIR, node("If", ["c"], ["z"], then_branch=nested(0), else_branch=nested(1))]
    check(model(both, "z", inputs=INPUTS), {"x": X, "y": Y, "c": np.array(True)})


def nested(place: int) -> GraphProto:
    """A branch that takes a tensor of a sequence around it."""
    taken = node("SequenceAt", ["s", "place"], ["taken"])
    return graph("taking", [taken], [], [value("taken")], place=np.array(place))


def test_branches_of_other_structure_need_a_condition_that_is_known() -> None:
    chosen = node("If", ["c"], ["z"], then_branch=branch("x", "y"), else_branch=branch("y"))
    made = model([chosen], "z", inputs=INPUTS)
    for flag, count in ((True, 2), (False, 1)):
        read = import_onnx(made, constants={"c": flag})
        assert len(read.outputs) == count


def test_an_input_is_as_many_tensors_as_the_caller_says() -> None:
    joined = node("ConcatFromSequence", ["s"], ["z"], axis=0)
    made = model([joined, node("Identity", ["s"], ["t"])], "z t", inputs=(sequence("s"),))
    read = import_onnx(made, shapes={"s": [(1, 3), (2, 3)]})
    assert tuple(read.inputs) == ("s[0]", "s[1]")
    assert tuple(read.outputs) == ("z", "t[0]", "t[1]")
    parts = [floats((1, 3), 3), floats((2, 3), 4)]
    engine = compile(made, "python", shapes={"s": [(1, 3), (2, 3)]}, cache=False)
    got = engine.run({"s[0]": parts[0], "s[1]": parts[1]})
    np.testing.assert_array_equal(got["z"], np.concatenate(parts))
    np.testing.assert_array_equal(got["t[1]"], parts[1])
    known = import_onnx(made, constants={"s": parts})
    assert not known.inputs
    np.testing.assert_array_equal(evaluate(known, {}, dtype=None)["z"], np.concatenate(parts))
    open_ = import_onnx(made, shapes={"s": [((0, 2, 9), 3)]})
    assert evaluate(open_, {"s[0]": parts[1]}, dtype=None)["z"].shape == (2, 3)


def test_an_optional_input_has_an_element_unless_the_caller_says_none() -> None:
    tensor = helper.make_tensor_type_proto(FLOAT, (2, 6))
    default = graph("none", [node("Identity", ["y"], ["a"])], [], [value("a")])
    given = graph("given", [node("OptionalGetElement", ["o"], ["b"])], [], [value("b")])
    nodes = [
        node("OptionalHasElement", ["o"], ["has"]),
        node("If", ["has"], ["z"], then_branch=given, else_branch=default),
    ]
    made = model(nodes, "z has", inputs=(optional("o", tensor), value("y", shape=(2, 6))))
    found = evaluate(import_onnx(made), {"o": X, "y": Y}, dtype=None)
    np.testing.assert_array_equal(found["z"], X)
    assert found["has"]
    absent = import_onnx(made, constants={"o": None})
    assert tuple(absent.inputs) == ("y",)
    np.testing.assert_array_equal(evaluate(absent, {"y": Y}, dtype=None)["z"], Y)
    of_many = optional("o", helper.make_sequence_type_proto(tensor))
    length = [node("OptionalGetElement", ["o"], ["s"]), node("SequenceLength", ["s"], ["z"])]
    read = import_onnx(model(length, "z", inputs=(of_many,)), shapes={"o": [(2, 6)] * 3})
    assert evaluate(read, dict.fromkeys(read.inputs, X), dtype=None)["z"] == 3


def test_an_optional_value_is_its_element() -> None:
    kind = helper.make_tensor_type_proto(FLOAT, (2, 6))
    nodes = [
        node("Optional", ["x"], ["a"]),
        node("OptionalGetElement", ["a"], ["z"]),
        node("Optional", [], ["b"], type=kind),
        node("OptionalHasElement", ["b"], ["has"]),
    ]
    found = evaluate(import_onnx(model(nodes, "z has")), {"x": X, "y": Y}, dtype=None)
    np.testing.assert_array_equal(found["z"], X)
    assert not found["has"]


def test_a_function_of_a_model_may_take_and_give_sequences() -> None:
    swapped = helper.make_function(
        "local",
        "Swap",
        ["s"],
        ["t"],
        [
            helper.make_node("Constant", [], ["one"], value_int=1),
            helper.make_node("SequenceAt", ["s", "one"], ["b"]),
            helper.make_node("SequenceErase", ["s", "one"], ["rest"]),
            helper.make_node("Constant", [], ["front"], value_int=0),
            helper.make_node("SequenceInsert", ["rest", "b", "front"], ["t"]),
        ],
        [helper.make_opsetid("", 18)],
    )
    made = model([PAIR, helper.make_node("Swap", ["s"], ["z"], domain="local")], "z")
    made.functions.append(swapped)
    made.opset_import.append(helper.make_opsetid("local", 1))
    check(made)


def refusal(made: onnx.ModelProto, **said: object) -> str:
    with pytest.raises(ModelError) as caught:
        import_onnx(made, **said)
    return str(caught.value)


FEW = ImportLimits(nodes=100)
SPLIT = node("SplitToSequence", ["x"], ["z"])


def at(place: int) -> list[NodeProto]:
    held = node("Constant", [], ["n"], value=numpy_helper.from_array(np.array(place)))
    return [PAIR, held, node("SequenceAt", ["s", "n"], ["z"])]


def test_refusals(golden: Callable[[str, str], None]) -> None:
    count = value("n", INT64, ())
    xs = (value("x", shape=(2, 6)), value("y", shape=(2, 6)))
    more = node("If", ["c"], ["z"], then_branch=branch("x", "y"), else_branch=branch("y"))
    each = graph("each", [node("Relu", ["a"], ["b"])], [value("a")], [value("b")])
    pairs = graph("each", [node("Add", ["a", "c"], ["b"])], [value("a"), value("c")], [value("b")])
    until = [*GROWS, node("Cast", ["sum"], ["goes_on"], to=TensorProto.BOOL)]
    until.append(node("ReduceSum", ["made"], ["sum"], keepdims=0))
    nothing = node("Optional", [], ["o"], type=helper.make_tensor_type_proto(FLOAT, (2,)))
    grown = node("SequenceInsert", ["s", "y"], ["t"])
    texts = [
        refusal(model([node("Identity", ["s"], ["z"])], "z", inputs=(sequence("s"),))),
        refusal(model(at(2), "z")),
        refusal(model(at(0)[::2], "z", inputs=(*xs, count))),
        refusal(model([PAIR, node("Relu", ["s"], ["z"])], "z")),
        refusal(model([PAIR, node("SequenceConstruct", ["x", "s"], ["z"])], "z")),
        refusal(model([node("SequenceLength", ["x"], ["z"])], "z")),
        refusal(model([node("SplitToSequence", ["x", "n"], ["z"])], "z", n=np.array([1, 3]))),
        refusal(model([node("SplitToSequence", ["x", "n"], ["z"])], "z", n=np.array(-1))),
        refusal(
            model(
                [
                    node("SequenceEmpty", [], ["s"]),
                    node("ConcatFromSequence", ["s"], ["z"], axis=0),
                ],
                "z",
            )
        ),
        refusal(model([PAIR, grown, node("SequenceMap", ["s", "t"], ["z"], body=pairs)], "z")),
        refusal(model([PAIR, node("SequenceMap", ["s", "x"], ["z"], body=each)], "z")),
        refusal(model([nothing, node("OptionalGetElement", ["o"], ["z"])], "z")),
        refusal(model([more], "z", inputs=INPUTS)),
        refusal(model([PAIR, loop(GROWS, "s")], "z", inputs=(*xs, count))),
        refusal(model([PAIR, loop(until, "s", until="goes_on")], "z", n=np.array(3), yes=True)),
        refusal(model([PAIR, loop(GROWS, "s")], "rows", n=np.array(0))),
        refusal(model([node("SequenceEmpty", [], ["z"])], "z")),
        refusal(model([PAIR, loop(GROWS, "s")], "z", n=np.array(1 << 40)), limits=FEW),
        refusal(model([SPLIT], "z", inputs=(value("x", shape=(300,)),)), limits=FEW),
    ]
    golden("errors/onnx_sequences.txt", "\n\n".join(texts))
