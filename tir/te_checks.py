"""What the tensor-expression language refuses: shapes, axes and elements without a meaning."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from .errors import IRError
from .expr import Expr, Reduce, Var
from .visit import free_vars, walk


def checked_shape(shape: object, name: str) -> tuple[int, ...]:
    """The extents of a shape, or of one dimension, as Python integers.

    Raises: IRError for what is no integer, or negative.
    """
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return tuple(_extent(extent, extents, name) for extent in extents)


def _extent(extent: object, extents: tuple[object, ...], name: str) -> int:
    try:
        size = operator.index(extent)  # type: ignore[arg-type]
    except TypeError:
        size = -1
    if size < 0:
        raise IRError(
            f"te: shape {extents} of '{name}' holds {extent!r}; expected integers of 0 or more.",
            code="te-shape",
        )
    return size


def check_axes(reducer: str, axes: Sequence[Var]) -> None:
    """Refuse a reduction over no axis, or over one axis twice. Raises: IRError."""
    if not axes:
        raise IRError(
            f"te.{reducer}: axis is (); expected at least one reduction axis.",
            code="te-axis-none",
            hints=("k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2).",),
        )
    twice = next((axis for n, axis in enumerate(axes) if axis in axes[:n]), None)
    if twice is not None:
        raise IRError(
            f"te.{reducer}: axis lists '{twice.name}' twice; expected each axis once.",
            code="te-axis-twice",
        )


def check_element(name: str, value: Expr, axes: Sequence[Var]) -> None:
    """Refuse a reduction below the top of an element, and a variable that nothing runs over.

    Raises: IRError.
    """
    operands = value.children() if isinstance(value, Reduce) else (value,)
    if any(isinstance(node, Reduce) for operand in operands for node in walk(operand)):
        raise IRError(
            f"te.compute: '{name}' has a reduction inside its expression; expected it at the top.",
            code="te-nested-reduce",
            hints=(
                "give the reduction a te.compute of its own and read its result; a schedule "
                "can fuse the two.",
            ),
        )
    reduced = value.axes if isinstance(value, Reduce) else ()
    free = free_vars(value) - {*axes, *reduced}
    if free:
        wrong = min(variable.name for variable in free)
        known = ", ".join(f"'{axis.name}'" for axis in (*axes, *reduced)) or "none"
        raise IRError(
            f"te.compute: the element of '{name}' uses '{wrong}', which nothing runs over; "
            f"expected its own axes and those of its reduction: {known}.",
            code="te-axis-free",
            hints=(f"a reduction axis runs inside of a reduction: te.sum(..., axis={wrong}).",),
        )
