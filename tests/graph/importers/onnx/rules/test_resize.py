"""What the rules of Resize refuse, and aspect ratios that are kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx

Refused = Callable[..., str]
X = np.zeros((1, 1, 4, 6), np.float32)
EMPTY = np.zeros(0, np.float32)


@pytest.mark.parametrize(
    ("policy", "shape"), [("stretch", (8, 6)), ("not_larger", (4, 6)), ("not_smaller", (8, 12))]
)
def test_the_aspect_ratio_is_kept_where_the_model_says_so(
    node_model: Callable[..., object], policy: str, shape: tuple[int, int]
) -> None:
    inputs = {"x": X, "roi": EMPTY, "scales": EMPTY, "sizes": np.array([8, 6])}
    model = node_model(
        "Resize",
        inputs,
        opset=18,
        constants=("roi", "scales", "sizes"),
        axes=[2, 3],
        keep_aspect_ratio_policy=policy,
    )
    assert import_onnx(model).types["y"].shape == (1, 1, *shape)


@pytest.mark.parametrize(
    ("scales", "text"),
    [
        (
            np.array([1, 1], np.float32),
            "ModelError: model: node 'the_node' (Resize) has 2 scales or sizes; expected 4. "
            "[onnx-resize-count]",
        ),
        (
            np.array([1, 1, 0, 1], np.float32),
            "ModelError: model: node 'the_node' (Resize) has scale 0.0; expected positive "
            "numbers. [onnx-scale]",
        ),
        (
            np.ones((1, 4), np.float32),
            "ModelError: model: input 'scales' of node 'the_node' (Resize) is float32[1, 4]; "
            "expected a list of scales. [onnx-scales]",
        ),
    ],
)
def test_scales_that_do_not_fit_are_refused(
    refused_node: Refused, scales: np.ndarray, text: str
) -> None:
    inputs = {"x": X, "roi": EMPTY, "scales": scales}
    assert refused_node("Resize", inputs, constants=("roi", "scales"), opset=13) == text
