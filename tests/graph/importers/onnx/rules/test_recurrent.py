"""LSTM, GRU and RNN mean what onnxruntime computes, with every attribute and optional input; what
has no place is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.activation import HardSigmoid
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.regions.loop import Loop
from tilewright.graph.types import Array

pytestmark = pytest.mark.sampled(4)

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
NAMES = {
    "LSTM": ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"),
    "GRU": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
    "RNN": ("X", "W", "R", "B", "sequence_lens", "initial_h"),
}
NUMBERS = {  # of alpha and beta that each takes
    "Affine": ((1.5, 0.25), 2),
    "Elu": ((0.7,), 1),
    "HardSigmoid": ((0.3, 0.4), 2),
    "LeakyRelu": ((0.2,), 1),
    "Relu": ((), 0),
    "ScaledTanh": ((1.2, 0.6), 2),
    "Sigmoid": ((), 0),
    "Softplus": ((), 0),
    "Softsign": ((), 0),
    "Tanh": ((), 0),
    "ThresholdedRelu": ((0.3,), 1),
}


@dataclass(frozen=True)
class Recurrence:
    """A model of one recurrent node. given: the optional inputs; constants: of all inputs."""

    kind: str
    attributes: dict[str, object] = field(default_factory=dict)
    given: tuple[str, ...] = ("B",)
    constants: tuple[str, ...] = ("W", "R", "B", "P")
    outputs: tuple[str, ...] = ("Y", "Y_h", "Y_c")
    steps: int = 5
    batch: int = 3
    opset: int = 22
    lengths: tuple[int, ...] = (5, 1, 3)

    @property
    def directions(self) -> int:
        return 2 if self.attributes.get("direction") == "bidirectional" else 1

    @property
    def kept(self) -> tuple[str, ...]:
        """The outputs that the operator has, "" where it leaves one out."""
        return self.outputs if self.kind == "LSTM" else self.outputs[:2]

    def arrays(self) -> dict[str, Array]:
        """All inputs."""
        rng, gates, hidden, size = np.random.default_rng(7), GATES[self.kind], 4, 6
        directions, batch_first = self.directions, self.attributes.get("layout") == 1
        state = (self.batch, directions) if batch_first else (directions, self.batch)
        x = (self.batch, self.steps) if batch_first else (self.steps, self.batch)
        shapes = {
            "X": (*x, size),
            "W": (directions, gates * hidden, size),
            "R": (directions, gates * hidden, hidden),
            "B": (directions, 2 * gates * hidden),
            "initial_h": (*state, hidden),
            "initial_c": (*state, hidden),
            "P": (directions, 3 * hidden),
        }
        found = {n: rng.uniform(-1, 1, s).astype(np.float32) for n, s in shapes.items()}
        found["sequence_lens"] = np.array(self.lengths, np.int32)
        wanted = ("X", "W", "R", *self.given)
        return {name: found[name] for name in NAMES[self.kind] if name in wanted}

    def model(self) -> onnx.ModelProto:
        """The model; its inputs are what is no constant."""
        arrays = self.arrays()
        names = [name if name in arrays else "" for name in NAMES[self.kind]]
        attributes = {"hidden_size": 4, **self.attributes}
        node = helper.make_node(self.kind, names, self.kept, name="cell", **attributes)
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in arrays.items()
            if name not in self.constants
        ]
        constants = [
            onnx.numpy_helper.from_array(array, name)
            for name, array in arrays.items()
            if name in self.constants
        ]
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in self.kept
            if name
        ]
        graph = helper.make_graph([node], "recurrence", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def inputs(self) -> dict[str, Array]:
        """What the model is called with."""
        return {n: array for n, array in self.arrays().items() if n not in self.constants}

    def ours(self) -> dict[str, Array]:
        """What the imported graph gives, which the passes do not change."""
        graph = import_onnx(self.model())
        given = self.inputs()
        found = evaluate(graph, given, dtype=None)
        better = evaluate(optimise(graph)[0], given, dtype=None)
        for name, array in found.items():
            np.testing.assert_allclose(better[name], array, rtol=1e-5, atol=1e-6)
        return dict(found)

    def theirs(self) -> dict[str, Array]:
        """What onnxruntime gives."""
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(
            self.model().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [name for name in self.kept if name]
        return dict(zip(names, session.run(names, self.inputs()), strict=True))


def activated(kind: str, *names: str, directions: int = 1) -> dict[str, object]:
    """The attributes for these activations, with numbers of their own."""
    numbers = [NUMBERS[name] for name in names]
    found: dict[str, object] = {
        "activations": list(names),
        "activation_alpha": [values[0] for values, count in numbers if count > 0],
        "activation_beta": [values[1] for values, count in numbers if count > 1],
    }
    if directions == 2:
        found["direction"] = "bidirectional"
    assert len(names) == FUNCTIONS[kind] * directions
    return {name: value for name, value in found.items() if value}


DIRECTIONS = [{"direction": name} for name in ("forward", "reverse", "bidirectional")]
STATES = ("B", "initial_h", "initial_c")
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
    open_batch = wrong(Recurrence("GRU"))
    open_batch.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "batch"
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
    with pytest.raises(ModelError) as caught:
        import_onnx(open_batch, shapes={"batch": (1, 2, 4)})
    golden("errors/onnx_recurrent.txt", "\n\n".join([*texts, str(caught.value)]))


def test_numbers_of_activations_that_are_left_out_are_those_of_the_operators() -> None:
    case = Recurrence("RNN", {"activations": ["HardSigmoid"]})
    (loop, _) = [n.op for n in import_onnx(case.model()).nodes if isinstance(n.op, Loop)]
    assert HardSigmoid(0.2, 0.5) in [node.op for node in loop.body.nodes]
