"""Rules of the operators that pool over regions of images: RoiAlign, MaxRoiPool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....tir.sizes import AnySize, closed_shape
from ....errors import ModelError
from ....ir.ir import GraphNode
from ....ops.base import Operator
from ....ops.functions import Cast
from ....ops.pooled_regions.adaptive import AdaptiveRoiAlign
from ....ops.pooled_regions.max_roi_pool import MaxRoiPool
from ....ops.pooled_regions.roi_align import RoiAlign
from ....ops.pooled_regions.spans import RoiBins, RoiPoints
from ..node import NodeReader, NotSupported, node_name
from .data_sizes import data_size
from .rule import ImportRule, Result

_USUAL = 2  # elements or points of a part along an axis
_STORED = ("float16", "bfloat16")
_MODES = ("avg", "max")
_COORDINATES = ("half_pixel", "output_half_pixel")


def _roi_align(node: NodeReader) -> Result:
    default = _COORDINATES[0] if node.version >= 16 else _COORDINATES[1]
    mode = node.text("mode", "avg").lower()
    coordinates = node.text("coordinate_transformation_mode", default).lower()
    samples = node.integer("sampling_ratio", 0)
    if mode not in _MODES or coordinates not in _COORDINATES:
        raise NotSupported(f"mode is '{mode}', coordinate_transformation_mode is '{coordinates}'")
    parts = node.integer("output_height", 1), node.integer("output_width", 1)
    scale, aligned, largest = (
        node.real("spatial_scale", 1.0),
        coordinates == "half_pixel",
        mode == "max",
    )
    images = node.value(2)
    if node.type(2).dtype == "int32":
        images = node.emit(Cast("int64"), images)
    if samples > 0:
        op = RoiAlign(*parts, samples, scale, aligned, largest)
        return op, (*node.inputs[:2], images)
    x, regions = _widened(node)
    spans = [
        _spans(node, RoiPoints(parts[n], size, scale, not n, aligned), regions)
        for n, size in enumerate(_sizes(node, parts))
    ]
    adaptive = AdaptiveRoiAlign(spans[0].most, spans[1].most, scale, aligned, largest)
    inputs = (x, regions, images, *spans[0].values, *spans[1].values)
    return _rounded(node, adaptive, inputs)


@dataclass(frozen=True, slots=True)
class _Spans:
    """Where the parts of regions begin along an axis and how many elements or points they take; the
    most of these.
    """

    values: tuple[str, ...]
    most: AnySize


def _max_roi_pool(node: NodeReader) -> Result:
    parts = node.integers("pooled_shape")
    if len(parts) != 2 or min(parts) < 1 or node.type(1).shape[1:] != (5,):
        raise ModelError(
            f"model: {node.title} has pooled_shape {list(parts)} and regions {node.type(1)}; "
            "expected two sizes, and five numbers for each region.",
            code="onnx-roi-pool",
        )
    scale = node.real("spatial_scale", 1.0)
    x, regions = _widened(node)
    spans = [
        _spans(node, RoiBins(parts[n], size, scale, not n), regions)
        for n, size in enumerate(_sizes(node, parts))
    ]
    inputs = (x, regions, *spans[0].values, *spans[1].values)
    return _rounded(node, MaxRoiPool(spans[0].most, spans[1].most), inputs)


def _sizes(node: NodeReader, parts: Sequence[int]) -> tuple[int, ...]:
    """Of the images, which have two spatial axes. Raises: ModelError, SizeError."""
    x = node.type(0)
    if x.rank != 4 or min(parts) < 1:
        raise ModelError(
            f"model: {node.title} makes {list(parts)} parts of regions of {x}; expected at least "
            "one along each axis, and images of [N, C, H, W].",
            code="onnx-roi-images",
        )
    return closed_shape(x.shape[2:])


def _widened(node: NodeReader) -> tuple[str, str]:
    """The images and regions: half precision is computed in float32."""
    if node.type(0).dtype not in _STORED:
        return node.value(0), node.value(1)
    x, regions = (node.emit(Cast("float32"), node.value(n)) for n in range(2))
    return x, regions


def _rounded(node: NodeReader, op: Operator, inputs: tuple[str, ...]) -> Result:
    kind = node.type(0).dtype
    return (Cast(kind), (node.emit(op, *inputs),)) if kind in _STORED else (op, inputs)


def _spans(node: NodeReader, op: RoiBins | RoiPoints, regions: str) -> _Spans:
    name = f"{node_name(node.proto)}.{'rows' if op.down else 'columns'}"
    first, many, most = (node.builder.fresh(f"{name}.{part}") for part in ("first", "many", "most"))
    node.define(GraphNode(op, (regions,), (first, many, most), node.proto.name))
    return _Spans((first, many), data_size(node, most, op.bound, usual=min(_USUAL, op.bound)))


RULES: dict[str, ImportRule] = {
    "MaxRoiPool": ImportRule((1, 22), ("pooled_shape", "spatial_scale"), _max_roi_pool),
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
