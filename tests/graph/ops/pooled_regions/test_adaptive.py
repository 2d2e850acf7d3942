"""AdaptiveRoiAlign, which is RoiAlign without a sampling_ratio, against ONNX's reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.pooled_regions.adaptive import AdaptiveRoiAlign
from tilewright.graph.ops.pooled_regions.spans import RoiBins, RoiPoints
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]
REGIONS = np.array(
    [
        *([0, 0, 7, 7], [-3, 2, 4, 9.5], [3, 3, 3, 3], [5, 1, 2, 6], [20, 20, 30, 30]),
        *([-30, -20, 40, 50.5], [0.2, 0.1, 6.4, 3.3]),
    ],
    np.float32,
)
IMAGES = np.array([0, 1, 1, 0, 1, 0, 1])
TYPES = (
    TensorType("float32", (1, 2, 4, 4)),
    TensorType("float32", (3, 4)),
    TensorType("int64", (3,)),
    *[TensorType("int32", (3, 2))] * 4,
)


@pytest.mark.sampled(4)
@pytest.mark.needs_cc
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("parts", "scale"), [((2, 3), 0.5), ((7, 7), 1.0), ((1, 1), 1.25)])
def test_regions_have_as_many_points_as_elements(
    random_array: Random, mode: str, coordinates: str, parts: tuple[int, int], scale: float
) -> None:
    agree(
        "RoiAlign",
        {"x": random_array(1, 2, 3, 8, 9), "regions": REGIONS, "images": IMAGES},
        opset=16,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        output_height=parts[0],
        output_width=parts[1],
        sampling_ratio=0,
        spatial_scale=scale,
        engine=parts == (2, 3),
    )


def test_no_regions_and_no_points_give_zeros(random_array: Random) -> None:
    x, none = random_array(1, 1, 2, 4, 4), np.zeros((0, 3), np.int32)
    arrays = (x, np.zeros((0, 4), np.float32), np.zeros(0, np.int64), none, none, none, none)
    assert AdaptiveRoiAlign(0, 0).reference(*arrays)[0].shape == (0, 2, 3, 3)
    first, many, most = RoiPoints(3, 4, 1.0, True).reference(np.zeros((0, 4), np.float32))
    assert (first.shape, many.shape, most) == ((0, 3), (0, 3), 0)


def test_no_part_has_more_points_than_the_bound(random_array: Random) -> None:
    """However large a region is."""
    for low, high in ((-1e9, 1e9), (-1e30, 1e30), (3, 1e5), (-np.inf, np.inf), (0, 9.1)):
        regions = np.array([[low, low, high, high]], np.float32)
        for op in (
            RoiPoints(4, 9, 1.0, True),
            RoiPoints(9, 9, 1.0, False),
            RoiBins(2, 9, 1.0, True),
        ):
            *_, most = op.reference(regions)
            assert 0 <= most <= op.bound


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        AdaptiveRoiAlign(2, 2).infer((*TYPES[:2], TensorType("int32", (3,)), *TYPES[3:]))
    assert str(caught.value) == (
        "ModelError: AdaptiveRoiAlign: expected images, regions and parts of them, got "
        "float32[1, 2, 4, 4], float32[3, 4], int32[3], int32[3, 2], int32[3, 2], int32[3, 2], "
        "int32[3, 2]. [roi-parts]"
    )
    with pytest.raises(ModelError) as caught:
        AdaptiveRoiAlign(2, 2).infer((TensorType("float32", (1, 2, 0, 4)), *TYPES[1:]))
    assert str(caught.value) == (
        "ModelError: AdaptiveRoiAlign: float32[1, 2, 0, 4] has no elements to pool. [roi-empty]"
    )
    with pytest.raises(ModelError) as caught:
        RoiBins(2, 4, 1.0, True).infer((TensorType("float32", (3, 3)),))
    assert str(caught.value) == (
        "ModelError: RoiBins: expected regions of four numbers each, got float32[3, 3]. [roi-spans]"
    )
