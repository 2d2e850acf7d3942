"""RoiAlign against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.graph.onnx_reference import agree
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.pooled_regions.roi_align import RoiAlign
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]
REGIONS = np.array(
    [[0, 0, 7, 7], [-3, 2, 4, 9.5], [3, 3, 3, 3], [5, 1, 2, 6], [20, 20, 30, 30]], np.float32
)
IMAGES = np.array([0, 1, 1, 0, 1])


@pytest.mark.sampled(5)
@pytest.mark.needs_cc
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("samples", "scale"), [(1, 1.0), (2, 0.5), (3, 1.25)])
def test_regions_agree_with_the_reference(
    random_array: Random, mode: str, coordinates: str, samples: int, scale: float
) -> None:
    inputs = {"x": random_array(1, 2, 3, 8, 9), "regions": REGIONS, "images": IMAGES}
    agree(
        "RoiAlign",
        inputs,
        opset=16,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        output_height=2,
        output_width=3,
        sampling_ratio=samples,
        spatial_scale=scale,
        engine=True,
    )


def test_versions_differ_in_the_coordinates_that_they_take(
    node_model: Callable[..., onnx.ModelProto],
    run_onnxruntime: Callable[..., list[Array]],
    random_array: Random,
) -> None:
    inputs = {"x": random_array(1, 2, 3, 8, 9), "regions": REGIONS[:3], "images": IMAGES[:3]}
    for opset in (10, 16):
        model = node_model("RoiAlign", inputs, opset=opset, output_height=2, sampling_ratio=2)
        (wanted,) = run_onnxruntime(model, inputs)
        (found,) = evaluate(import_onnx(model), inputs, dtype=None).values()
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_no_regions_give_no_parts(random_array: Random) -> None:
    arrays = (random_array(1, 1, 2, 4, 4), np.zeros((0, 4), np.float32), np.zeros(0, np.int64))
    (y,) = RoiAlign(2, 2, 1).reference(*arrays)
    assert y.shape == (0, 2, 2, 2)


def test_what_does_not_fit_is_refused() -> None:
    types = (
        TensorType("float32", (1, 2, 4, 4)),
        TensorType("float32", (3, 5)),
        TensorType("int64", (3,)),
    )
    with pytest.raises(ModelError) as caught:
        RoiAlign(1, 1, 1).infer(types)
    assert str(caught.value) == (
        "ModelError: RoiAlign: expected images, [R, 4], int64 of [R] and at least one part and "
        "sample, got float32[1, 2, 4, 4], float32[3, 5], int64[3] and RoiAlign(rows=1, columns=1, "
        "samples=1, scale=1.0, aligned=True, largest=False). [roi-align-shape]"
    )
    regions = TensorType("float32", (3, 4))
    with pytest.raises(ModelError) as caught:
        RoiAlign(1, 1, 1).infer((TensorType("float32", (1, 2, 0, 4)), regions, types[2]))
    assert str(caught.value) == (
        "ModelError: RoiAlign: float32[1, 2, 0, 4] has no elements to pool. [roi-align-empty]"
    )
