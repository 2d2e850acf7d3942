"""LSTM, GRU and RNN mean what onnxruntime computes, with every attribute and optional input; what
has no place is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.activation import HardSigmoid
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.regions.loop import Loop

from .recurrences import DIRECTIONS, GATES, NAMES, NUMBERS, STATES, Recurrence, activated

pytestmark = pytest.mark.sampled(7)

CASES = [
    *(Recurrence(kind, way) for kind in GATES for way in DIRECTIONS),
    *(Recurrence(kind, DIRECTIONS[2], given=()) for kind in GATES),
    *(Recurrence(kind, DIRECTIONS[2], given=STATES, steps=n) for kind in GATES for n in (1, 2, 4)),
    *(
        Recurrence(kind, way, given=(*STATES, "sequence_lens"))
        for kind in GATES
        for way in DIRECTIONS
    ),
    *(
        Recurrence(kind, DIRECTIONS[2], given=("sequence_lens",), constants=("W", "sequence_lens"))
        for kind in GATES
    ),
    *(Recurrence(kind, DIRECTIONS[2], given=STATES, constants=()) for kind in GATES),
    *(Recurrence(kind, {"clip": 0.3}, given=STATES) for kind in GATES),
    *(Recurrence(kind, DIRECTIONS[2], opset=opset) for kind in GATES for opset in (7, 14, 26)),
    *(Recurrence(kind, outputs=("", "Y_h", "")) for kind in GATES),
    *(Recurrence("LSTM", way, given=(*STATES, "P")) for way in DIRECTIONS),
    Recurrence("LSTM", {"input_forget": 1}, given=STATES),
    Recurrence("LSTM", {"input_forget": 1, "clip": 0.5}, given=(*STATES, "P", "sequence_lens")),
    Recurrence("LSTM", outputs=("", "", "Y_c")),
    Recurrence("LSTM", activated("LSTM", "HardSigmoid", "ScaledTanh", "Affine")),
    Recurrence("LSTM", activated("LSTM", *("Sigmoid", "LeakyRelu", "Elu") * 2, directions=2)),
    *(Recurrence("GRU", {**way, "linear_before_reset": 1}, given=STATES[:2]) for way in DIRECTIONS),
    Recurrence("GRU", {"linear_before_reset": 1}, given=()),
    Recurrence("GRU", {"linear_before_reset": 1}, given=("B", "sequence_lens")),
    Recurrence("GRU", activated("GRU", "HardSigmoid", "Softsign")),
    *(Recurrence("RNN", activated("RNN", name), given=STATES[:2]) for name in NUMBERS),
    Recurrence("RNN", {"activations": ["Elu", "HardSigmoid"], **DIRECTIONS[2]}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_what_onnxruntime_computes(case: Recurrence) -> None:
    found, expected = case.ours(), case.theirs()
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("way", DIRECTIONS, ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_batches_may_be_the_first_axis(kind: str, way: dict[str, object]) -> None:
    """Against ONNX's reference: onnxruntime has steps first."""
    case = Recurrence(kind, {**way, "layout": 1}, given=STATES)
    evaluator = ReferenceEvaluator(case.model())
    names = [name for name in case.kept if name]
    expected = evaluator.run(names, case.inputs())
    found = case.ours()
    for name, array in zip(names, expected, strict=True):
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", GATES)
def test_lengths_mean_the_same_where_batches_are_first(kind: str) -> None:
    given = (*STATES, "sequence_lens")
    case = Recurrence(kind, DIRECTIONS[2], given=given)
    turned = Recurrence(kind, {**DIRECTIONS[2], "layout": 1}, given=given, constants=())
    arrays = {
        name: array.swapaxes(0, 1) if name in ("X", "initial_h", "initial_c") else array
        for name, array in case.arrays().items()
    }
    found = evaluate(import_onnx(turned.model()), arrays, dtype=None)
    expected = case.ours()
    np.testing.assert_array_equal(found["Y"], expected["Y"].transpose(2, 0, 1, 3))
    for name in case.kept[1:]:
        np.testing.assert_array_equal(found[name], expected[name].swapaxes(0, 1))


@pytest.mark.parametrize("kind", GATES)
def test_a_sequence_without_steps_keeps_its_state(kind: str) -> None:
    case = Recurrence(kind, given=(*STATES, "sequence_lens"), lengths=(0, 5, 0))
    found, first = case.ours(), case.arrays()
    for name, state in zip(case.kept[1:], STATES[1:], strict=False):
        np.testing.assert_array_equal(found[name][:, [0, 2]], first[state][:, [0, 2]])
    assert not found["Y"][:, :, [0, 2]].any()


@pytest.mark.parametrize("kind", GATES)
def test_no_steps_give_the_first_state(kind: str) -> None:
    case = Recurrence(kind, DIRECTIONS[2], given=STATES, steps=0)
    found, first = case.ours(), case.arrays()
    assert found["Y"].shape == (0, 2, 3, 4)
    for name, state in zip(case.kept[1:], STATES[1:], strict=False):
        np.testing.assert_array_equal(found[name], first[state])


def test_a_loop_gives_rows_only_where_somebody_asks_for_them() -> None:
    def loops(case: Recurrence) -> list[Loop]:
        nodes = import_onnx(case.model()).nodes
        return [node.op for node in nodes if isinstance(node.op, Loop)]

    assert [one.collected for one in loops(Recurrence("GRU"))] == [(False,) * 2, (False,)]
    assert [one.collected for one in loops(Recurrence("GRU", outputs=("", "Y_h")))] == [(), ()]
    assert [one.count for one in loops(Recurrence("GRU", steps=6))] == [3]


def wrong(case: Recurrence, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """The model of a case whose inputs are declared with other shapes."""
    model = replace(case, constants=()).model()
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.shape.Clear()
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    return model


def test_refusals(golden: Callable[[str, str], None]) -> None:
    every = Recurrence("LSTM", given=NAMES["LSTM"][3:])
    open_inputs, named_apart = wrong(Recurrence("GRU")), wrong(Recurrence("GRU", given=STATES[1:2]))
    open_inputs.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "size"
    for value, name in zip(named_apart.graph.input, ("batch", "", "", "rows"), strict=True):
        if name:
            value.type.tensor_type.shape.dim[1].dim_param = name
    models = [
        Recurrence("GRU", {"direction": "sideways"}).model(),
        Recurrence("GRU", {"layout": 2}).model(),
        Recurrence("RNN", {"clip": 0.0}).model(),
        Recurrence("RNN", {"activations": ["Sine"]}).model(),
        Recurrence("LSTM", {"activations": ["Tanh"]}).model(),
        Recurrence("GRU", {"activations": ["Elu", "Relu"], "activation_alpha": [1.0, 2.0]}).model(),
        Recurrence("RNN", {"hidden_size": 5}).model(),
        Recurrence("RNN", {"direction": "bidirectional"}, opset=14).model(),
        *(wrong(every, **{name: (5, 3)}) for name in ("X", "R")),
        wrong(every, R=(1, 16, 2)),
        *(wrong(every, **{name: (2, 2)}) for name in NAMES["LSTM"][3:]),
    ]
    models[7].graph.node[0].attribute[0].s = b"reverse"
    texts = []
    for model in models:
        with pytest.raises(ModelError) as caught:
            import_onnx(model)
        texts.append(str(caught.value))
    ranges = ({"size": (1, 2, 4)}, {"batch": (1, 2, 4), "rows": (1, 2, 4)})
    for model, shapes in zip((open_inputs, named_apart), ranges, strict=True):
        with pytest.raises(ModelError) as caught:
            import_onnx(model, shapes=shapes)
        texts.append(str(caught.value))
    golden("errors/onnx_recurrent.txt", "\n\n".join(texts))


def test_numbers_of_activations_that_are_left_out_are_those_of_the_operators() -> None:
    case = Recurrence("RNN", {"activations": ["HardSigmoid"]})
    (loop, _) = [n.op for n in import_onnx(case.model()).nodes if isinstance(n.op, Loop)]
    assert HardSigmoid(0.2, 0.5) in [node.op for node in loop.body.nodes]
