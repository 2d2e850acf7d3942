"""In which order the axes of an image get other numbers of elements."""

from __future__ import annotations

import pytest

from tilewright.graph.importers.onnx.rules.resampling import AxisPlaces, least_steps
from tilewright.graph.ops.resize import SAME


@pytest.mark.parametrize(
    ("sizes", "counts", "order"),
    [
        ((480, 640), (224, 224), (2, 3)),  # the last axis reads element by element: few are left
        ((224, 640), (448, 20), (3, 2)),
        ((224, 224), (448, 448), (3, 2)),
    ],
)
def test_the_order_of_axes_takes_the_fewest_steps(
    sizes: tuple[int, int], counts: tuple[int, int], order: tuple[int, int]
) -> None:
    pairs = zip((2, 3), sizes, counts, strict=True)
    axes = {axis: AxisPlaces(size, count, SAME) for axis, size, count in pairs}
    assert tuple(least_steps(axes, {2: 4, 3: 4}, 3)) == order
