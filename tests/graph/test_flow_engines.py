"""What an engine of a model that branches and loops does besides running: it is exported, refuses
indices, is explained, and is left alone where it does not end.
"""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.exported import exported
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.tir.errors import TargetError

from .flow_models import FLOAT, INT64, MODELS, FlowModel, body, floats, graph, model, node, value

pytestmark = pytest.mark.needs_cc


@pytest.mark.sampled(2)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", ["nested", "scanning"])
def test_its_c_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    made = MODELS[name]()
    engine = compile(made.proto, cache=False, verify="off")
    library, loaded = exported(engine, tmp_path)
    for given in made.runs:
        expected = engine.run(given)
        for threads in (1, 2):
            found = {name: np.empty_like(array) for name, array in expected.items()}
            arrays = [given[spec.name] for spec in engine.inputs] + list(found.values())
            pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
            assert library.flow_run(loaded, *pointers, None, threads) == 0
            for name, array in expected.items():
                assert array.tobytes() == found[name].tobytes()


@pytest.mark.parametrize("target", ["c", "python"])
def test_an_index_out_of_range_in_any_iteration_is_told(target: str) -> None:
    made = MODELS["gathering"]()
    engine = compile(made.proto, target, cache=False, verify="off")
    given = dict(made.runs[-1])
    engine.run(given)
    for place in (0, 3, 5):
        wrong = given["places"].copy()
        wrong[place] = 3
        with pytest.raises(IndexRangeError):
            engine.run({**given, "places": wrong})
        engine.run({**given, "places": wrong, "n": np.array(0)})
    with pytest.raises(IndexRangeError):
        engine.run({**given, "n": np.array(7)})


def growing() -> FlowModel:
    """What does not end where no number is below 0."""
    inner = body(
        "step",
        [
            node("Add", ["s", "one"], ["next"]),
            node("ReduceMin", ["next"], ["least"], keepdims=0),
            node("Greater", ["least", "zero"], ["more"]),
        ],
        [value("s", shape=(4,))],
        ["next"],
        "more",
        one=np.float32(1),
        zero=np.float32(0),
    )
    proto = model(
        [
            node("Abs", ["x"], ["a"]),
            node("Loop", ["", "yes", "a"], ["y"], name="grow", body=inner),
        ],
        [value("x", shape=(4,))],
        [value("y")],
    )
    return FlowModel(proto, ({"x": floats((4,))},))


def test_a_model_that_does_not_end_on_random_data_is_built_and_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilewright.graph.reference.oracle._OPEN_RUNS", 100)
    engine = compile(growing().proto, cache=False)
    assert engine.explain().whole == (
        "not run on random data: the model has loops that go on for longer than a check may take; "
        "not run on extreme data: the model has loops that go on for longer than a check may take"
    )


def test_it_is_explained() -> None:
    lines = compile(MODELS["nested"]().proto, cache=False, verify="off").explain().notes
    assert [line for line in lines if line.startswith(("loop: ", "branch: "))] == [
        "loop: outer: as data say, 5 launches, 1 carried values, 24 B copied each time",
        "loop: inner: as data say, 3 launches, 1 carried values, 24 B copied each time",
        "branch: choice: 1 launches, or else 1",
    ]


def test_its_steps_are_timed_and_its_memory_drawn() -> None:
    made = MODELS["nested"]()
    engine = compile(made.proto, cache=False, verify="off")
    times = engine.profile(made.runs[-1], rounds=1, roofline=True)
    assert {(step.label, step.runs) for step in times.steps if step.limit is not None} == {
        ("trips", 4),
        ("is_first", 10),
        ("o", 4),
        ("e", 6),
        ("next", 4),
    }
    assert len(engine.memory_plan.tensors) > 0


def test_a_gpu_refuses_it_with_a_way_out_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("tilewright.driver.build_parts.build_code")
    with pytest.raises(TargetError) as caught:
        compile(MODELS["branch"]().proto, "cuda:sm_80", cache=False, verify="off")
    assert str(caught.value) == (
        "TargetError: cuda: 'flow' branches at 'choice' as its data say; expected the same "
        "steps in every run: on a GPU it is one graph. [cuda-flow]\n"
        "  Hint: tw.compile(model, 'c') runs it on the CPU.\n"
        "  Hint: where what decides is known, make it a constant of the model."
    )
    with pytest.raises(TargetError, match="'flow' loops at 'loop' as its data say"):
        compile(MODELS["counted"]().proto, "cuda:sm_80", cache=False, verify="off")


def test_all_of_its_functions_are_tasks() -> None:
    names = {func.name for func, _ in tw.tasks(MODELS["nested"]().proto)}
    assert {"add", "less", "sub", "mul"} <= names


def test_a_model_in_half_precision_loops() -> None:
    inner = body("step", [node("Mul", ["s", "s"], ["next"])], [value("s", shape=(40,))], ["next"])
    nodes = [
        node("Cast", ["x"], ["h"], to=10),
        node("Loop", ["n", "yes", "h"], ["y"], name="loop", body=inner),
    ]
    proto = model(nodes, [value("n", INT64, ()), value("x", FLOAT, (40,))], [value("y", 10)])
    engine = compile(proto, cache=False)
    x = floats((40,))
    found = engine.run({"n": np.array(2), "x": x})["y"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, x.astype(np.float16) ** 4, rtol=1e-2)


def test_branches_of_other_shapes_are_refused_and_a_constant_condition_takes_one() -> None:
    def made(**constants: bool) -> FlowModel:
        then = graph("yes", [node("Relu", ["x"], ["t"])], [], [value("t")])
        otherwise = graph("no", [node("ReduceMax", ["x"], ["e"])], [], [value("e")])
        nodes = [node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=otherwise)]
        given = [value("x", shape=(3,))]
        if not constants:
            given.insert(0, value("c", 9, ()))
        return FlowModel(model(nodes, given, [value("y")], **constants), ())

    with pytest.raises(ModelError) as caught:
        compile(made().proto, cache=False)
    assert str(caught.value) == (
        "ModelError: If: result 0 is float32[3] where the condition is true and float32[1] where "
        "it is false; expected one type, since memory is planned before a run. [if-types]\n"
        "  in node 'choice' (If):\n"
        "    'c': bool[]\n"
        "    'x': float32[3]\n"
        "  Hint: let both branches give the larger shape, padded, or make the condition a "
        "constant: then one branch alone is compiled."
    )
    for condition, shape in ((True, (3,)), (False, (1,))):
        engine = compile(made(c=condition).proto, cache=False, verify="off")
        assert engine.run({"x": floats((3,))})["y"].shape == shape


def test_a_file_that_does_not_fit_the_machine_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MODELS["counted"]()
    path = compile(made.proto, cache=False, verify="off").save(tmp_path / "flow.twe")
    monkeypatch.setattr(
        "tilewright.runtime.engine.reader.EngineFile.missing", lambda file, isa: ("another one",)
    )
    loaded = tw.load(path)
    assert "ok on 1, 2 and 3 threads" in loaded.explain().whole
    for given in made.runs:
        np.testing.assert_allclose(loaded.run(given)["y"], made.expected(given)[0], rtol=1e-5)


def test_weights_of_a_body_are_packed_once_before_the_first_run() -> None:
    inner = body(
        "step",
        [node("MatMul", ["s", "w"], ["m"]), node("Tanh", ["m"], ["next"])],
        [value("s", shape=(32, 64))],
        ["next"],
        w=floats((64, 64)),
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="loop", body=inner)],
        [value("n", INT64, ()), value("x", shape=(32, 64))],
        [value("y")],
    )
    artifact = compile(proto, "c:avx2", cache=False, verify="off").parts.artifact
    assert [parameter.role for parameter in artifact.constants] == ["constant", "prepared"]
    (launch,) = artifact.launches
    assert [item.position for item in launch.arguments if item.space == "constant"] == [1]
