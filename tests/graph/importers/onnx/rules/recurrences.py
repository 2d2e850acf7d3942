"""Models of one recurrent node, with every attribute and optional input that it may have."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

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
    """A model of one recurrent node. given: the optional inputs; constants: of all inputs;
    open_axes: which of "steps" and "batch" its inputs leave open.
    """

    kind: str
    attributes: dict[str, object] = field(default_factory=dict)
    given: tuple[str, ...] = ("B",)
    constants: tuple[str, ...] = ("W", "R", "B", "P")
    outputs: tuple[str, ...] = ("Y", "Y_h", "Y_c")
    steps: int = 5
    batch: int = 3
    opset: int = 22
    lengths: tuple[int, ...] = (5, 1, 3)
    open_axes: tuple[str, ...] = ()

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
                name, helper.np_dtype_to_tensor_dtype(array.dtype), self._declared(name, array)
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

    def _declared(self, name: str, array: Array) -> list[int | str]:
        """The shape of an input as the model has it."""
        batch_first = self.attributes.get("layout") == 1
        axes = {
            "X": ("batch", "steps", "") if batch_first else ("steps", "batch", ""),
            "sequence_lens": ("batch",),
            "initial_h": ("batch", "", "") if batch_first else ("", "batch", ""),
            "initial_c": ("batch", "", "") if batch_first else ("", "batch", ""),
        }
        names = axes.get(name, ("",) * array.ndim)
        pairs = zip(names, array.shape, strict=True)
        return [axis if axis in self.open_axes else size for axis, size in pairs]

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

    def theirs(self, given: dict[str, Array] | None = None) -> dict[str, Array]:
        """What onnxruntime gives."""
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(
            self.model().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [name for name in self.kept if name]
        return dict(zip(names, session.run(names, given or self.inputs()), strict=True))


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
