"""What to write for an operator on whole tensors: A + B and A @ B are refused with the te.compute
that says it. A tensor has a name, by which a schedule finds its block, and an operator gives none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..buffer import Buffer
from ..dim import Dim, Extent
from ..errors import IRTypeError

_LETTERS = "ijlmnpq"
_SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "matmul": "@",
}


def operator_error(symbol: str, left: object, right: object) -> IRTypeError:
    """The error for `left symbol right`, of which one is a tensor at least."""
    names = [f"'{one.name}'" for one in (left, right) if isinstance(one, Buffer)]
    if len(names) == 1:
        problem = f"tensor {names[0]} stands where a number is expected; expected an element"
    else:
        problem = (
            f"tensors {' and '.join(names)} stand where numbers are expected; expected elements"
        )
    return IRTypeError(
        f"te: {problem}.", code="te-tensor-operand", hints=_calls(symbol, left, right)
    )


def function_error(name: str, operands: Sequence[object]) -> IRTypeError:
    """The error for NumPy's function `name` of operands, of which one is a tensor at least."""
    if name in _SYMBOLS and len(operands) == 2:
        return operator_error(_SYMBOLS[name], *operands)
    tensor = next(one for one in operands if isinstance(one, Buffer))
    letters = _axes(len(tensor.extents))
    element = f"te.{name}({_element(tensor, letters, tensor.extents)})"
    return IRTypeError(
        f"numpy.{name}: tensor '{tensor.name}' stands where numbers are expected; it has none "
        "until a kernel runs.",
        code="te-tensor-function",
        hints=(_compute(tensor.extents, letters, element),),
    )


def _calls(symbol: str, left: object, right: object) -> tuple[str, ...]:
    """The te.compute that says it; nothing where the shapes do not fit."""
    if symbol == "@":
        if isinstance(left, Buffer) and isinstance(right, Buffer):
            return _product(left, right)
        return ()
    shapes = [one.extents for one in (left, right) if isinstance(one, Buffer)]
    shape = _broadcast(shapes)
    if shape is None:
        listed = " and ".join(map(_shape_text, shapes))
        return (f"shapes {listed} do not broadcast: name the elements that belong together.",)
    letters = _axes(len(shape))
    a, b = (_element(one, letters, shape) for one in (left, right))
    return (_compute(shape, letters, f"{a} {symbol} {b}"),)


def _product(a: Buffer, b: Buffer) -> tuple[str, ...]:
    """A product of matrices, or of stacks of them."""
    if min(len(a.extents), len(b.extents)) < 2 or a.extents[-1] != b.extents[-2]:
        shapes = f"{_shape_text(a.extents)} and {_shape_text(b.extents)}"
        return (f"shapes {shapes} are no product of matrices: expected [..., m, k] @ [..., k, n].",)
    stack = _broadcast([a.extents[:-2], b.extents[:-2]])
    if stack is None:
        return ("the stacks of matrices do not broadcast: name the elements that belong together.",)
    shape = (*stack, a.extents[-2], b.extents[-1])
    letters = _axes(len(shape))
    left = _element(a, (*letters[:-1], "k"), (*shape[:-1], a.extents[-1]))
    right = _element(b, (*letters[:-2], "k", letters[-1]), (*shape[:-2], b.extents[-2], shape[-1]))
    return (
        f'k = te.reduce_axis({a.extents[-1]}, name="k")',
        _compute(shape, letters, f"te.sum({left} * {right}, axis=k)"),
    )


def _axes(rank: int) -> tuple[str, ...]:
    return tuple(_LETTERS[n] if n < len(_LETTERS) else f"i{n}" for n in range(rank))


def _broadcast(shapes: list[tuple[Extent, ...]]) -> tuple[Extent, ...] | None:
    """The common shape by NumPy's rule; None where there is none."""
    rank = max(map(len, shapes))
    padded = [(*(1,) * (rank - len(shape)), *shape) for shape in shapes]
    found: list[Extent] = []
    for sizes in zip(*padded, strict=True):
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            return None
        found.append(wide[0] if wide else 1)
    return tuple(found)


def _element(value: object, letters: tuple[str, ...], shape: tuple[Extent, ...]) -> str:
    """An operand at the point `letters` of `shape`."""
    if not isinstance(value, Buffer):
        return str(value) if isinstance(value, int | float | np.number) else "x"
    rank = len(value.extents)
    pairs = zip(value.extents, letters[-rank:], shape[-rank:], strict=True) if rank else ()
    indices = ["0" if size == 1 and whole != 1 else letter for size, letter, whole in pairs]
    return f"{value.name}[{', '.join(indices) or '()'}]"


def _compute(shape: tuple[Extent, ...], letters: tuple[str, ...], element: str) -> str:
    head = f"lambda {', '.join(letters)}" if letters else "lambda"
    return f'te.compute({_shape_text(shape)}, {head}: {element}, name="C")'


def _shape_text(shape: tuple[Extent, ...]) -> str:
    extents = [extent.name if isinstance(extent, Dim) else str(extent) for extent in shape]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"
