"""graph/verification/reduce_model.py: the smallest model that fails, and why it fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tilewright import reduce_model
from tilewright.graph.verification import outcomes
from tilewright.graph.verification.parts import ModelPart, WholeModel
from tilewright.graph.verification.reduce_model import ReducedModel, ReduceError

MODEL = """<ir_version: 9, opset_import: ["" : 17, "com.example" : 1]>
    chain (float[batch, 4] x) => (float[batch, 2] y, float[batch, 4] z)
    <float[4, 4] w = {1, 2, 3, 4, 0, 1, 1, 1, 2, 2, 0, 1, 1, 0, 0, 1}, int64[1] one = {1},
     int64[1] unread = {7}> {
        a = MatMul (x, w)
        b = Relu (a)
        c = MatMul (b, w)
        d = <OPERATOR> (c)
        e = Neg (d)
        shape = Shape (a)
        size = Gather <axis = 0> (shape, one)
        last = Sub (size, one)
        f = Reshape (e, shape)
        z = Abs (f)
        g = Slice (f, one, size, one)
        h = Tanh (g)
        y = Slice (h, one, last, one)
    }
"""


def chain(operator: str) -> ModelProto:
    """A dozen nodes, of which one may be at fault."""
    return onnx.parser.parse_model(MODEL.replace("<OPERATOR>", operator))


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """A worker with faults, which Python finds in the root of the clone."""
    monkeypatch.chdir(root)
    monkeypatch.setattr(outcomes, "COMMAND", ("-m", "tests.graph.verification.faulty_worker"))


def reduced(operator: str, **how: object) -> ReducedModel:
    """The smallest model; each of them is one that onnx takes."""
    found = reduce_model(chain(operator), target="python", **how)  # type: ignore[arg-type]
    onnx.checker.check_model(found.proto, full_check=True)
    assert found.is_done
    return found


def test_one_node_is_left_of_what_differs(faults: None, tmp_path: Path) -> None:
    found = reduced("Softplus", against="reference")
    assert [node.op_type for node in found.proto.graph.node] == ["Softplus"]
    assert (found.outcome, found.nodes, found.whole) == ("differs", 1, 13)
    assert [item.name for item in found.proto.graph.input] == ["c"]
    assert not found.proto.graph.initializer
    assert list(found.inputs) == ["c"]
    assert str(found) == f"1 of 13 nodes, differs, after {found.trials} trials"
    file, beside = found.save(tmp_path / "small.onnx")
    assert onnx.load(file) == found.proto
    assert beside is not None
    with np.load(beside) as arrays:
        np.testing.assert_array_equal(arrays["c"], found.inputs["c"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.npz", "small.onnx"]
    again = reduced("Softplus", against="reference")
    assert (again.proto, again.trials) == (found.proto, found.trials)


def test_one_node_is_left_of_what_crashes(faults: None) -> None:
    found = reduced("Softsign")
    assert [node.op_type for node in found.proto.graph.node] == ["Softsign"]
    assert found.outcome == "crashed: SIGSEGV"


def test_one_node_is_left_of_what_is_refused() -> None:
    found = reduced("com.example.Twist", fails_with="onnx-unsupported")
    assert [node.op_type for node in found.proto.graph.node] == ["Twist"]
    assert found.outcome == "error onnx-unsupported"


def test_a_command_says_what_fails() -> None:
    found = reduced("Erf", command="! grep -q Erf {model}", seconds=60.0)
    assert [node.op_type for node in found.proto.graph.node] == ["Erf"]
    assert found.outcome == "status 1"
    found = reduced("Erf", command="grep -q Erf {model} && grep -q Neg {model} && kill -9 $$")
    assert [node.op_type for node in found.proto.graph.node] == ["Erf", "Neg"]
    assert found.outcome == "crashed: SIGKILL"


def test_what_hangs_is_ended() -> None:
    with pytest.raises(ReduceError) as caught:
        reduce_model(chain("Erf"), command="! sleep 60", trial_seconds=0.2, fails_with="x")
    assert str(caught.value) == (
        "ReduceError: reduce: the model does not fail so, but ends with 'no end within 0 s'; "
        "expected 'error x'. [reduce-no-failure]"
    )


def test_what_does_not_fail_or_is_no_model_is_refused() -> None:
    with pytest.raises(ReduceError) as caught:
        reduce_model(chain("Erf"), command="cat {model}")
    assert str(caught.value) == (
        "ReduceError: reduce: the model does not fail so, but ends with 'status 0'. "
        "[reduce-no-failure]"
    )
    broken = chain("Erf")
    broken.graph.node[0].input[0] = "nothing"
    with pytest.raises(ReduceError) as caught:
        reduce_model(broken, command="false")
    assert str(caught.value) == (
        "ReduceError: reduce: onnx.checker refuses the model: Nodes in a graph must be "
        "topologically sorted, however input 'nothing' of node; expected one that it takes, as it "
        "has to take each part of it. [reduce-invalid]"
    )


def test_no_time_leaves_the_whole_model() -> None:
    found = reduce_model(chain("Erf"), command="false", seconds=0.0)
    assert (found.nodes, found.is_done, found.trials) == (13, False, 0)
    assert str(found) == "13 of 13 nodes, status 1, after 0 trials; the time was over"


def test_parts_have_what_others_computed_as_inputs_or_constants() -> None:
    proto = chain("Erf")
    arrays = {"shape": np.array([2, 4]), "e": np.ones((2, 4), np.float32)}
    model = WholeModel.of(proto, arrays)
    made = model.model_of(ModelPart((8,)))
    assert made is not None
    assert [item.name for item in made[0].graph.input] == ["e", "shape"]
    assert set(made[1]) == {"e", "shape"}
    made = model.model_of(ModelPart((8,), fixed=True))
    assert made is not None
    assert [item.name for item in made[0].graph.input] == ["e"]
    assert [tensor.name for tensor in made[0].graph.initializer] == ["shape"]


def test_nodes_are_bypassed_whose_result_is_like_an_input() -> None:
    proto = chain("Erf")
    detours = list(WholeModel.of(proto, {}).detours(ModelPart((1, 2, 3))))
    assert [(one.nodes, dict(one.bypassed)) for one in detours] == [
        ((1, 2), {"d": "c"}),
        ((1, 3), {"c": "b"}),
        ((2, 3), {"b": "a"}),
    ]
