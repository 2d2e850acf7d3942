"""What the rules of Slice, Split and Pad refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Refused = Callable[..., str]
X = np.zeros((3, 4), np.float32)


def test_a_step_of_zero_is_refused(refused_node: Refused) -> None:
    parts = {"starts": [0, 1], "ends": [2, 2], "axes": [0, 1], "steps": [1, 0]}
    inputs = {"x": X} | {name: np.array(values) for name, values in parts.items()}
    assert refused_node("Slice", inputs, constants=tuple(parts)) == (
        "ModelError: model: node 'the_node' (Slice) has starts [0, 1], ends [2, 2], axes [0, 1], "
        "steps [1, 0]; expected as many of each and no step of 0. [onnx-slice]"
    )


def test_sizes_that_do_not_add_up_are_refused(refused_node: Refused) -> None:
    inputs = {"x": X, "split": np.array([3])}
    assert refused_node("Split", inputs, constants=("split",), axis=1) == (
        "ModelError: model: node 'the_node' (Split) splits axis 1 of float32[3, 4] into [3] for 1 "
        "outputs; expected a size for each, 4 together. [onnx-split]"
    )


def test_pads_that_do_not_fit_are_refused(refused_node: Refused) -> None:
    assert refused_node("Pad", {"x": X, "pads": np.array([1, 2])}, constants=("pads",)) == (
        "ModelError: model: node 'the_node' (Pad) has pads [1, 2]; expected 4 for float32[3, 4]. "
        "[onnx-pads]"
    )
    inputs = {"x": X, "pads": np.zeros(4, np.int64), "value": np.zeros(2, np.float32)}
    assert refused_node("Pad", inputs, constants=("pads", "value")) == (
        "ModelError: model: node 'the_node' (Pad) pads float32[3, 4] with float32[2]; expected one "
        "element of its type. [onnx-pad-value]"
    )


def test_a_split_into_no_sizes_is_refused(refused_node: Refused) -> None:
    inputs = {"x": X, "split": np.zeros(0, np.int64)}
    assert "splits axis 0 of float32[3, 4] into [] for 1 outputs" in refused_node(
        "Split", inputs, constants=("split",)
    )
    assert "into [3] for 1 outputs" not in refused_node("Split", {"x": X}, num_outputs=2**40)


def test_the_element_that_pads_has_the_type_of_the_data(refused_node: Refused) -> None:
    inputs = {"x": np.zeros(3, np.int32), "pads": np.ones(2, np.int64), "v": np.float32(np.nan)}
    assert "pads int32[3] with float32[]" in refused_node("Pad", inputs, constants=("pads", "v"))
