"""Rules of the operators that take a part of a tensor or surround it: Slice, Split, Pad,
CenterCropPad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from .....tir.sizes import AnySize, closed, greatest, is_closed, least
from ....errors import ModelError
from ....ops import slicing
from ....ops.base import normal_axis
from ....ops.movement import Identity
from ....types import Shape
from ..node import NodeReader, NotSupported
from .rule import MOVES, Application, ImportRule, Result, Several

MODES: dict[str, slicing.PadMode] = {mode: mode for mode in get_args(slicing.PadMode)}


@dataclass(frozen=True, slots=True)
class AxisWalk:
    """The places start, start + step, ... of an axis, `size` of them."""

    start: AnySize
    size: AnySize
    step: int = 1

    @staticmethod
    def along(places: range) -> AxisWalk:
        """The places of a range."""
        return AxisWalk(places.start if len(places) else 0, len(places), places.step)


def part_of(value: str, shape: Shape, walks: Mapping[int, AxisWalk]) -> Application:
    """A Slice of `value` that goes `walks` along the axes that they name."""
    walked = [walks.get(axis, AxisWalk(0, size)) for axis, size in enumerate(shape)]
    if all(walk == AxisWalk(0, size) for walk, size in zip(walked, shape, strict=True)):
        return Identity(), (value,)
    starts, sizes = tuple(w.start for w in walked), tuple(w.size for w in walked)
    return slicing.Slice(starts, sizes, tuple(w.step for w in walked)), (value,)


def surrounded(
    node: NodeReader,
    value: str,
    before: Sequence[int],
    after: Sequence[int],
    mode: slicing.PadMode = "constant",
    element: float | int | bool = 0,
) -> Application:
    """`value` with elements around it, as slicing.Pad says; negative pads cut before others add."""
    shape = node.builder.types[value].shape
    sides = enumerate(zip(shape, before, after, strict=True))
    if any(min(0, first) + size + min(0, last) < 0 for _, (size, first, last) in sides):
        raise ModelError(
            f"model: {node.title} cuts {list(before)} and {list(after)} elements off the axes of "
            f"{node.builder.types[value]}; expected no more than there are.",
            code="onnx-pads-cut",
        )
    sides = enumerate(zip(shape, before, after, strict=True))
    kept = {
        d: AxisWalk(max(0, -first), size + min(0, last) - max(0, -first))
        for d, (size, first, last) in sides
    }
    op, inputs = part_of(value, shape, kept)
    first, last = (tuple(max(0, pad) for pad in side) for side in (before, after))
    if not any((*first, *last)):
        return op, inputs
    return slicing.Pad(first, last, mode, element), (add(node, (op, inputs)),)


def add(node: NodeReader, made: Application) -> str:
    """What was made, as a part of the node; the name of its value."""
    op, inputs = made
    return inputs[0] if isinstance(op, Identity) else node.emit(op, *inputs)


def distinct_axes(node: NodeReader, axes: Sequence[int], rank: int) -> list[int]:
    """The axes that a node names, counted from the front.

    Raises: ModelError for an axis named twice.
    """
    chosen = [normal_axis(Identity(), axis, rank) for axis in axes]
    if len(set(chosen)) != len(chosen):
        raise ModelError(
            f"model: {node.title} names an axis twice: {list(axes)}.", code="onnx-axes"
        )
    return chosen


def _slice(node: NodeReader) -> Result:
    shape = node.type(0).shape
    starts: Shape
    ends: Shape
    if node.version < 10:
        starts, ends = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes", tuple(range(len(starts)))), (1,) * len(starts)
    else:
        starts, ends = node.open_sizes(1), node.open_sizes(2)
        axes = node.sizes(3) if node.has(3) else tuple(range(len(starts)))
        steps = node.sizes(4) if node.has(4) else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ModelError(
            f"model: {node.title} has starts {list(starts)}, ends {list(ends)}, axes {list(axes)}, "
            f"steps {list(steps)}; expected as many of each and no step of 0.",
            code="onnx-slice",
        )
    chosen = distinct_axes(node, axes, len(shape))
    parts = zip(chosen, starts, ends, steps, strict=True)
    walks = {axis: _walk(start, end, step, shape[axis]) for axis, start, end, step in parts}
    return part_of(node.value(0), shape, walks)


def _walk(start: AnySize, end: AnySize, step: int, size: AnySize) -> AxisWalk:
    """What a slice from `start` to `end` takes of an axis. Raises: SizeError, NotSupported."""
    if is_closed((start, end, size)):
        places = slice(closed(start), closed(end), step).indices(closed(size))
        return AxisWalk.along(range(*places))
    if step < 0:
        raise NotSupported(f"it walks backwards over an axis of {size} elements")
    first, last = (greatest(0, least(_from_front(place, size), size)) for place in (start, end))
    return AxisWalk(first, -(greatest(0, last - first) * -1 // step), step)


def _from_front(place: AnySize, size: AnySize) -> AnySize:
    return place + size if place < 0 else place


def _split(node: NodeReader) -> Result:
    type_ = node.type(0)
    axis = normal_axis(Identity(), node.integer("axis", 0), type_.rank)
    extent = closed(type_.shape[axis])
    if node.given("split"):
        sizes = node.integers("split")
    elif node.has(1):
        sizes = node.sizes(1, 1 << 20)
    else:
        count = node.integer("num_outputs", len(node.proto.output))
        size = -(-extent // max(1, count))
        known = range(min(count, len(node.proto.output)))
        sizes = tuple(max(0, min(size, extent - n * size)) for n in known)
    if len(sizes) != len(node.proto.output) or min(sizes) < 0 or sum(sizes) != extent:
        raise ModelError(
            f"model: {node.title} splits axis {axis} of {type_} into {list(sizes)} for "
            f"{len(node.proto.output)} outputs; expected a size for each, {extent} together.",
            code="onnx-split",
        )
    ends = np.cumsum(sizes).tolist()
    walks = [AxisWalk(end - size, size) for end, size in zip(ends, sizes, strict=True)]
    return Several(tuple(part_of(node.value(0), type_.shape, {axis: w}) for w in walks))


def _pad(node: NodeReader) -> Result:
    type_ = node.type(0)
    mode = MODES.get(node.text("mode", "constant"))
    if mode is None:
        raise NotSupported(f"mode is '{node.text('mode', '')}'")
    pads = node.integers("pads") if node.version < 11 else node.sizes(1)
    axes: Sequence[int] = range(type_.rank)
    if node.has(3):
        axes = distinct_axes(node, node.sizes(3), type_.rank)
    if len(pads) != 2 * len(axes):
        raise ModelError(
            f"model: {node.title} has pads {list(pads)}; expected {2 * len(axes)} for {type_}.",
            code="onnx-pads",
        )
    before, after = [0] * type_.rank, [0] * type_.rank
    for n, axis in enumerate(axes):
        before[axis], after[axis] = pads[n], pads[n + len(axes)]
    if mode == "reflect" and any(
        max(first, last) > greatest(0, size - 1 + min(0, first) + min(0, last))
        for size, first, last in zip(type_.shape, before, after, strict=True)
        if max(first, last) > 0
    ):
        raise ModelError(
            f"model: {node.title} reflects {before} and {after} elements of {type_}; expected "
            "fewer than each axis has.",
            code="onnx-pads-reflect",
        )
    return surrounded(node, node.value(0), before, after, mode, _pad_value(node))


def _center_crop_pad(node: NodeReader) -> Result:
    """What is cut off or added at the end is one more, where it is an odd number."""
    shape = node.type(0).shape
    axes = distinct_axes(node, node.integers("axes", tuple(range(len(shape)))), len(shape))
    wanted = node.sizes(1)
    if len(wanted) != len(axes) or min((0, *wanted)) < 0:
        raise ModelError(
            f"model: {node.title} has shape {list(wanted)} for axes {axes}; expected a size for "
            "each.",
            code="onnx-center-shape",
        )
    before, after = [0] * len(shape), [0] * len(shape)
    for axis, size in zip(axes, wanted, strict=True):
        more = size - closed(shape[axis])
        less = abs(more) // 2
        sign = -1 if more < 0 else 1
        before[axis], after[axis] = sign * less, sign * (abs(more) - less)
    value = False if node.type(0).dtype == "bool" else 0
    return surrounded(node, node.value(0), before, after, "constant", value)


def _pad_value(node: NodeReader) -> float | int | bool:
    type_ = node.type(0)
    number: float | int | bool = False if type_.dtype == "bool" else 0
    if node.version < 11:
        value = node.real("value", 0.0)
        return value if type_.is_float else number
    if node.has(2):
        array = node.constant(2)
        if array.size != 1 or node.type(2).dtype != type_.dtype:
            raise ModelError(
                f"model: {node.title} pads {type_} with {node.type(2)}; expected one element of "
                "its type.",
                code="onnx-pad-value",
            )
        number = array.item()
    return number


RULES: dict[str, ImportRule] = {
    "CenterCropPad": ImportRule((18,), ("axes",), _center_crop_pad),
    "Pad": ImportRule((2, 11, 18, 19, *MOVES), ("mode", "pads", "value"), _pad),
    "Slice": ImportRule((1, 10, 11, *MOVES), ("axes", "ends", "starts"), _slice),
    "Split": ImportRule(
        (2, 11, 18, *MOVES), ("axis", "num_outputs", "split"), _split, outputs=None
    ),
}
