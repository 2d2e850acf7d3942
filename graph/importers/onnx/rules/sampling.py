"""Rules of the operators that take data from between their elements, or say where:
GridSample, AffineGrid."""

from __future__ import annotations

from typing import get_args

import numpy as np

from .....tir.sizes import closed_shape
from ....errors import ModelError
from ....ops.arithmetic import Add, Mul, Sub
from ....ops.functions import Cast, Round
from ....ops.matmul import MatMul
from ....ops.movement import Reshape, Transpose
from ....ops.sampling import Interpolation, Outside, SampleAt
from ....types import Floats, Splat
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result

MODES: dict[str, Interpolation] = {mode: mode for mode in get_args(Interpolation)}
MODES |= {"bilinear": "linear", "bicubic": "cubic"}
OUTSIDES: dict[str, Outside] = {outside: outside for outside in get_args(Outside)}


def _grid_sample(node: NodeReader) -> Result:
    x, grid = node.type(0), node.type(1)
    mode = MODES.get(text := node.text("mode", "linear" if node.version > 16 else "bilinear"))
    outside = OUTSIDES.get(padding := node.text("padding_mode", "zeros"))
    if mode is None or outside is None:
        raise NotSupported(f"mode is '{text}', padding_mode is '{padding}'")
    if x.rank < 3 or grid.rank != x.rank or grid.shape[-1] != x.rank - 2 or not grid.is_float:
        raise ModelError(
            f"model: {node.title} has data {x} and grid {grid}; expected [N, C, spatial...] and a "
            "grid of [N, spatial..., axes].",
            code="onnx-grid",
        )
    data, places = node.value(0), node.value(1)
    if mode != "nearest" and not x.is_float:
        data = node.emit(Cast(grid.dtype), data)
    elif mode != "nearest" and x.dtype != grid.dtype:
        places = node.emit(Cast(x.dtype), places)
    aligned = node.flag("align_corners")
    places = _in_elements(node, places, closed_shape(x.shape[2:]), aligned)
    if mode == "nearest":
        places = node.emit(Round(), places)
    op = SampleAt(mode, outside, aligned)
    if node.builder.types[data].dtype == x.dtype:
        return op, (data, places)
    return Cast(x.dtype), (node.emit(op, data, places),)


def _in_elements(node: NodeReader, grid: str, sizes: tuple[int, ...], aligned: bool) -> str:
    """Coordinates of -1 to 1, counted in elements: -1 and 1 are the edges of the data, or, where
    they are aligned, the first and the last element.
    """
    dtype = node.builder.types[grid].dtype
    lengths = np.asarray(sizes[::-1], dtype) - (1 if aligned else 0)
    scale = node.table("sizes", lengths.astype(dtype))
    one, half = (node.table("number", Splat(value, dtype, ())) for value in (1.0, 0.5))
    shifted = node.emit(Add(), grid, one)
    if aligned:
        return node.emit(Mul(), node.emit(Mul(), shifted, half), scale)
    scaled = node.emit(Mul(), shifted, scale)
    return node.emit(Mul(), node.emit(Sub(), scaled, one), half)


def _affine_grid(node: NodeReader) -> Result:
    """The places of evenly spread elements, by an affine map: rows [*p, 1] times its transpose."""
    theta, size = node.type(0), node.sizes(1)
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1) or min(size) < 1:
        raise ModelError(
            f"model: {node.title} has theta {theta} for size {list(size)}; expected [N, 2, 3] or "
            "[N, 3, 4] for [N, C, spatial...].",
            code="onnx-affine-grid",
        )
    aligned = node.flag("align_corners")
    axes = [_spread(count, aligned) for count in size[2:]]
    grid = np.meshgrid(*axes, indexing="ij")[::-1]
    rows = np.stack([*grid, np.ones(size[2:])], axis=-1).reshape(-1, n + 1)
    places = node.table("places", rows.astype(theta.dtype))
    turned = node.emit(Transpose((0, 2, 1)), node.value(0))
    return Reshape((size[0], *size[2:], n)), (node.emit(MatMul(), places, turned),)


def _spread(count: int, aligned: bool) -> Floats:
    """So many coordinates of -1 to 1; aligned: with both ends."""
    if aligned:
        return np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
    spread: Floats = (2 * np.arange(count) + 1) / count - 1
    return spread


RULES: dict[str, ImportRule] = {
    "AffineGrid": ImportRule((20,), ("align_corners",), _affine_grid),
    "GridSample": ImportRule((16, 20, 22), ("align_corners", "mode", "padding_mode"), _grid_sample),
}
