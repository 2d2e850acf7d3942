"""MaxRoiPool against onnxruntime: ONNX's reference does not have it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.pooled_regions.max_roi_pool import MaxRoiPool
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]
NodeModel = Callable[..., onnx.ModelProto]
REGIONS = np.array(
    [
        *([0, 0, 0, 7, 7], [1, -3, 2, 4, 9.5], [1, 3, 3, 3, 3], [0, 5, 1, 2, 6]),
        *([1, 20, 20, 30, 30], [0, -30, -20, 40, 50.5], [1, 0.5, 1.5, 6.5, 2.49999]),
    ],
    np.float32,
)


@pytest.mark.needs_cc
@pytest.mark.parametrize(("parts", "scale"), [([2, 3], 0.5), ([7, 7], 1.0), ([1, 1], 1.25)])
def test_regions_agree_with_onnxruntime(
    node_model: NodeModel,
    run_onnxruntime: Callable[..., list[Array]],
    random_array: Random,
    parts: list[int],
    scale: float,
) -> None:
    """Parts that lie outside of the image are 0."""
    inputs = {"x": random_array(1, 2, 3, 8, 9), "regions": REGIONS}
    model = node_model("MaxRoiPool", inputs, opset=17, pooled_shape=parts, spatial_scale=scale)
    (wanted,) = run_onnxruntime(model, inputs)
    graph = import_onnx(model)
    for version in (graph, optimise(graph)[0]):
        (found,) = evaluate(version, inputs, dtype=None).values()
        np.testing.assert_array_equal(found, wanted)
    if parts == [2, 3]:
        (found,) = compile(graph, cache=False).run(inputs).values()
        np.testing.assert_array_equal(found, wanted)


def test_half_precision_takes_the_same_elements(
    node_model: NodeModel, random_array: Random
) -> None:
    x, results = random_array(1, 2, 3, 8, 9).astype(np.float16), []
    for dtype in (np.float16, np.float64):
        inputs = {"x": x.astype(dtype), "regions": REGIONS[:4].astype(dtype)}
        model = node_model("MaxRoiPool", inputs, opset=22, pooled_shape=[2, 2])
        (found,) = evaluate(import_onnx(model), inputs, dtype=None).values()
        assert found.dtype == dtype
        results.append(found.astype(np.float64))
    np.testing.assert_array_equal(*results)


def test_what_does_not_fit_is_refused(node_model: NodeModel) -> None:
    spans = [TensorType("int32", (3, 2))] * 4
    x, regions = TensorType("float32", (1, 2, 4, 4)), TensorType("float32", (3, 5))
    with pytest.raises(ModelError) as caught:
        MaxRoiPool(2, 2).infer((x, regions, *spans[:3], TensorType("int32", (3, 1))))
    assert str(caught.value) == (
        "ModelError: MaxRoiPool: expected images, regions and parts of them, got "
        "float32[1, 2, 4, 4], float32[3, 5], int32[3, 2], int32[3, 2], int32[3, 2], int32[3, 1]. "
        "[roi-parts]"
    )
    with pytest.raises(ModelError) as caught:
        MaxRoiPool(2, 2).infer((TensorType("float32", (1, 2, 0, 4)), regions, *spans))
    assert str(caught.value) == (
        "ModelError: MaxRoiPool: float32[1, 2, 0, 4] has no elements to pool. [roi-empty]"
    )
    image, boxes = np.zeros((1, 1, 4, 4), np.float32), np.zeros((2, 4), np.float32)
    with pytest.raises(ModelError) as caught:
        import_onnx(node_model("MaxRoiPool", {"x": image, "r": boxes}, pooled_shape=[2, 2]))
    assert str(caught.value) == (
        "ModelError: model: node 'the_node' (MaxRoiPool) has pooled_shape [2, 2] and regions "
        "float32[2, 4]; expected two sizes, and five numbers for each region. [onnx-roi-pool]"
    )
    inputs = {"x": image[0], "r": np.zeros((2, 5), np.float32)}
    with pytest.raises(ModelError) as caught:
        import_onnx(node_model("MaxRoiPool", inputs, pooled_shape=[2, 2]))
    assert str(caught.value) == (
        "ModelError: model: node 'the_node' (MaxRoiPool) makes [2, 2] parts of regions of "
        "float32[1, 4, 4]; expected at least one along each axis, and images of [N, C, H, W]. "
        "[onnx-roi-images]"
    )
