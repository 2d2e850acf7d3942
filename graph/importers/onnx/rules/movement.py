"""Rules of the operators that move data or name it anew; shapes given as values are read here."""

from __future__ import annotations

from collections.abc import Callable

from .....tir.sizes import AnySize, closed, exact_quotient, is_closed, largest, product_of
from ....errors import ModelError
from ....ops import movement, repetition, triangle
from ....ops.base import normal_axis
from ....types import Shape
from ..node import NodeReader, NotSupported
from .rule import MOVES, ImportRule, Result, Values
from .slicing import distinct_axes
from .variadic import concat


def _identity(node: NodeReader) -> Result:
    value = node.structured(0)
    return (movement.Identity(), (value,)) if isinstance(value, str) else Values((value,))


def _reshaped(node: NodeReader, shape: Shape) -> Result:
    return movement.Reshape(shape), node.inputs[:1]


def _reshape(node: NodeReader) -> Result:
    source, shape = node.type(0).shape, list(node.open_sizes(1))
    if not node.flag("allowzero"):
        shape = [
            source[d] if size == 0 and d < len(source) else size for d, size in enumerate(shape)
        ]
    if -1 in shape:
        known = product_of(size for size in shape if size != -1)
        left = exact_quotient(product_of(source), known) if known > 0 else None
        if shape.count(-1) > 1 or left is None:
            raise ModelError(
                f"model: {node.title} cannot fit {node.type(0)} into shape "
                f"{list(node.open_sizes(1))}.",
                code="onnx-reshape",
            )
        shape[shape.index(-1)] = left
    return _reshaped(node, tuple(shape))


def _flatten(node: NodeReader) -> Result:
    shape = node.type(0).shape
    axis = node.integer("axis", 1)
    if axis != len(shape):
        axis = normal_axis(movement.Identity(), axis, len(shape))
    return _reshaped(node, (product_of(shape[:axis]), product_of(shape[axis:])))


def named_axes(node: NodeReader, rank: int) -> set[int] | None:
    """The axes of a Squeeze or Unsqueeze, an attribute or an input; None when not given."""
    if node.given("axes"):
        axes = node.integers("axes")
    elif node.has(1):
        axes = _axes(node)
    else:
        return None
    return set(distinct_axes(node, axes, rank))


def _axes(node: NodeReader) -> tuple[int, ...]:
    """The second input; one number stands for a list of one, as in onnxruntime."""
    return (node.whole(1),) if node.type(1).rank == 0 else node.sizes(1)


def _unsqueeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    count = len(node.integers("axes")) if node.given("axes") else len(_axes(node))
    axes = named_axes(node, len(source) + count) or set()
    sizes = iter(source)
    return _reshaped(
        node, tuple(1 if d in axes else next(sizes) for d in range(len(source) + count))
    )


def _squeeze(node: NodeReader) -> Result:
    source = node.type(0).shape
    axes = named_axes(node, len(source))
    if axes is None:
        axes = {d for d, size in enumerate(source) if size == 1}
    if any(source[d] != 1 for d in axes):
        raise ModelError(
            f"model: {node.title} removes axes {sorted(axes)} of {node.type(0)}, which are not all "
            "of size 1.",
            code="onnx-squeeze",
        )
    return _reshaped(node, tuple(size for d, size in enumerate(source) if d not in axes))


def _transpose(node: NodeReader) -> Result:
    rank = node.type(0).rank
    return movement.Transpose(node.integers("perm", tuple(reversed(range(rank))))), node.inputs


def _depth_to_space(node: NodeReader) -> Result:
    """Channels become pixels of blocks: [n, c, h, w] -> [n, c / (b*b), h*b, w*b]."""
    n, b, channels, h, w = _blocks(node, 1)
    if node.text("mode", "DCR") == "DCR":
        split, order = (n, b, b, channels, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (n, channels, b, b, h, w), (0, 1, 4, 2, 5, 3)
    parts = node.emit(movement.Reshape(split), node.value(0))
    moved = node.emit(movement.Transpose(order), parts)
    return movement.Reshape((n, channels, h * b, w * b)), (moved,)


def _space_to_depth(node: NodeReader) -> Result:
    """Pixels of blocks become channels: [n, c, h*b, w*b] -> [n, b*b*c, h, w]."""
    n, b, channels, h, w = _blocks(node, -1)
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = node.emit(movement.Reshape((n, channels, h, b, w, b)), node.value(0))
    moved = node.emit(movement.Transpose(order), parts)
    return movement.Reshape((n, b * b * channels, h, w)), (moved,)


def _blocks(node: NodeReader, way: int) -> tuple[AnySize, int, int, AnySize, AnySize]:
    """Batch, side of a block, channels of a pixel, and blocks along height and width; way 1: blocks
    lie in the channels, -1: in the pixels.
    """
    type_, b = node.type(0), node.integer("blocksize")
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise NotSupported(f"mode is '{mode}'")
    cut = type_.shape[1:2] if way > 0 else type_.shape[2:]
    side = b * b if way > 0 else b
    if type_.rank != 4 or b < 1 or any(size % side for size in cut):
        raise ModelError(
            f"model: {node.title} cannot cut {type_} into blocks of {b} x {b}.", code="onnx-blocks"
        )
    n, channels, h, w = type_.shape
    c = closed(channels)
    return (n, b, c // (b * b), h, w) if way > 0 else (n, b, c, h // b, w // b)


def _expand(node: NodeReader) -> Result:
    return repetition.Expand(node.open_sizes(1)), node.inputs[:1]


def _tile(node: NodeReader) -> Result:
    """Counts that calls decide: an axis of one element in front of each, broadcast and joined."""
    counts, shape = node.open_sizes(1), node.type(0).shape
    if len(counts) != len(shape) or is_closed(counts):
        return repetition.Tile(node.sizes(1)), node.inputs[:1]
    apart = tuple(size for axis in shape for size in (1, axis))
    wanted = tuple(size for pair in zip(counts, shape, strict=True) for size in pair)
    split = node.emit(movement.Reshape(apart), node.value(0))
    repeated = node.emit(repetition.Expand(wanted), split)
    joined = tuple(count * size for count, size in zip(counts, shape, strict=True))
    return movement.Reshape(joined), (repeated,)


def _trilu(node: NodeReader) -> Result:
    """A diagonal outside of the matrix is the nearest one that is."""
    *_, rows, columns = map(largest, (1, 1, *node.type(0).shape))
    diagonal = node.whole(1) if node.has(1) else 0
    inside = max(-rows, min(diagonal, columns))
    return triangle.Trilu(node.integer("upper", 1) != 0, inside), node.inputs[:1]


def _running(kind: type[triangle.RunningTotal]) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        axis = normal_axis(movement.Identity(), node.whole(1), node.type(0).rank)
        return kind(axis, node.flag("exclusive"), node.flag("reverse")), node.inputs[:1]

    return build


RULES: dict[str, ImportRule] = {
    "Concat": ImportRule((4, 11, 13), ("axis",), concat),
    "CumProd": ImportRule((26,), ("exclusive", "reverse"), _running(triangle.CumProd)),
    "CumSum": ImportRule((11, 14), ("exclusive", "reverse"), _running(triangle.CumSum)),
    "DepthToSpace": ImportRule((1, 11, 13, 28), ("blocksize", "mode"), _depth_to_space),
    "Expand": ImportRule((8, 13), (), _expand),
    "Flatten": ImportRule((1, 9, 11, *MOVES), ("axis",), _flatten),
    "Identity": ImportRule((1, 14, 16, 19, *MOVES), (), _identity, takes_structures=True),
    "Reshape": ImportRule((5, 14, 19, *MOVES), ("allowzero",), _reshape),
    "SpaceToDepth": ImportRule((1, 13, 28), ("blocksize", "mode"), _space_to_depth),
    "Squeeze": ImportRule((1, 11, *MOVES), ("axes",), _squeeze),
    "Tile": ImportRule((6, 13), (), _tile),
    "Transpose": ImportRule((1, *MOVES), ("perm",), _transpose),
    "Trilu": ImportRule((14,), ("upper",), _trilu),
    "Unsqueeze": ImportRule((1, 11, *MOVES), ("axes",), _unsqueeze),
}
