"""Slice, Pad and Spread, and the ONNX operators that become them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.slicing import Pad, Slice, Spread
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]

X = (3, 5, 8)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1, 0], [3, 5], [0, 2], [1, 1]),
        ([-1, -1], [-100, 0], [0, 2], [-1, -3]),
        ([0, 100], [100, 0], [-1, 1], [2, -2]),
        ([2], [2], [1], [1]),
        ([0, 0, 0], [3, 5, 8], [0, 1, 2], [1, 1, 1]),
    ],
)
def test_slice_agrees_with_onnxruntime(
    check_node: Check,
    random_array: Random,
    starts: list[int],
    ends: list[int],
    axes: list[int],
    steps: list[int],
) -> None:
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    inputs = {"x": random_array(1, *X)} | {name: np.array(v) for name, v in given.items()}
    check_node("Slice", inputs, constants=tuple(given), opset=13)


def test_slice_takes_attributes_and_leaves_axes_and_steps_out(
    check_node: Check, random_array: Random
) -> None:
    x = random_array(1, *X)
    check_node("Slice", {"x": x}, opset=9, starts=[1, -3], ends=[9, -1], axes=[1, 2])
    check_node("Slice", {"x": x}, opset=9, starts=[1, 2], ends=[2, 4])
    inputs = {"x": x, "starts": np.array([1, 2]), "ends": np.array([2, 4])}
    check_node("Slice", inputs, opset=13, constants=("starts", "ends"))


@pytest.mark.parametrize(
    ("opset", "sizes", "attributes"),
    [
        (11, None, {"split": [2, 1, 5]}),
        (13, [2, 1, 5], {}),
        (13, None, {}),
        (18, None, {"num_outputs": 3}),
        (20, [8, 0, 0], {}),
    ],
)
def test_split_gives_every_output(
    node_model: Callable[..., onnx.ModelProto],
    run_onnxruntime: Callable[..., list[Array]],
    random_array: Random,
    opset: int,
    sizes: list[int] | None,
    attributes: dict[str, object],
) -> None:
    inputs = {"x": random_array(1, 2, 8 if sizes or "split" in attributes else 9)}
    if opset == 18:
        inputs = {"x": random_array(1, 2, 8)}  # the last part is smaller
    if sizes is not None:
        inputs["split"] = np.array(sizes)
    names = tuple(inputs)[1:]
    model = node_model("Split", inputs, opset=opset, constants=names, axis=-1, **attributes)
    del model.graph.node[0].output[:], model.graph.output[:]
    for name in ("y0", "y1", "y2"):
        model.graph.node[0].output.append(name)
        model.graph.output.add(name=name).type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    graph = import_onnx(model)
    results = evaluate(graph, {"x": inputs["x"]})
    for name, expected in zip(graph.outputs, run_onnxruntime(model, inputs), strict=True):
        np.testing.assert_array_equal(results[name], expected)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_agrees_with_onnxruntime(check_node: Check, random_array: Random, mode: str) -> None:
    inputs = {"x": random_array(1, *X), "pads": np.array([0, 2, 1, 0, 1, 3])}
    check_node("Pad", inputs, constants=("pads",), opset=19, mode=mode)


def test_pad_takes_a_value_and_axes_and_cuts_where_negative(
    check_node: Check, random_array: Random
) -> None:
    x, value = random_array(1, *X), np.array(2.5, dtype=np.float32)
    inputs = {"x": x, "pads": np.array([-1, 2, 3, -2]), "value": value, "axes": np.array([2, -3])}
    check_node("Pad", inputs, constants=("pads", "value", "axes"), opset=18)
    check_node("Pad", {"x": x}, opset=10, pads=[0, 1, 1, 0, 0, 2], value=-1.0)
    check_node("Pad", {"x": x}, opset=10, pads=[-1, 0, 0, -1, 0, -2])


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "op",
    [
        Slice((0, 1, 20), (3, 4, 64), (1, 1, 1)),
        Slice((2, 4, 99), (3, 2, 50), (-1, -2, -2)),
        Pad((1, 0, 3), (0, 2, 5), "constant", float("-inf")),
        *(Pad((1, 2, 30), (0, 2, 5), mode) for mode in ("edge", "reflect", "wrap")),
        *(Pad((0, pad, 0), (0, pad, 0), "reflect") for pad in (1, 3, 4, 5, 6)),  # of five
        Spread((1, 3, 2)),
    ],
)
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None], random_array: Random, op: Operator
) -> None:
    check_kernel(op, random_array(1, 3, 5, 100))


@pytest.mark.needs_cc
def test_kernels_move_truth_values_and_integers(check_kernel: Callable[..., None]) -> None:
    x = np.arange(40).reshape(5, 8)
    check_kernel(Slice((4, 0), (3, 8), (-2, 1)), x)
    check_kernel(Pad((1, 0), (0, 3), "constant", True), x % 3 == 0)
    check_kernel(Spread((2, 3)), x.astype(np.int32))


F = "float32"
T = TensorType(F, (3, 4))
REFUSALS: list[tuple[Operator, TensorType, str]] = [
    (
        Slice((0,), (2,), (1,)),
        T,
        "Slice: expected a start, a size and a step for each axis of float32[3, 4], got "
        "Slice(starts=(0,), sizes=(2,), steps=(1,)). [slice-rank]",
    ),
    (
        Slice((0, 1), (3, 4), (1, 1)),
        T,
        "Slice: axis 1 of float32[3, 4] is read from 1 to 4; expected 0 to 3. [slice-bounds]",
    ),
    (
        Pad((0,), (0,)),
        T,
        "Pad: expected two pads for each axis of float32[3, 4], got (0,) and (0,). [pad-rank]",
    ),
    (
        Pad((0, 1), (0, -1)),
        T,
        "Pad: expected pads of 0 or more, got (0, 1) and (0, -1). [pad-negative]",
    ),
    (
        Pad((0, 1), (0, 1), "edge"),
        TensorType(F, (3, 0)),
        "Pad: axis 1 of float32[3, 0] has no elements to take the edge pads from. [pad-empty]",
    ),
    (
        Spread((1, 0)),
        T,
        "Spread: expected a step of 1 or more for each axis of float32[3, 4], got (1, 0). "
        "[spread-steps]",
    ),
]


@pytest.mark.parametrize(("op", "type_", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(op: Operator, type_: TensorType, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer((type_,))
    assert str(caught.value) == f"ModelError: {text}"
