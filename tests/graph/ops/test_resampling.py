"""Resize by tables: cubic, antialiased, cropped, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.resampling import Resample
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]
EMPTY = np.zeros(0, np.float32)
COORDINATES = ("half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def resized(x: Array, *, engine: bool = False, **given: object) -> None:
    """Compare a Resize with the reference. given: its other inputs, and its attributes."""
    names = ("roi", "scales", "sizes")
    inputs = {"x": x, **{name: np.asarray(given.pop(name, EMPTY)) for name in names}}
    if inputs["sizes"].size == 0:
        del inputs["sizes"]
    tables = tuple(name for name in names if name in inputs)
    agree("Resize", inputs, opset=19, constants=tables, engine=engine, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("sizes", [[1, 2, 7, 9], [1, 2, 2, 3]])
@pytest.mark.parametrize("exclude", [0, 1])
def test_cubic_sizes_agree_with_the_reference(
    random_array: Random, coordinates: str, sizes: list[int], exclude: int
) -> None:
    resized(
        random_array(1, 1, 2, 4, 5),
        sizes=np.array(sizes),
        mode="cubic",
        coordinate_transformation_mode=coordinates,
        exclude_outside=exclude,
        cubic_coeff_a=-0.5,
    )


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scale", [0.6, 0.37, 1.5])
def test_antialiased_scales_agree_with_the_reference(
    random_array: Random, mode: str, scale: float
) -> None:
    scales = np.array([1, 1, scale, 0.5], np.float32)
    x = random_array(1, 1, 2, 9, 8)
    resized(x, scales=scales, mode=mode, antialias=1, engine=True)
    resized(x, scales=scales, mode=mode, antialias=1, exclude_outside=1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crops_agree_with_the_reference(random_array: Random, mode: str) -> None:
    x = random_array(1, 1, 1, 5, 6)
    resized(
        x,
        sizes=np.array([4, 3]),
        roi=np.array([0.25, -0.25, 0.75, 1.25], np.float32),
        axes=[2, 3],
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.5,
    )
    resized(
        x,
        sizes=np.array([1, 1, 1, 6]),
        roi=np.array([0, 0, 0.5, 1, 1, 1, 0.75, 0], np.float32),
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
    )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_integers_are_rounded(mode: str) -> None:
    x = np.arange(32, dtype=np.int8).reshape(1, 1, 4, 8) * 4 - 60
    resized(x, sizes=np.array([1, 1, 7, 5]), mode=mode)


@pytest.mark.needs_cc
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None], random_array: Random, axis: int
) -> None:
    starts = np.array([0, 1, 1, 0, 2])
    check_kernel(Resample(axis), random_array(1, 4, 4, 4), starts, random_array(2, 5, 3))


def test_what_does_not_fit_is_refused(refused_node: Callable[..., str]) -> None:
    types = (
        TensorType("float32", (3, 4)),
        TensorType("int64", (2,)),
        TensorType("float32", (3, 2)),
    )
    with pytest.raises(ModelError) as caught:
        Resample(0).infer(types)
    assert str(caught.value) == (
        "ModelError: Resample: int64[2], float32[3, 2] are no starts and weights for axis 0 of "
        "float32[3, 4]. [resample-tables]"
    )
    inputs = {
        "x": np.zeros((1, 4), np.float32),
        "roi": np.zeros(3, np.float32),
        "scales": np.ones(2, np.float32),
    }
    text = refused_node(
        "Resize",
        inputs,
        constants=("roi", "scales"),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    assert text == (
        "ModelError: model: node 'the_node' (Resize) crops by float32[3]; expected 4 finite "
        "numbers. [onnx-resize-roi]"
    )
