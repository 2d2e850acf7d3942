"""Rules of the operators that pool over regions of images: RoiAlign."""

from __future__ import annotations

from ....ops.functions import Cast
from ....ops.region_pooling import RoiAlign
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result

_MODES = ("avg", "max")
_COORDINATES = ("half_pixel", "output_half_pixel")


def _roi_align(node: NodeReader) -> Result:
    default = _COORDINATES[0] if node.version >= 16 else _COORDINATES[1]
    mode = node.text("mode", "avg").lower()
    coordinates = node.text("coordinate_transformation_mode", default).lower()
    samples = node.integer("sampling_ratio", 0)
    if mode not in _MODES or coordinates not in _COORDINATES:
        raise NotSupported(f"mode is '{mode}', coordinate_transformation_mode is '{coordinates}'")
    if samples < 1:
        raise NotSupported(
            "sampling_ratio is 0: the size of each region decides how many points it has",
            "export it with a sampling_ratio, 2 as a rule.",
        )
    op = RoiAlign(
        node.integer("output_height", 1),
        node.integer("output_width", 1),
        samples,
        node.real("spatial_scale", 1.0),
        coordinates == "half_pixel",
        mode == "max",
    )
    images = node.value(2)
    if node.type(2).dtype == "int32":
        images = node.emit(Cast("int64"), images)
    return op, (*node.inputs[:2], images)


RULES: dict[str, ImportRule] = {
    "RoiAlign": ImportRule(
        (10, 16, 22),
        (
            "coordinate_transformation_mode",
            "mode",
            "output_height",
            "output_width",
            "sampling_ratio",
            "spatial_scale",
        ),
        _roi_align,
    ),
}
