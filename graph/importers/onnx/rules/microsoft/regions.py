"""Rule of CropAndResize: regions of images, each brought to one size."""

from __future__ import annotations

import numpy as np

from ......tir.sizes import closed
from .....errors import ModelError
from .....ops import movement
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result
from .spelling import check_rank, number_like, whole_list

_SAMPLING = {"bilinear": "linear", "nearest": "nearest"}  # what ONNX calls the modes


def _crop_and_resize(node: NodeReader) -> Result:
    """Samples in even steps from corner to corner of each region, which is [y1, x1, y2, x2] in
    parts of the image; `extrapolation_value` outside of it.
    """
    mode, size = node.text("mode", "bilinear"), node.sizes(3, 2)
    if mode not in _SAMPLING:
        raise NotSupported(f"mode is '{mode}'; known are {', '.join(_SAMPLING)}")
    check_rank(node, node.value(0), 4)
    if node.type(1).shape[1:] != (4,) or len(size) != 2 or min(size) < 1:
        raise ModelError(
            f"model: {node.title} has regions {node.type(1)} and crop_size {list(size)}; expected "
            "four numbers for each region, and two sizes.",
            code="onnx-crop",
        )
    sides = node.spell_all("Split", 4, node.value(1), axis=1, num_outputs=4)
    extents = node.type(0).shape[2:]
    places = [
        _places(node, sides[n], sides[n + 2], size[n], closed(extents[n]), mode == "nearest")
        for n in range(2)
    ]
    one, two = (number_like(node, sides[0], value) for value in (1.0, 2.0))
    whole = whole_list(node, (1, *size))
    grids = []
    for axis, place in enumerate(places):
        apart = node.spell("Unsqueeze", place, whole_list(node, (2 - axis,)))
        full = node.spell("Expand", apart, whole)
        scaled = node.spell("Sub", node.spell("Mul", full, two), one)
        grids.append((full, node.spell("Unsqueeze", scaled, whole_list(node, (3,)))))
    grid = node.spell("Concat", grids[1][1], grids[0][1], axis=3)
    images = node.spell("Gather", node.value(0), node.value(2), axis=0)
    y = node.spell(
        "GridSample", images, grid, mode=_SAMPLING[mode], padding_mode="border", align_corners=1
    )
    zero = number_like(node, sides[0], 0.0)
    outside = [
        node.spell("Or", node.spell("Less", full, zero), node.spell("Greater", full, one))
        for full, _ in grids
    ]
    hidden = node.spell("Unsqueeze", node.spell("Or", *outside), whole_list(node, (1,)))
    other = number_like(node, y, node.real("extrapolation_value", 0.0))
    return movement.Identity(), (node.spell("Where", hidden, other, y),)


def _places(node: NodeReader, start: str, end: str, count: int, pixels: int, whole: bool) -> str:
    """[regions, count] places from `start` to `end`, in parts of an axis; the middle, where there
    is one. whole: at the nearest pixel.
    """
    steps = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
    kind = node.builder.types[start].dtype
    row = node.table("steps", steps.astype(kind).reshape(1, count))
    places = node.spell("Add", start, node.spell("Mul", node.spell("Sub", end, start), row))
    if not whole:
        return places
    last = number_like(node, start, max(pixels - 1, 1))
    shifted = node.spell("Add", node.spell("Mul", places, last), number_like(node, start, 0.5))
    return node.spell("Div", node.spell("Floor", shifted), last)


RULES: dict[str, ImportRule] = {
    "com.microsoft.CropAndResize": ImportRule(
        (1,), ("extrapolation_value", "mode"), _crop_and_resize
    ),
}
