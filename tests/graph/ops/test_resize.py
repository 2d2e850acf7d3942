"""Resize, in the coordinate systems of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.resize import SAME, Places, Resize, Stretch, StretchCoordinates
from tilewright.graph.types import Array, TensorType
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.te import te

Check = Callable[..., object]
Random = Callable[..., Array]

COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "half_pixel_symmetric",
)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    ("mode", "nearest"),
    [
        ("linear", "floor"),
        ("nearest", "floor"),
        ("nearest", "ceil"),
        ("nearest", "round_prefer_floor"),
        ("nearest", "round_prefer_ceil"),
    ],
)
@pytest.mark.parametrize("sizes", [[1, 1, 7, 6], [1, 1, 2, 1]])
def test_resize_to_sizes_agrees_with_onnxruntime(
    check_node: Check,
    random_array: Random,
    coordinates: str,
    mode: str,
    nearest: str,
    sizes: list[int],
) -> None:
    empty = np.zeros(0, dtype=np.float32)
    x = random_array(1, 1, 1, 4, 4)
    inputs = {"x": x, "roi": empty, "scales": empty, "sizes": np.array(sizes)}
    names = tuple(inputs)[1:]
    settings = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        settings["nearest_mode"] = nearest
    check_node("Resize", inputs, constants=names, opset=19, **settings)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("scale", [2.0, 0.75, 1.5])
def test_resize_by_scales_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, mode: str, scale: float
) -> None:
    scales = np.array([1, 1, scale, 2], dtype=np.float32)
    x = random_array(1, 1, 2, 4, 5)
    inputs = {"x": x, "roi": np.zeros(0, dtype=np.float32), "scales": scales}
    names = ("roi", "scales")
    check_node("Resize", inputs, constants=names, opset=13, mode=mode)
    if scale > 1:  # opset 10 leaves open which element is the nearest one; ours is the one before
        check_node("Resize", {"x": x, "scales": scales}, constants=("scales",), opset=10, mode=mode)
    check_node("Upsample", {"x": x}, opset=7, mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    whole = np.array([1, 1, 2, 2], dtype=np.float32)
    check_node("Upsample", {"x": x, "scales": whole}, constants=("scales",), opset=9, mode=mode)


TWICE = Places(2, -1, 4)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "op",
    [
        Resize((2, 8, 40), (SAME, TWICE, TWICE), "linear"),
        Resize((2, 8, 20), (SAME, TWICE, SAME), "linear"),
        Resize((2, 4, 40), (SAME, SAME, Places(1, 0, 2)), "floor"),
        Resize((2, 3, 30), (SAME, Places(4, 1, 2), Places(2, 0, 3)), "round_prefer_ceil"),
        Resize((2, 7, 33), (SAME, Stretch("half_pixel"), Stretch("align_corners")), "linear"),
        Resize((2, 1, 7), (SAME, Stretch("pytorch_half_pixel"), Stretch("asymmetric")), "ceil"),
    ],
)
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None], random_array: Random, op: Operator
) -> None:
    check_kernel(op, random_array(1, 2, 4, 20))


@pytest.mark.parametrize("coordinates", get_args(StretchCoordinates))
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 12])
def test_the_places_of_a_stretch_are_those_that_its_formula_gives(
    coordinates: StretchCoordinates, size: int, count: int
) -> None:
    scale, stretch = Fraction(count, size), Stretch(coordinates)
    wanted: list[Fraction] = []
    for i in range(count):
        match coordinates:
            case "asymmetric":
                wanted.append(i / scale)
            case "align_corners":
                wanted.append(Fraction(i * (size - 1), count - 1) if count > 1 else Fraction(0))
            case "pytorch_half_pixel" if count == 1:
                wanted.append(Fraction(0))
            case _:
                wanted.append((i + Fraction(1, 2)) / scale - Fraction(1, 2))
    places = stretch.places(size, count)
    found = [Fraction(places.slope * i + places.offset, places.divisor) for i in range(count)]
    assert found == wanted
    numbers = (te.const(number, "int64") for number in (size, count))
    i = te.Var("i")
    values = [evaluate_expr(e, {i: np.arange(count)}, {}) for e in stretch.at(i, *numbers)]
    position, divisor = (np.broadcast_to(value, (count,)) for value in values)
    assert [Fraction(int(a), int(b)) for a, b in zip(position, divisor, strict=True)] == wanted


T = TensorType("float32", (3, 4))
REFUSALS: list[tuple[Operator, TensorType, str]] = [
    (
        Resize((6,), (SAME,), "floor"),
        T,
        "Resize: expected a size and places for each axis of float32[3, 4], got sizes (6,). "
        "[resize-rank]",
    ),
    (
        Resize((6, 4), (Places(1, 0, 2), SAME), "linear"),
        TensorType("int64", (3, 4)),
        "Resize: expected float16, bfloat16, float32 or float64, got int64. [op-float]",
    ),
    (
        Resize((6, 4), (SAME, SAME), "floor"),
        TensorType("float32", (0, 4)),
        "Resize: float32[0, 4] has no elements to make (6, 4) of. [resize-empty]",
    ),
]


@pytest.mark.parametrize(("op", "type_", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(op: Operator, type_: TensorType, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer((type_,))
    assert str(caught.value) == f"ModelError: {text}"
