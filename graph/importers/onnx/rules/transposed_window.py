"""Rule of ConvTranspose, which becomes a convolution."""

from __future__ import annotations

from .....tir.sizes import closed, closed_shape
from ....errors import ModelError
from ....ops.convolution import Conv
from ....ops.movement import Reshape, Transpose
from ....ops.slicing import Spread
from ....types import Shape
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result
from .slicing import AxisWalk, add, part_of, surrounded
from .window import WINDOW


def _conv_transpose(node: NodeReader) -> Result:
    """A transposed convolution as a convolution: the pixels of the input stand `strides` apart in
    zeros, the window is mirrored, input and output channels change places.
    """
    x, w = node.type(0), node.type(1)
    weights_shape = closed_shape(w.shape)
    groups, n = node.integer("group", 1), w.rank - 2
    kernel = weights_shape[2:]
    strides = node.as_many("strides", (1,) * n)
    dilations = node.as_many("dilations", (1,) * n)
    stated = node.integers("kernel_shape", kernel)
    fits = x.rank == w.rank >= 3 and groups > 0 and x.shape[1:2] == w.shape[:1]
    if (
        not fits
        or weights_shape[0] % groups
        or stated != kernel
        or min((1, *strides, *dilations)) < 1
    ):
        raise ModelError(
            f"model: {node.title} has input {x}, weights {w}, group {groups}, kernel_shape "
            f"{list(stated)}, strides {list(strides)} and dilations {list(dilations)}, which do "
            "not fit.",
            code="onnx-conv-transpose",
        )
    extents = [(taps - 1) * step + 1 for taps, step in zip(kernel, dilations, strict=True)]
    begins, ends, extra = _transposed_pads(node, extents, strides)
    before = (0, 0, *(extent - 1 - pad for extent, pad in zip(extents, begins, strict=True)))
    after = [
        extent - 1 - pad + more for extent, pad, more in zip(extents, ends, extra, strict=True)
    ]
    spread = node.emit(Spread((1, 1, *strides)), node.value(0))
    padded = add(node, surrounded(node, spread, before, (0, 0, *after)))
    mirrored = {
        axis: AxisWalk.along(range(size - 1, -1, -1))
        for axis, size in enumerate(weights_shape)
        if axis > 1
    }
    channels, outputs = weights_shape[0] // groups, weights_shape[1]
    taken = add(node, part_of(node.value(1), weights_shape, mirrored))
    parts = node.emit(Reshape((groups, channels, outputs, *kernel)), taken)
    turned = node.emit(Transpose((0, 2, 1, *range(3, n + 3))), parts)
    weights = node.emit(Reshape((groups * outputs, channels, *kernel)), turned)
    return Conv((1,) * n, (0,) * (2 * n), dilations, groups), (padded, weights, *node.inputs[2:])


def _transposed_pads(
    node: NodeReader, extents: list[int], strides: tuple[int, ...]
) -> tuple[list[int], list[int], tuple[int, ...]]:
    """What a transposed convolution cuts off at the begin and at the end of each axis, and what it
    adds at the end.
    """
    n = len(extents)
    sizes = node.type(0).shape[2:]
    extra = node.as_many("output_padding", (0,) * n)
    mode = node.text("auto_pad", "NOTSET")
    axes = zip(sizes, strides, extents, extra, strict=True)
    full = [(size - 1) * stride + extent + more for size, stride, extent, more in axes]
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise NotSupported(f"auto_pad is '{mode}'")
    if node.given("output_shape"):
        whole = node.integers("output_shape")  # old models give batch and channels, too
        wanted: Shape = whole[2:] if len(whole) == n + 2 else node.as_many("output_shape", (0,) * n)
    elif mode.startswith("SAME"):
        wanted = tuple(size * stride for size, stride in zip(sizes, strides, strict=True))
    else:
        pads = node.as_many("pads", (0,) * (2 * n))
        return list(pads[:n]), list(pads[n:]), extra
    totals = [closed(has - wants) for has, wants in zip(full, wanted, strict=True)]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (small, large, extra) if mode == "SAME_UPPER" else (large, small, extra)


RULES: dict[str, ImportRule] = {
    "ConvTranspose": ImportRule(
        (1, 11, 22), (*WINDOW, "group", "output_padding", "output_shape"), _conv_transpose
    ),
}
