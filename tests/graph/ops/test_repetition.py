"""Expand and Tile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.repetition import Expand, Tile
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize("shape", [[3, 4], [2, 3, 1], [1], [5, 1, 1, 1]])
def test_expand_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, shape: list[int]
) -> None:
    inputs = {"x": random_array(1, 3, 1), "shape": np.array(shape)}
    check_node("Expand", inputs, constants=("shape",))


@pytest.mark.parametrize("repeats", [[1, 2, 3], [2, 1, 1], [0, 1, 1]])
def test_tile_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, repeats: list[int]
) -> None:
    inputs = {"x": random_array(1, 2, 3, 4), "repeats": np.array(repeats)}
    check_node("Tile", inputs, constants=("repeats",))


@pytest.mark.needs_cc
@pytest.mark.parametrize("op", [Expand((4, 1, 70)), Expand((2, 3, 1)), Tile((3, 2)), Tile((1, 4))])
def test_kernels_do_what_the_reference_does(
    check_kernel: Callable[..., None], random_array: Random, op: Operator
) -> None:
    check_kernel(op, random_array(1, 3, 70 if isinstance(op, Tile) else 1))


def test_what_does_not_fit_is_refused() -> None:
    x = TensorType("float32", (3, 4))
    with pytest.raises(ModelError) as caught:
        Tile((1, -1)).infer((x,))
    assert str(caught.value) == (
        "ModelError: Tile: expected a count of 0 or more for each axis of float32[3, 4], got "
        "(1, -1). [tile-repeats]"
    )
    with pytest.raises(ModelError, match="shapes do not broadcast"):
        Expand((2, 4)).infer((x,))
