"""Rules of Resize and of its older form Upsample: scales and sizes become exact places."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

from .....tir.sizes import (
    AnySize,
    at_most,
    closed,
    exact_quotient,
    is_closed,
    largest,
    quotient,
)
from ....errors import ModelError
from ....ops.functions import Cast, Round
from ....ops.resize import SAME, Places, Resize, Sampling, Stretch, StretchCoordinates
from ...limits import checked_type
from ..node import NodeReader, NotSupported
from .resampling import AxisPlaces, ResizeKernel, cropped, picked, regions, resampled
from .rule import ImportRule, Result
from .slicing import distinct_axes

Sizes = dict[int, AnySize]  # of axes
Scales = dict[int, Fraction | None]  # None: a run decides it, so that sizes alone say what it is
STRETCHES: dict[str, StretchCoordinates] = {kind: kind for kind in get_args(StretchCoordinates)}
_LARGEST_PLACE = 1 << 61  # twice a place, and a divisor more, are computed in 64 bits
SAMPLINGS: dict[str, Sampling] = {sampling: sampling for sampling in get_args(Sampling)}


def _resize(node: NodeReader) -> Result:
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    old = node.version < 11
    shape = node.type(0).shape
    axes = list(range(len(shape)))
    if node.given("axes"):
        axes = distinct_axes(node, node.integers("axes"), len(shape))
    scales: Scales = {}
    position = 1 if old else 2
    if node.has(3):
        given = node.open_sizes(3)
        _check_count(node, len(given), len(axes))
        sizes, scales = _fitted(node, dict(zip(axes, given, strict=True)))
    else:
        known = dict(zip(axes, _scales(node, position, len(axes)), strict=True))
        sizes = {d: _scaled(shape[d], scale) for d, scale in known.items()}
        scales = {**known}
    coordinates = "asymmetric" if old else coordinates
    nearest = "floor" if old else node.text("nearest_mode", "round_prefer_floor")
    return _resized(node, sizes, scales, coordinates, nearest)


def _scaled(size: AnySize, scale: Fraction) -> AnySize:
    """So many times a size, rounded down."""
    return quotient(size * scale.numerator, scale.denominator)


def _ratio(size: AnySize, to: AnySize) -> Fraction | None:
    """One size over another; None where that is no number for all runs."""
    whole, part = exact_quotient(size, to), exact_quotient(to, size)
    if isinstance(size, int) and isinstance(to, int):
        return Fraction(size, max(1, to))
    if isinstance(whole, int):
        return Fraction(whole)
    return Fraction(1, part) if isinstance(part, int) else None


def _fitted(node: NodeReader, sizes: dict[int, AnySize]) -> tuple[Sizes, Scales]:
    """Sizes and scales of the axes; one scale for all where the model keeps the aspect ratio."""
    shape = node.type(0).shape
    scales = {d: _ratio(size, shape[d]) for d, size in sizes.items()}
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or not scales:
        return sizes, scales
    if policy not in ("not_larger", "not_smaller"):
        raise NotSupported(f"keep_aspect_ratio_policy is '{policy}'")
    known = [scale for scale in scales.values() if scale is not None]
    if len(known) < len(scales):
        raise NotSupported("one scale is kept for axes whose scales a run decides")
    scale = (min if policy == "not_larger" else max)(known)
    half = Fraction(1, 2)
    fitted = {d: math.floor(closed(shape[d]) * scale + half) for d in sizes}
    return dict(fitted), dict.fromkeys(sizes, scale)


def _upsample(node: NodeReader) -> Result:
    shape = node.type(0).shape
    if node.version < 9:
        factors = [_fraction(node, scale) for scale in node.reals("scales")]
        _check_count(node, len(factors), len(shape))
    else:
        factors = _scales(node, 1, len(shape))
    sizes = {d: _scaled(size, factors[d]) for d, size in enumerate(shape)}
    return _resized(node, sizes, dict(enumerate(factors)), "asymmetric", "floor")


def _scales(node: NodeReader, position: int, count: int) -> list[Fraction]:
    array = node.constant(position, 64)
    if array.ndim != 1 or array.dtype.kind != "f":
        raise ModelError(
            f"model: input '{node.value(position)}' of {node.title} is {node.type(position)}; "
            "expected a list of scales.",
            code="onnx-scales",
        )
    _check_count(node, array.size, count)
    return [_fraction(node, float(scale)) for scale in array]


def _fraction(node: NodeReader, scale: float) -> Fraction:
    if not math.isfinite(scale) or scale <= 0:
        raise ModelError(
            f"model: {node.title} has scale {scale}; expected positive numbers.",
            code="onnx-scale",
        )
    return Fraction(scale)


def _check_count(node: NodeReader, got: int, expected: int) -> None:
    if got != expected:
        raise ModelError(
            f"model: {node.title} has {got} scales or sizes; expected {expected}.",
            code="onnx-resize-count",
        )


def _resized(
    node: NodeReader,
    sizes: Sizes,
    scales: Scales,
    coordinates: str,
    nearest: str,
) -> Result:
    type_, given = node.type(0), node.type(0).shape
    mode = node.text("mode", "nearest")
    sampling = SAMPLINGS.get(nearest if mode == "nearest" else "linear")
    if mode not in ("nearest", "linear", "cubic") or sampling is None:
        raise NotSupported(f"mode is '{mode}', nearest_mode is '{nearest}'")
    shape = tuple(sizes.get(d, size) for d, size in enumerate(given))
    for axis in range(type_.rank):  # axis by axis, as it is computed
        between = (*shape[: axis + 1], *type_.shape[axis + 1 :])
        checked_type(f"the result of {node.title}", type_.dtype, between, node.tensors.limits)
    parts = regions(node, list(scales)) if coordinates == "tf_crop_and_resize" else {}
    places = tuple(
        SAME
        if d not in scales
        else cropped(size, shape[d], _known(scales[d]), parts[d])
        if parts
        else _places(size, shape[d], scales[d], coordinates)
        for d, size in enumerate(given)
    )
    narrow = not node.flag("antialias") or mode == "nearest"
    if mode == "cubic" or parts or not narrow:
        axes = [d for d in scales if places[d] != SAME or shape[d] != given[d]]
        moved = {d: _closed_axis(given[d], shape[d], places[d]) for d in axes}
        outside = {d: axis.outside() for d, axis in moved.items() if parts}
        if mode == "nearest":
            return picked(node, {d: a.nearest(sampling) for d, a in moved.items()}, outside)
        cubic = node.real("cubic_coeff_a", -0.75) if mode == "cubic" else None
        inside = node.flag("exclude_outside")
        kernels = {
            d: ResizeKernel(cubic, 1 if narrow else _known(scales[d]), inside) for d in moved
        }
        return resampled(node, moved, kernels, outside)
    for size, extent, place in zip(given, shape, places, strict=True):
        if _largest_place(place, largest(size), largest(extent)) > _LARGEST_PLACE:
            raise ModelError(
                f"model: {node.title} takes {type_} to {list(shape)} by fractions that no 64-bit "
                "integer holds; expected simpler scales.",
                code="onnx-resize-places",
            )
    if mode == "linear" and not type_.is_float:
        value = node.emit(Cast("float32"), node.value(0))
        value = node.emit(Round(), node.emit(Resize(shape, places, sampling), value))
        return Cast(type_.dtype), (value,)
    return Resize(shape, places, sampling), node.inputs[:1]


def _known(scale: Fraction | None) -> Fraction:
    if scale is None:
        raise NotSupported("a run decides its scale")
    return scale


def _closed_axis(size: AnySize, count: AnySize, places: Places | Stretch) -> AxisPlaces:
    """An axis of known sizes. Raises: SizeError where a run decides one."""
    whole, made = closed(size), closed(count)
    return AxisPlaces(
        whole, made, places.places(whole, made) if isinstance(places, Stretch) else places
    )


def _largest_place(places: Places | Stretch, size: int, count: int) -> int:
    """A number that nothing exceeds that is computed for the places of an axis."""
    if isinstance(places, Stretch):
        return 4 * (size + 1) * (count + 1)
    return abs(places.slope) * count + abs(places.offset) + places.divisor


def _stretch(
    size: AnySize, count: AnySize, scale: Fraction | None, coordinates: str
) -> Stretch | None:
    """The places of an axis that sizes alone tell, where a run decides them; else None."""
    if scale is not None:
        exact = scale.denominator == 1 and not (is_closed((size, count)))
        few = coordinates == "pytorch_half_pixel" and at_most(count, 1) is None
        if not exact or not (few or coordinates == "align_corners"):
            return None
    kind = "half_pixel" if coordinates == "half_pixel_symmetric" else coordinates
    if kind not in STRETCHES:
        raise NotSupported(f"coordinate_transformation_mode is '{coordinates}'")
    return Stretch(STRETCHES[kind])


def _places(
    size: AnySize, count: AnySize, scale: Fraction | None, coordinates: str
) -> Places | Stretch:
    """Where the `count` elements of an axis of `size` are taken from, `scale` times as many."""
    if scale == 1 and count == size:
        return SAME
    stretch = _stretch(size, count, scale, coordinates)
    if stretch is not None or scale is None:
        assert stretch is not None
        return stretch
    step = 1 / scale
    match coordinates:
        case "asymmetric":
            start = Fraction(0)
        case "pytorch_half_pixel" if count <= 1:
            step, start = Fraction(0), Fraction(0)
        case "half_pixel" | "pytorch_half_pixel":
            start = step / 2 - Fraction(1, 2)
        case "half_pixel_symmetric":
            start = step / 2 - Fraction(1, 2)
            if scale.denominator != 1 or count != size * scale.numerator:
                start += (closed(size) - closed(count) / scale) / 2  # what is cut off
        case "align_corners":
            long = closed(count) > 1
            step = (closed(size) - 1) / (scale * closed(size) - 1) if long else Fraction(0)
            start = Fraction(0)
        case _:
            raise NotSupported(f"coordinate_transformation_mode is '{coordinates}'")
    divisor = math.lcm(step.denominator, start.denominator)
    return Places(int(step * divisor), int(start * divisor), divisor)


RULES: dict[str, ImportRule] = {
    "Resize": ImportRule(
        (10, 11, 13, 18, 19),
        (
            "antialias",
            "axes",
            "coordinate_transformation_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
            "keep_aspect_ratio_policy",
            "mode",
            "nearest_mode",
        ),
        _resize,
    ),
    "Upsample": ImportRule((7, 9), ("mode", "scales"), _upsample),
}
