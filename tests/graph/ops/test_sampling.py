"""GridSample and what it is made of, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree
from tilewright.graph.errors import ModelError
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.sampling import SampleAt
from tilewright.graph.types import Array, TensorType

Random = Callable[..., Array]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample_agrees_with_the_reference(
    random_array: Random, mode: str, outside: str, aligned: int
) -> None:
    x, grid = random_array(1, 2, 3, 5, 4), 1.3 * random_array(2, 2, 3, 6, 2)
    settings = {"mode": mode, "padding_mode": outside, "align_corners": aligned}
    agree("GridSample", {"x": x, "grid": grid}, opset=20, **settings)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_volumes_and_lines_are_sampled(random_array: Random, mode: str) -> None:
    volume, grid = random_array(1, 1, 2, 3, 4, 2), random_array(2, 1, 2, 3, 2, 3)
    agree("GridSample", {"x": volume, "grid": grid}, opset=22, mode=mode, align_corners=1)
    line, places = random_array(3, 2, 3, 7), random_array(4, 2, 5, 1)
    agree("GridSample", {"x": line, "grid": places}, opset=20, mode=mode)


def test_old_names_of_modes_are_known(
    check_node: Callable[..., object], random_array: Random
) -> None:
    inputs = {"x": random_array(1, 1, 2, 5, 4), "grid": random_array(2, 1, 3, 3, 2)}
    for mode in ("bilinear", "nearest", "bicubic"):
        check_node("GridSample", inputs, opset=16, mode=mode)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float64", "bool"])
def test_the_nearest_element_may_have_any_type(random_array: Random, dtype: str) -> None:
    x = (5 * np.abs(random_array(1, 1, 2, 4, 5))).astype(dtype)
    agree("GridSample", {"x": x, "grid": random_array(2, 1, 3, 3, 2)}, opset=20, mode="nearest")


def test_empty_batches_and_grids_give_empty_results(random_array: Random) -> None:
    for n, rows in ((0, 3), (2, 0)):
        op = SampleAt()
        arrays = (random_array(1, n, 2, 4, 5), random_array(2, n, rows, 3, 2))
        (y,) = op.reference(*arrays)
        assert y.shape == (n, 2, rows, 3)


def test_an_infinite_element_counts_only_where_it_is_read() -> None:
    x = np.full((1, 1, 1, 3), np.inf)
    (y,) = SampleAt().reference(x, np.array([[[[-3.0, 0.0], [1.0, 0.0]]]]))
    assert y[0, 0, 0, 0] == 0


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("mode", "outside", "centers"),
    [
        ("nearest", "zeros", False),
        ("linear", "zeros", False),
        ("linear", "border", True),
        ("linear", "reflection", False),
        ("cubic", "reflection", True),
        ("cubic", "border", False),
    ],
)
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None],
    random_array: Random,
    layout: str,
    mode: str,
    outside: str,
    centers: bool,
) -> None:
    x = random_array(1, 2, 3, 5, 6)
    if layout == "NHWC":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    op = SampleAt(mode, outside, centers, layout)  # type: ignore[arg-type]
    check_kernel(op, x, 4 * random_array(2, 2, 4, 3, 2))


X, PLACES = TensorType("float32", (1, 2, 4, 5)), TensorType("float32", (1, 3, 3, 2))
REFUSALS: list[tuple[Operator, tuple[TensorType, ...], str]] = [
    (
        SampleAt(),
        (X, TensorType("float32", (1, 3, 3, 3))),
        "SampleAt: expected data with spatial axes and places of [N, ..., axes], got "
        "float32[1, 2, 4, 5], float32[1, 3, 3, 3]. [sample-shape]",
    ),
    (
        SampleAt(),
        (X, TensorType("float64", (1, 3, 3, 2))),
        "SampleAt: expected data and places of one floating-point type, got float32[1, 2, 4, 5], "
        "float64[1, 3, 3, 2]. [sample-type]",
    ),
    (
        SampleAt(),
        (TensorType("float32", (1, 2, 0, 5)), PLACES),
        "SampleAt: float32[1, 2, 0, 5] has no elements to take float32[1, 2, 3, 3] from. "
        "[sample-empty]",
    ),
]


@pytest.mark.parametrize(("op", "types", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(
    op: Operator, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 2, 3, 4, 2)])
def test_affine_grids_agree_with_the_reference(
    random_array: Random, aligned: int, size: tuple[int, ...]
) -> None:
    n = len(size) - 2
    inputs = {"theta": random_array(1, size[0], n, n + 1), "size": np.array(size)}
    agree("AffineGrid", inputs, opset=20, constants=("size",), align_corners=aligned)


def test_a_map_that_does_not_fit_its_size_is_refused(refused_node: Callable[..., str]) -> None:
    inputs = {"theta": np.zeros((1, 2, 2), np.float32), "size": np.array([1, 1, 3, 3])}
    assert refused_node("AffineGrid", inputs, opset=20, constants=("size",)) == (
        "ModelError: model: node 'the_node' (AffineGrid) has theta float32[1, 2, 2] for size "
        "[1, 1, 3, 3]; expected [N, 2, 3] or [N, 3, 4] for [N, C, spatial...]. [onnx-affine-grid]"
    )


def test_a_grid_that_does_not_fit_its_data_is_refused(refused_node: Callable[..., str]) -> None:
    inputs = {"x": np.zeros((1, 1, 4, 4), np.float32), "grid": np.zeros((1, 2, 2, 3), np.float32)}
    assert refused_node("GridSample", inputs, opset=20) == (
        "ModelError: model: node 'the_node' (GridSample) has data float32[1, 1, 4, 4] and grid "
        "float32[1, 2, 2, 3]; expected [N, C, spatial...] and a grid of [N, spatial..., axes]. "
        "[onnx-grid]"
    )
