"""Operators that move elements: gathers, scatters, orders, padding, products by subscripts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from onnx import TensorProto

from ...types import Array
from .drawing import Drawing, DrawnPoint, positive, scalar, shape_of, spread

_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
_AXES = ([0], [1], [2], [-1], [0, 1], [1, 2], [0, 1, 2])
_EQUATIONS = ("bsi,bti->bst", "bsi,bsj->bij", "bsi,bsi->bs", "bsi->bi", "...i,...i->...")


def reduced(draw: DrawnPoint, op: str, value: str, axes: list[int], keepdims: int = 1) -> str:
    """A reduction, whose axes are an attribute or an input, as the opset has it."""
    since = 13 if op == "ReduceSum" else 18
    if draw.opset < since:
        return draw.nodes.add(op, value, axes=axes, keepdims=keepdims)
    return draw.nodes.add(op, value, draw.hold(axes), keepdims=keepdims)


def _reduction(op: str, draw: DrawnPoint) -> str:
    axes = draw.rng.choice(_AXES)
    value = draw.nodes.add("Tanh", draw.value())
    return draw.nodes.add("Sub", value, reduced(draw, op, value, axes))


def _log_sum(draw: DrawnPoint) -> str:
    value = positive(draw)
    made = reduced(draw, "ReduceLogSum", value, draw.rng.choice(_AXES))
    return draw.nodes.add("Sub", value, made)


def _arg(op: str, draw: DrawnPoint) -> str:
    last, axis = draw.rng.randrange(2), draw.rng.choice((0, 1, 2, -1))
    place = draw.nodes.add(op, draw.exact(), axis=axis, keepdims=1, select_last_index=last)
    return draw.nodes.add("Add", draw.nodes.add("Cast", place, to=TensorProto.FLOAT), draw.value())


def _top_k(draw: DrawnPoint) -> str:
    """All elements in order, or some of them twice."""
    k = draw.rng.choice((draw.width, draw.width // 2))
    how = {"axis": 2, "largest": draw.rng.randrange(2), "sorted": 1}
    values, places = draw.nodes.several("TopK", 2, draw.exact(), draw.hold([k]), **how)
    if draw.rng.random() < 0.5:
        values = draw.nodes.add("Cast", places, to=TensorProto.FLOAT)
    return values if k == draw.width else draw.nodes.add("Concat", values, values, axis=2)


def _one_hot(draw: DrawnPoint) -> str:
    best = draw.nodes.add("ArgMax", draw.exact(), axis=2, keepdims=0)
    ends = draw.hold([0.25, 0.75], "float32")
    return draw.nodes.add("OneHot", best, draw.hold(draw.width), ends, axis=-1)


def _places(draw: DrawnPoint, *, distinct: bool) -> Array:
    """Indices of the last axis, some of them from its end."""
    width = draw.width
    drawn = draw.rng.sample(range(width), width)
    if not distinct:
        drawn = [draw.rng.randrange(width) for _ in range(width)]
    return np.array([n - width if draw.rng.random() < 0.3 else n for n in drawn], np.int64)


def _gather(draw: DrawnPoint) -> str:
    if draw.rng.random() < 0.3:
        first = draw.nodes.add("Gather", draw.value(), draw.hold([0]), axis=draw.rng.choice((0, 1)))
        return draw.nodes.add("Add", first, draw.value())
    places = draw.hold(_places(draw, distinct=False))
    return draw.nodes.add("Gather", draw.value(), places, axis=draw.rng.choice((2, -1)))


def _gather_elements(draw: DrawnPoint) -> str:
    value = draw.value()
    places = spread(draw, _places(draw, distinct=False), value)
    return draw.nodes.add("GatherElements", value, places, axis=2)


def _gather_nd(draw: DrawnPoint) -> str:
    places = draw.rng.choice(([[0, 0]], [[0]], [[0, 0, 1]]))
    found = draw.nodes.add("GatherND", draw.value(), draw.hold(places))
    return draw.nodes.add("Add", found, draw.value())


def _combined(draw: DrawnPoint) -> str:
    """How a scatter combines elements."""
    known = ("none", "add", "mul", "max", "min")
    return draw.rng.choice(known if draw.opset >= 18 else known[:3])


def _scatter_elements(draw: DrawnPoint) -> str:
    value, how = draw.value(), _combined(draw)
    places = spread(draw, _places(draw, distinct=how == "none"), value)
    return draw.nodes.add("ScatterElements", value, places, draw.value(), axis=2, reduction=how)


def _scatter_nd(draw: DrawnPoint) -> str:
    """The first row gets others."""
    value, how = draw.value(), _combined(draw)
    first = draw.nodes.add("Slice", draw.value(), *map(draw.hold, ([0], [1], [0])))
    if how != "none" and draw.rng.random() < 0.5:
        first = draw.nodes.add("Concat", first, first, axis=0)
        return draw.nodes.add("ScatterND", value, draw.hold([[0], [0]]), first, reduction=how)
    return draw.nodes.add("ScatterND", value, draw.hold([[0]]), first, reduction=how)


def _split(draw: DrawnPoint) -> str:
    sizes = draw.hold([1, draw.width - 1])
    one, rest = draw.nodes.several("Split", 2, draw.value(), sizes, axis=2)
    return draw.nodes.add("Concat", rest, one, axis=2)


def _pad(draw: DrawnPoint) -> str:
    """The last axis is moved by one; others get a row, and lose it."""
    mode = draw.rng.choice(("constant", "edge", "reflect"))
    pads = draw.rng.choice(([0, 0, 1, 0, 0, 1], [0, 0, 2, 0, 0, 0]))
    wide = draw.nodes.add("Pad", draw.value(), draw.hold(pads), mode=mode)
    ends = ([1], [draw.width + 1], [2])
    return draw.nodes.add("Slice", wide, *map(draw.hold, ends))


def _tile(draw: DrawnPoint) -> str:
    twice = draw.nodes.add("Tile", draw.value(), draw.hold([1, 1, 2]))
    step = draw.rng.choice((([1], [draw.width + 1], [2], [1]), ([0], [2 * draw.width], [2], [2])))
    return draw.nodes.add("Slice", twice, *map(draw.hold, step))


def _reversed(draw: DrawnPoint) -> str:
    ends = ([-1], [-(2**31)], [draw.rng.choice((0, 1, 2))], [-1])
    return draw.nodes.add("Slice", draw.value(), *map(draw.hold, ends))


def _cum_sum(draw: DrawnPoint) -> str:
    how = {"exclusive": draw.rng.randrange(2), "reverse": draw.rng.randrange(2)}
    return draw.nodes.add("CumSum", draw.value(), draw.hold(draw.rng.choice((0, 1, 2, -1))), **how)


def _trilu(draw: DrawnPoint) -> str:
    k = draw.hold(draw.rng.randint(-1, 2))
    return draw.nodes.add("Trilu", draw.value(), k, upper=draw.rng.randrange(2))


def _einsum(draw: DrawnPoint) -> str:
    """A product with weights, of two values, or of one."""
    if draw.rng.random() < 0.4:
        weights = draw.weight(draw.width, draw.width)
        equation = draw.rng.choice(("bsi,ij->bsj", "...i,ji->...j", "b s i, i j -> b s j"))
        return draw.nodes.add("Einsum", draw.value(), weights, equation=equation)
    equation = draw.rng.choice(_EQUATIONS)
    values = [draw.value() for _ in range(equation.count(",") + 1)]
    made = draw.nodes.add("Einsum", *values, equation=equation)
    match equation:
        case "bsi,bti->bst":
            return draw.nodes.add("MatMul", draw.nodes.add("Softmax", made), draw.value())
        case "bsi,bsj->bij":
            return draw.nodes.add("MatMul", draw.value(), draw.nodes.add("Tanh", made))
        case "bsi->bi":
            wide = draw.nodes.add("Unsqueeze", made, draw.hold([1]))
        case _:
            wide = draw.nodes.add("Unsqueeze", made, draw.hold([-1]))
    return draw.nodes.add("Sub", draw.value(), draw.nodes.add("Tanh", wide))


def _constant_of_shape(draw: DrawnPoint) -> str:
    value = draw.value()
    zeros = draw.nodes.add("ConstantOfShape", shape_of(draw, value))
    return draw.nodes.add("Add", zeros, value)


def _size(draw: DrawnPoint) -> str:
    value = draw.value()
    count = draw.nodes.add("Cast", draw.nodes.add("Size", value), to=TensorProto.FLOAT)
    return draw.nodes.add("Div", value, count)


def _det(draw: DrawnPoint) -> str:
    bounded = draw.nodes.add("Tanh", draw.value())
    square = draw.nodes.add("Reshape", bounded, draw.hold([0, 0, 2, 2]))
    made = draw.nodes.add("Unsqueeze", draw.nodes.add("Det", square), draw.hold([-1]))
    return draw.nodes.add("Add", made, draw.value())


def _range(draw: DrawnPoint) -> str:
    """The numbers of the second axis."""
    value = draw.value()
    size = draw.nodes.add("Gather", shape_of(draw, value), draw.hold(1), axis=0)
    numbers = draw.nodes.add("Range", draw.hold(0), size, draw.hold(1))
    floats = draw.nodes.add("Cast", numbers, to=TensorProto.FLOAT)
    column = draw.nodes.add("Unsqueeze", floats, draw.hold([1]))
    return draw.nodes.add("Add", value, draw.nodes.add("Mul", column, scalar(draw, 1 / 64)))


def _flatten(draw: DrawnPoint) -> str:
    value = draw.value()
    rows = draw.nodes.add("Flatten", value, axis=2)
    made = draw.nodes.add("Gemm", rows, draw.weight(draw.width, draw.width), transB=1)
    return draw.nodes.add("Reshape", made, shape_of(draw, value))


def _depth(op: str, draw: DrawnPoint) -> str:
    """Rows of four elements as squares, or squares as rows."""
    value = draw.value()
    shape = [-1, 4, 1, 1] if op == "DepthToSpace" else [-1, 1, 2, 2]
    how = {"mode": draw.rng.choice(("DCR", "CRD"))} if op == "DepthToSpace" else {}
    squares = draw.nodes.add("Reshape", value, draw.hold(shape))
    made = draw.nodes.add(op, squares, blocksize=2, **how)
    return draw.nodes.add("Reshape", made, shape_of(draw, value))


def all_drawings() -> Iterator[Drawing]:
    """Every drawing of this module."""
    yield from (Drawing(op, partial(_reduction, op)) for op in _REDUCTIONS)
    yield from (Drawing(op, partial(_arg, op)) for op in ("ArgMax", "ArgMin"))
    yield from (Drawing(op, partial(_depth, op)) for op in ("DepthToSpace", "SpaceToDepth"))
    yield from (
        Drawing("ReduceLogSum", _log_sum),
        Drawing("TopK", _top_k),
        Drawing("OneHot", _one_hot),
        Drawing("Gather", _gather),
        Drawing("GatherElements", _gather_elements),
        Drawing("GatherND", _gather_nd, is_closed=True),
        Drawing("ScatterElements", _scatter_elements),
        Drawing("ScatterND", _scatter_nd, is_closed=True),
        Drawing("Split", _split),
        Drawing("Pad", _pad),
        Drawing("Tile", _tile),
        Drawing("Slice", _reversed, is_closed=True),
        Drawing("CumSum", _cum_sum),
        Drawing("Trilu", _trilu),
        Drawing("Einsum", _einsum),
        Drawing("ConstantOfShape", _constant_of_shape),
        Drawing("Size", _size),
        Drawing("Det", _det),
        Drawing("Range", _range),
        Drawing("Flatten", _flatten),
        Drawing("Gemm", _flatten),
    )
