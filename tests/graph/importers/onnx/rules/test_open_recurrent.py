"""LSTM, GRU and RNN whose batch, or whose number of steps, a run decides: what onnxruntime computes
at each choice of sizes, with every attribute and optional input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.regions.loop import Loop
from tilewright.graph.types import Array

from .recurrences import DIRECTIONS, GATES, NAMES, STATES, Recurrence, activated

BOTH = ("steps", "batch")
SHAPES = {"steps": (1, 4, 9), "batch": (1, 2, 5)}
SIZES = ((1, 1), (4, 3), (9, 5))
EVERY = {kind: names[3:] for kind, names in NAMES.items()}

CASES = [
    *(Recurrence(kind, way, given=EVERY[kind]) for kind in GATES for way in DIRECTIONS),
    *(Recurrence(kind, given=()) for kind in GATES),
    *(Recurrence(kind, outputs=("", "Y_h", "")) for kind in GATES),
    *(Recurrence(kind, DIRECTIONS[2], given=STATES, constants=()) for kind in GATES),
    *(Recurrence(kind, {"clip": 0.3}, given=("B", "sequence_lens")) for kind in GATES),
    Recurrence("LSTM", outputs=("", "", "Y_c")),
    Recurrence("LSTM", outputs=("Y", "", "")),
    Recurrence("LSTM", {"input_forget": 1, "clip": 0.5}, given=(*STATES, "P", "sequence_lens")),
    Recurrence("LSTM", activated("LSTM", *("Sigmoid", "LeakyRelu", "Elu") * 2, directions=2)),
    *(Recurrence("GRU", {**way, "linear_before_reset": 1}, given=STATES[:2]) for way in DIRECTIONS),
    Recurrence("GRU", activated("GRU", "HardSigmoid", "Softsign")),
]


def at(case: Recurrence, steps: int, batch: int) -> dict[str, Array]:
    """What a model is called with at these sizes."""
    lengths = tuple(n % steps + 1 for n in range(batch)) if steps else (0,) * batch
    return replace(case, steps=steps, batch=batch, lengths=lengths).inputs()


def opened(case: Recurrence, *axes: str) -> Recurrence:
    """The case with open axes; weights and biases stay what they are."""
    constants = tuple(name for name in case.constants if name in "WRBP")
    return replace(case, open_axes=axes, constants=constants)


def check(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_at_each_choice_of_sizes_it_is_what_onnxruntime_computes(case: Recurrence) -> None:
    case = opened(case, *BOTH)
    graph = import_onnx(case.model(), shapes=SHAPES)
    better, _ = optimise(graph, check=False)
    for sizes, one in zip((*SIZES, SIZES[-1]), (graph, graph, graph, better), strict=True):
        given = at(case, *sizes)
        check(evaluate(one, given, dtype=None), case.theirs(given))


@pytest.mark.parametrize("axes", [("steps",), ("batch",), BOTH], ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_either_axis_may_be_open_and_batches_first(kind: str, axes: tuple[str, ...]) -> None:
    """Against ONNX's reference: onnxruntime has steps first."""
    case = Recurrence(kind, {**DIRECTIONS[2], "layout": 1}, given=STATES)
    case = opened(case, *axes)
    graph = import_onnx(case.model(), shapes={axis: SHAPES[axis] for axis in axes})
    names = [name for name in case.kept if name]
    evaluator = ReferenceEvaluator(case.model())
    for steps, batch in SIZES:
        sizes = (steps if "steps" in axes else case.steps, batch if "batch" in axes else case.batch)
        given = at(case, *sizes)
        expected = dict(zip(names, evaluator.run(names, given), strict=True))
        check(evaluate(graph, given, dtype=None), expected)


@pytest.mark.parametrize(
    ("bounds", "counts"),
    [
        ((1, 4, 9), ["steps//2", "steps - 2*(steps//2)"]),
        ((0, 2, 5), ["steps//2", "steps - 2*(steps//2)"]),
        ((0, 1, 1), ["steps"]),
        ((2, 3, 3), ["1", "steps - 2"]),
        ((1, 1, 1), ["1"]),
        ((4, 4, 4), ["2"]),
    ],
)
def test_as_many_loops_run_as_the_bounds_leave_open(
    bounds: tuple[int, int, int], counts: list[str]
) -> None:
    case = opened(Recurrence("LSTM", given=EVERY["LSTM"]), "steps")
    graph = import_onnx(case.model(), shapes={"steps": bounds})
    loops = [node.op for node in graph.nodes if isinstance(node.op, Loop)]
    assert [str(loop.count) for loop in loops] == counts
    for steps in range(bounds[0], bounds[2] + 1):
        given = at(case, steps, case.batch)
        found = evaluate(graph, given, dtype=None)
        if steps:
            check(found, case.theirs(given))
        else:
            assert found["Y"].shape == (0, 1, 3, 4)
            np.testing.assert_array_equal(found["Y_h"], given["initial_h"])
            np.testing.assert_array_equal(found["Y_c"], given["initial_c"])


def test_rows_of_no_steps_may_have_an_open_batch() -> None:
    case = opened(Recurrence("GRU", steps=0), "batch")
    graph = import_onnx(case.model(), shapes={"batch": (1, 2, 5)})
    found = evaluate(graph, at(case, 0, 2), dtype=None)
    assert found["Y"].shape == (0, 1, 2, 4)
    np.testing.assert_array_equal(found["Y_h"], np.zeros((1, 2, 4), np.float32))


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand"])
def test_first_states_that_exporters_make_of_the_batch_are_read(operator: str) -> None:
    case = opened(Recurrence("LSTM", given=STATES), *BOTH)
    model = case.model()
    made = [
        helper.make_node("Shape", ["X"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["batch_size"]),
        helper.make_node("Concat", ["one", "batch_size", "four"], ["state_shape"], axis=0),
        helper.make_node("ConstantOfShape", ["state_shape"], ["initial_h"]),
        helper.make_node("Expand", ["half", "state_shape"], ["initial_c"]),
    ]
    if operator == "ConstantOfShape":
        value = onnx.numpy_helper.from_array(np.array([0.5], np.float32))
        made[-1] = helper.make_node(operator, ["state_shape"], ["initial_c"], value=value)
    nodes, inputs = [*made, *model.graph.node], model.graph.input[:1]
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(nodes)
    model.graph.input.extend(inputs)
    numbers = {"one": np.array([1]), "four": np.array([4]), "half": np.array(0.5, np.float32)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in numbers.items()
    )
    graph = import_onnx(model, shapes=SHAPES)
    for steps, batch in SIZES:
        given = at(case, steps, batch)
        states = {"initial_h": np.zeros((1, batch, 4)), "initial_c": np.full((1, batch, 4), 0.5)}
        expected = case.theirs({**given, **{n: a.astype(np.float32) for n, a in states.items()}})
        check(evaluate(graph, {"X": given["X"]}, dtype=None), expected)
