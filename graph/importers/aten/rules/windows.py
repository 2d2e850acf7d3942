"""Rules of convolutions, pools and resizing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.sizes import AnySize, closed, product_of
from ....ops.matmul import MatMul
from ....ops.movement import Transpose
from ....ops.reduction import ReduceMean
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter

Ints = Sequence[int]


def _each(values: Ints | int, count: int, default: int = 1) -> list[int]:
    """One number for each axis: one stands for all, none for the default."""
    listed = [values] if isinstance(values, int) else list(values)
    if not listed:
        return [default] * count
    return listed * count if len(listed) == 1 else listed


def _batched(w: AtenWriter, x: AtenValue, spatial: int) -> AtenValue:
    """One image as a batch."""
    return x if x.rank == spatial + 2 else w.reshape(x, (1, *x.shape))


def _like_given(w: AtenWriter, made: AtenValue, given: AtenValue, spatial: int) -> AtenValue:
    return made if given.rank == spatial + 2 else w.reshape(made, made.shape[1:])


def _convolved(spatial: int) -> Rule:
    def rule(
        w: AtenWriter,
        input: AtenValue,
        weight: AtenValue,
        bias: AtenValue | None = None,
        stride: Ints | int = 1,
        padding: Ints | int | str = 0,
        dilation: Ints | int = 1,
        groups: int = 1,
    ) -> AtenValue:
        steps, holes = _each(stride, spatial), _each(dilation, spatial)
        if isinstance(padding, str):  # what is odd of "same" is behind
            kernel = [closed(size) for size in weight.shape[2:]]
            over = [h * (k - 1) * (padding == "same") for h, k in zip(holes, kernel, strict=True)]
            pads = [o // 2 for o in over] + [o - o // 2 for o in over]
        else:
            pads = _each(padding, spatial, 0) * 2
        x = _batched(w, input, spatial)
        made = w.spell(
            "Conv", x, weight, bias, strides=steps, pads=pads, dilations=holes, group=groups
        )
        return _like_given(w, made, input, spatial)

    return rule


def _transposed(spatial: int) -> Rule:
    def rule(
        w: AtenWriter,
        input: AtenValue,
        weight: AtenValue,
        bias: AtenValue | None = None,
        stride: Ints | int = 1,
        padding: Ints | int = 0,
        output_padding: Ints | int = 0,
        groups: int = 1,
        dilation: Ints | int = 1,
    ) -> AtenValue:
        x = _batched(w, input, spatial)
        made = w.spell(
            "ConvTranspose",
            x,
            weight,
            bias,
            strides=_each(stride, spatial),
            pads=_each(padding, spatial, 0) * 2,
            output_padding=_each(output_padding, spatial, 0),
            dilations=_each(dilation, spatial),
            group=groups,
        )
        return _like_given(w, made, input, spatial)

    return rule


def _convolution(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue,
    bias: AtenValue | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> AtenValue:
    spatial = weight.rank - 2
    if transposed:
        rule = _transposed(spatial)
        made: AtenValue = rule(
            w, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
        return made
    plain: AtenValue = _convolved(spatial)(
        w, input, weight, bias, stride, padding, dilation, groups
    )
    return plain


def _max_pool(spatial: int, outputs: int = 1) -> Rule:
    def rule(
        w: AtenWriter,
        self: AtenValue,
        kernel_size: Ints | int,
        stride: Ints | int = (),
        padding: Ints | int = 0,
        dilation: Ints | int = 1,
        ceil_mode: bool = False,
    ) -> AtenValue | list[AtenValue]:
        kernel = _each(kernel_size, spatial)
        x = _batched(w, self, spatial)
        made = w.spell_all(
            "MaxPool",
            min(outputs, w.results),
            x,
            kernel_shape=kernel,
            strides=_each(stride, spatial) if stride else kernel,
            pads=_each(padding, spatial, 0) * 2,
            dilations=_each(dilation, spatial),
            ceil_mode=int(ceil_mode),
        )
        values = _like_given(w, made[0], self, spatial)
        if outputs == 1:
            return values
        if w.results == 1:  # nobody reads the places
            return [values]
        plane = 1
        for size in x.shape[2:]:
            plane = plane * closed(size)
        places = w.spell("Mod", made[1], w.full(plane, "int64"))  # counted in each plane
        return [values, _like_given(w, places, self, spatial)]

    return rule


def _average_pool(spatial: int) -> Rule:
    def rule(
        w: AtenWriter,
        self: AtenValue,
        kernel_size: Ints | int,
        stride: Ints | int = (),
        padding: Ints | int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> AtenValue:
        if divisor_override is not None:
            raise NotSupported(f"divisor_override is {divisor_override}")
        kernel = _each(kernel_size, spatial)
        made = w.spell(
            "AveragePool",
            _batched(w, self, spatial),
            kernel_shape=kernel,
            strides=_each(stride, spatial) if stride else kernel,
            pads=_each(padding, spatial, 0) * 2,
            ceil_mode=int(ceil_mode),
            count_include_pad=int(count_include_pad),
        )
        return _like_given(w, made, self, spatial)

    return rule


def _adaptive_average(spatial: int) -> Rule:
    def rule(w: AtenWriter, self: AtenValue, output_size: Ints | int) -> AtenValue:
        wanted = _each(output_size, spatial)
        axes = tuple(range(self.rank - spatial, self.rank))
        sizes = self.shape[-spatial:]
        if all(size == 1 for size in wanted):
            return w.emit(ReduceMean(axes, True), self)
        given = [closed(size) for size in sizes]
        if all(size % part == 0 for size, part in zip(given, wanted, strict=True)):
            kernel = [size // part for size, part in zip(given, wanted, strict=True)]
            made: AtenValue = _average_pool(spatial)(w, self, kernel)
            return made
        x = self
        for axis, size, part in zip(axes, given, wanted, strict=True):
            x = _averaged(w, x, axis, size, part)
        return x

    return rule


def _averaged(w: AtenWriter, x: AtenValue, axis: int, size: int, parts: int) -> AtenValue:
    """Means of windows that overlap, as a product with their weights."""
    weights = np.zeros((size, parts), np.float32)
    for part in range(parts):
        start, end = part * size // parts, -(-(part + 1) * size // parts)
        weights[start:end, part] = 1 / (end - start)
    order = [n for n in range(x.rank) if n != axis] + [axis]
    back = tuple(order.index(n) for n in range(x.rank))
    table = w.cast(w.constant(weights), x.dtype)
    made = w.emit(MatMul(), w.emit(Transpose(tuple(order)), x), table)
    return w.emit(Transpose(back), made)


def _resized(mode: str) -> Rule:
    def rule(
        w: AtenWriter,
        input: AtenValue,
        output_size: Sequence[AnySize] | None,
        align_corners: bool = False,
        scale_factors: Sequence[float] | None = None,
    ) -> AtenValue:
        return _scaled(w, input, mode, output_size, align_corners, scale_factors)

    return rule


def _nearest(
    w: AtenWriter,
    input: AtenValue,
    output_size: Sequence[AnySize] | None,
    scale_factors: Sequence[float] | None = None,
) -> AtenValue:
    return _scaled(w, input, "nearest", output_size, False, scale_factors)


def _scaled(
    w: AtenWriter,
    x: AtenValue,
    mode: str,
    sizes: Sequence[AnySize] | None,
    align_corners: bool,
    factors: Sequence[float] | None,
) -> AtenValue:
    where = "align_corners" if align_corners else "half_pixel"
    attributes: dict[str, str | float] = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if mode == "cubic":
        attributes["cubic_coeff_a"] = -0.75
    if sizes is not None:
        return w.spell("Resize", x, None, None, w.sizes((*x.shape[:2], *sizes)), **attributes)
    scales = w.constant(np.array([1, 1, *(factors or ())], np.float32))
    return w.spell("Resize", x, None, scales, **attributes)


def _col2im(
    w: AtenWriter,
    self: AtenValue,
    output_size: Sequence[AnySize],
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
) -> AtenValue:
    return w.spell(
        "Col2Im",
        self,
        w.sizes(output_size),
        w.sizes(kernel_size),
        dilations=list(dilation),
        pads=list(padding) * 2,
        strides=list(stride),
    )


def _im2col(
    w: AtenWriter,
    self: AtenValue,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
) -> AtenValue:
    """Windows as columns: a convolution with ones, so that each tap is a channel."""
    x = _batched(w, self, 2)
    channels, (kh, kw) = closed(x.shape[1]), kernel_size
    taps = np.zeros((channels * kh * kw, 1, kh, kw), np.float32)
    flat = taps.reshape(channels, kh * kw, kh * kw)
    flat[:] = np.eye(kh * kw, dtype=np.float32)
    made = w.spell(
        "Conv",
        x,
        w.cast(w.constant(taps), x.dtype),
        strides=list(stride),
        pads=list(padding) * 2,
        dilations=list(dilation),
        group=channels,
    )
    columns = product_of(made.shape[2:])
    return w.reshape(made, (*self.shape[: self.rank - 3], made.shape[1], columns))


def _grid_sampler(
    w: AtenWriter,
    input: AtenValue,
    grid: AtenValue,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> AtenValue:
    return w.spell(
        "GridSample",
        input,
        grid,
        mode=("linear", "nearest", "cubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=int(align_corners),
    )


RULES: dict[str, Rule] = {
    "adaptive_avg_pool1d": _adaptive_average(1),
    "adaptive_avg_pool2d": _adaptive_average(2),
    "adaptive_avg_pool3d": _adaptive_average(3),
    "_adaptive_avg_pool2d": _adaptive_average(2),
    "_adaptive_avg_pool3d": _adaptive_average(3),
    "avg_pool1d": _average_pool(1),
    "avg_pool2d": _average_pool(2),
    "avg_pool3d": _average_pool(3),
    "col2im": _col2im,
    "conv1d": _convolved(1),
    "conv1d.padding": _convolved(1),
    "conv2d": _convolved(2),
    "conv2d.padding": _convolved(2),
    "conv3d": _convolved(3),
    "conv3d.padding": _convolved(3),
    "conv_transpose1d": _transposed(1),
    "conv_transpose2d.input": _transposed(2),
    "conv_transpose3d.input": _transposed(3),
    "convolution": _convolution,
    "grid_sampler": _grid_sampler,
    "grid_sampler_2d": _grid_sampler,
    "im2col": _im2col,
    "max_pool1d": _max_pool(1),
    "max_pool2d": _max_pool(2),
    "max_pool2d_with_indices": _max_pool(2, 2),
    "max_pool3d": _max_pool(3),
    "max_pool3d_with_indices": _max_pool(3, 2),
    "upsample_bicubic2d.vec": _resized("cubic"),
    "upsample_bilinear2d.vec": _resized("linear"),
    "upsample_linear1d.vec": _resized("linear"),
    "upsample_nearest1d.vec": _nearest,
    "upsample_nearest2d.vec": _nearest,
    "upsample_nearest3d.vec": _nearest,
    "upsample_trilinear3d.vec": _resized("linear"),
}
