"""CropAndResize, against onnxruntime."""

from __future__ import annotations

import numpy as np

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    random,
    refusal,
)

X = random(1, 2, 3, 5, 6)
REGIONS = np.array(
    [[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0], [0.9, 0.7, 0.2, 0.1], [-0.3, 0.2, 1.2, 0.6]],
    np.float32,
)
IMAGES = np.array([0, 1, 1, 0], np.int32)


def test_regions_are_sampled_from_corner_to_corner() -> None:
    check_contributed(
        *(
            Contributed(
                "CropAndResize",
                (X, REGIONS, IMAGES, np.array(size, np.int32)),
                {"mode": mode, "extrapolation_value": 0.25},
                (3,),
            )
            for mode, size in (("bilinear", [4, 3]), ("bilinear", [1, 2]), ("nearest", [4, 5]))
        )
    )


def test_regions_that_do_not_fit_are_refused() -> None:
    inputs = (X, REGIONS[:, :3].copy(), IMAGES, np.array([4, 3], np.int32))
    assert refusal(Contributed("CropAndResize", inputs, {}, (3,))) == (
        "ModelError: model: node 'node0' (CropAndResize) has regions float32[4, 3] and crop_size "
        "[4, 3]; expected four numbers for each region, and two sizes. [onnx-crop]"
    )
    inputs = (X, REGIONS, IMAGES, np.array([4, 3], np.int32))
    cubic = Contributed("CropAndResize", inputs, {"mode": "cubic"}, (3,))
    assert "mode is 'cubic'; known are bilinear, nearest" in refusal(cubic)
