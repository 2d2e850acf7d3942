"""Rules of the operators that slide windows: convolution and pooling."""

from __future__ import annotations

from .....tir.sizes import closed, closed_shape, greatest, largest, quotient
from ....errors import ModelError
from ....ops import pooling
from ....ops.convolution import Conv
from ....ops.pool_places import MaxPoolPlaces
from ...limits import checked_type
from ..node import Attribute, NodeReader, NotSupported
from .rule import ImportRule, Result, plain

WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


def stated(node: NodeReader, names: tuple[str, ...]) -> dict[str, Attribute]:
    """Those of these attributes that a node has, for another node."""
    found: dict[str, Attribute] = {}
    for name in names:
        if not node.given(name):
            continue
        if name == "auto_pad":
            found[name] = node.text(name, "NOTSET")
        elif name in ("group", "ceil_mode", "count_include_pad"):
            found[name] = node.integer(name)
        else:
            found[name] = node.integers(name)
    return found


Windows = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def windows_of(node: NodeReader, kernel: tuple[int, ...]) -> Windows:
    """Strides, pads and dilations of windows of `kernel` taps; automatic padding is resolved.

    Raises: ModelError where the padded input exceeds the limits.
    """
    strides, pads, dilations = _stated(node, kernel)
    n, x = len(kernel), node.type(0)
    if not len(x.shape) - 2 == len(strides) == len(dilations) == n or len(pads) != 2 * n:
        return strides, pads, dilations  # malformed: the operator's own check says how
    sides = zip(x.shape[2:], pads[:n], pads[n:], strict=True)
    padded = [size + max(0, before) + max(0, after) for size, before, after in sides]
    checked_type(
        f"the padded input of {node.title}",
        x.dtype,
        (*x.shape[:2], *padded),
        node.tensors.limits,
    )
    # a stride beyond the end is as good as one to the end; one tap has no distance to another
    return (
        tuple(
            min(stride, max(1, largest(room))) for stride, room in zip(strides, padded, strict=True)
        ),
        pads,
        tuple(
            1 if taps == 1 < step else step for taps, step in zip(kernel, dilations, strict=True)
        ),
    )


def _stated(node: NodeReader, kernel: tuple[int, ...]) -> Windows:
    """What the attributes say, and what they leave to be computed."""
    n = len(kernel)
    sizes = node.type(0).shape[2:]
    strides = node.integers("strides", (1,) * n)
    dilations = node.integers("dilations", (1,) * n)
    mode = node.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return strides, node.integers("pads", (0,) * (2 * n)), dilations
    if mode == "VALID":
        return strides, (0,) * (2 * n), dilations
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotSupported(f"auto_pad is '{mode}'")
    if not len(sizes) == len(strides) == len(dilations) == n or min((1, *strides)) < 1:
        return strides, (0,) * (2 * n), dilations  # malformed, likewise
    extents = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    totals = [
        closed(greatest(0, quotient(size - 1, stride) * stride + extent - size))
        for size, stride, extent in zip(sizes, strides, extents, strict=True)
    ]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = (*small, *large) if mode == "SAME_UPPER" else (*large, *small)
    return strides, pads, dilations


def convolution(node: NodeReader) -> Conv:
    """The convolution that a node's weights and attributes say."""
    kernel = closed_shape(node.type(1).shape[2:])
    stated = node.integers("kernel_shape", kernel)
    if stated != kernel:
        raise ModelError(
            f"model: {node.title} has kernel_shape {list(stated)} and weights {node.type(1)}.",
            code="onnx-kernel-shape",
        )
    strides, pads, dilations = windows_of(node, kernel)
    return Conv(strides, pads, dilations, node.integer("group", 1))


def _conv(node: NodeReader) -> Result:
    return convolution(node), node.inputs


def _max_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    windows, ceil = windows_of(node, kernel), node.flag("ceil_mode")
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return pooling.MaxPool(kernel, *windows, ceil), node.inputs
    columns = node.flag("storage_order")
    return MaxPoolPlaces(kernel, *windows, ceil, columns), node.inputs


def _average_pool(node: NodeReader) -> Result:
    kernel = node.integers("kernel_shape")
    windows = windows_of(node, kernel)
    ceil, include = node.flag("ceil_mode"), node.flag("count_include_pad")
    return pooling.AveragePool(kernel, *windows, ceil, include_pad=include), node.inputs


RULES: dict[str, ImportRule] = {
    "AveragePool": ImportRule(
        (7, 10, 11, 19, 22), (*WINDOW, "ceil_mode", "count_include_pad"), _average_pool
    ),
    "Conv": ImportRule((1, 11, 22), (*WINDOW, "group"), _conv),
    "GlobalAveragePool": ImportRule((1, 22), (), plain(pooling.GlobalAveragePool())),
    "MaxPool": ImportRule(
        (1, 8, 10, 11, 12, 22), (*WINDOW, "ceil_mode", "storage_order"), _max_pool, outputs=2
    ),
}
