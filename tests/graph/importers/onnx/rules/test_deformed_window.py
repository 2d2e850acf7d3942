"""DeformConv, Col2Im and CenterCropPad against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.folding import Col2Im
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]
Refused = Callable[..., str]


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("groups", "shared", "full"), [(1, 1, True), (2, 1, False), (1, 2, False), (2, 4, True)]
)
def test_deformed_convolutions_agree_with_the_reference(
    random_array: Random, groups: int, shared: int, full: bool
) -> None:
    inputs = {
        "x": random_array(1, 2, 4, 6, 5),
        "w": random_array(2, 6, 4 // groups, 3, 2),
        "offset": random_array(3, 2, shared * 12, 3, 5),
        "bias": random_array(4, 6) if full else None,
        "mask": random_array(5, 2, shared * 6, 3, 5) if full else None,
    }
    agree(
        "DeformConv",
        inputs,
        opset=19,
        engine=True,
        group=groups,
        offset_group=shared,
        pads=[1, 0, 1, 1],
        strides=[2, 1],
        kernel_shape=[3, 2],
    )


WINDOWS: list[dict[str, list[int]]] = [
    {},
    {"strides": [2, 1]},
    {"pads": [1, 0, 0, 2]},
    {"dilations": [1, 2], "strides": [1, 2], "pads": [0, 1, 1, 0]},
]


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_add_up_to_images(random_array: Random, window: dict[str, list[int]]) -> None:
    image, block = np.array([5, 6]), np.array([2, 3])
    op = Col2Im(
        (5, 6),
        (2, 3),
        tuple(window.get("strides", [1, 1])),
        tuple(window.get("pads", [0, 0, 0, 0])),
        tuple(window.get("dilations", [1, 1])),
    )
    count = int(np.prod([axis.windows for axis in op.axes()]))
    inputs = {"x": random_array(1, 2, 3 * 6, count), "image": image, "block": block}
    agree("Col2Im", inputs, opset=18, constants=("image", "block"), engine=True, **window)


@pytest.mark.parametrize("sizes", [(4, 9), (5, 6), (8, 3)])
def test_what_is_centred_agrees_with_the_reference(
    random_array: Random, sizes: tuple[int, int]
) -> None:
    inputs = {"x": random_array(1, 2, 5, 6), "shape": np.array(sizes)}
    agree("CenterCropPad", inputs, opset=18, constants=("shape",), axes=[-2, 2])
    whole = {**inputs, "shape": np.array((3, *sizes))}
    agree("CenterCropPad", whole, opset=18, constants=("shape",))


def test_what_does_not_fit_is_refused(refused_node: Refused) -> None:
    type_ = TensorType("float32", (1, 8, 5))
    with pytest.raises(ModelError) as caught:
        Col2Im((4, 4), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1)).infer((type_,))
    assert str(caught.value) == (
        "ModelError: Col2Im: expected [N, C * 4, 4] for (4, 4), got float32[1, 8, 5]. [fold-shape]"
    )
    inputs = {"x": np.zeros((2, 3), np.float32), "shape": np.array([4])}
    assert refused_node("CenterCropPad", inputs, constants=("shape",)) == (
        "ModelError: model: node 'the_node' (CenterCropPad) has shape [4] for axes [0, 1]; "
        "expected a size for each. [onnx-center-shape]"
    )
    window = {
        "x": np.zeros((1, 2, 4, 4), np.float32),
        "w": np.zeros((2, 2, 2, 2), np.float32),
        "offset": np.zeros((1, 7, 3, 3), np.float32),
    }
    assert refused_node("DeformConv", window, opset=19) == (
        "ModelError: model: node 'the_node' (DeformConv) has input float32[1, 2, 4, 4], weights "
        "float32[2, 2, 2, 2], offsets float32[1, 7, 3, 3], group 1 and offset_group 1, which do "
        "not fit. [onnx-deform-conv]"
    )
