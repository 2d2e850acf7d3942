"""What the tensor-expression language refuses: shapes, axes and elements without a meaning."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

from ..analysis.bounds import known_interval
from ..analysis.data import loose_indices
from ..buffer import Load
from ..checked import without_checks
from ..conditions import conjuncts
from ..dim import Dim, Extent
from ..dtype import DType
from ..errors import IRError, IRTypeError
from ..expr import LT, Const, Expr, Number, Select, Var, computed, convert, index
from ..operand_checks import check_computable, check_same
from ..reduce import Reduce
from ..sizes import Size, axis_of
from ..text.printer import print_expr
from ..visit import found_in, free_vars, loads, walk


def checked_shape(shape: object, name: str) -> tuple[Extent, ...]:
    """The extents of a shape, or of one dimension, as Python integers and dims.

    Raises: IRError for what is no dim and no integer, or negative; SizeError.
    """
    given = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    extents = tuple(axis_of(e) if isinstance(e, Size) else e for e in given)
    return tuple(e if isinstance(e, Dim) else checked_size(e, extents, name) for e in extents)


def check_extent(extent: object, name: str) -> None:
    """Refuse a range where the extent of a reduction axis belongs. Raises: IRError."""
    if isinstance(extent, Sequence):
        last = f"{extent[-1]}" if len(extent) == 2 and extent[0] == 0 else "n"
        raise IRError(
            f"te.reduce_axis: the extent of '{name}' is {extent!r}; expected one integer.",
            code="te-reduce-extent",
            hints=(f"in tilewright: te.reduce_axis({last}): every axis begins at 0.",),
        )


def checked_size(extent: object, extents: tuple[object, ...], name: str) -> int:
    """One extent as a Python integer. Raises: IRError for what is none, or negative."""
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


def operands(function: str, *values: Expr | Number) -> tuple[Expr, ...]:
    """The operands of a function as expressions of one type, floats of 16 bits in float32.

    Raises: as `alike`.
    """
    wide = (computed(value) if isinstance(value, Expr) else value for value in values)
    return alike(function, *wide)


def alike(function: str, *values: Expr | Number) -> tuple[Expr, ...]:
    """The operands of a function as expressions of one type: plain numbers take that of the others.

    Raises: IRTypeError where all are numbers, or one is neither; IRError for different types.
    """
    like = next((value for value in values if isinstance(value, Expr)), None)
    if like is None:
        listed = ", ".join(map(repr, values))
        raise IRTypeError(
            f"te.{function}: the operands are {listed}; expected an expression.",
            code="te-operand",
            hints=(
                "an element of a tensor is an expression: A[i, j]; te.const(value, dtype) gives a "
                "number its type.",
            ),
        )
    listed_exprs = tuple(convert(value, like) for value in values)
    for value in listed_exprs:
        check_same(function, like.dtype, value.dtype)
    return listed_exprs


def check_number_type(function: str, value: Expr) -> None:
    """Refuse a truth value, and a type that is only stored, where numbers are computed with.

    Raises: IRError.
    """
    check_computable(f"te.{function}", value.dtype)
    if value.dtype.is_bool:
        raise IRError(
            f"te.{function}: the operand has type bool; expected numbers.",
            code="te-number",
            hints=("te.cast(x, 'int32') makes 0 and 1 of a truth value.",),
        )


def checked_values(
    reducer: str, values: object, types: Sequence[DType] | None, what: str
) -> tuple[Expr, ...]:
    """The values that a user's reducer takes or gives, numbers as constants; `what`: which of its
    parts gave them. `types`: what they must have, when that is known.

    Raises: IRError.
    """
    listed = tuple(values) if isinstance(values, tuple) else (values,)
    if types is not None and len(listed) == len(types):
        given = zip(listed, types, strict=True)
        listed = tuple(
            convert(v, Const(0, t)) if isinstance(v, int | float) else v for v, t in given
        )
    found = tuple(item for item in listed if isinstance(item, Expr))
    fitting = types is None or tuple(item.dtype for item in found) == tuple(types)
    if listed and len(found) == len(listed) and fitting:
        return found
    shown = ", ".join(str(v.dtype) if isinstance(v, Expr) else repr(v) for v in listed)
    wanted = "expressions" if types is None else f"({', '.join(map(str, types))})"
    raise IRError(
        f"te.comm_reducer: {what} of '{reducer}' gives ({shown}); expected {wanted}.",
        code="te-reducer-values",
        hints=("te.const(value, dtype) gives a number its type; te.cast(x, dtype) converts.",),
    )


def check_condition(function: str, condition: object) -> None:
    """Refuse what is no truth value. Raises: IRTypeError."""
    if not isinstance(condition, Expr) or not condition.dtype.is_bool:
        found = f"type {condition.dtype}" if isinstance(condition, Expr) else repr(condition)
        hint = "te.ne(x, 0) is the condition that x is not 0; i < n compares."
        if isinstance(condition, bool):
            hint = (
                "te.eq(a, b) compares values, as te.ne(a, b) does; a == b and a != b compare how "
                "two expressions are written."
            )
        raise IRTypeError(
            f"te.{function}: the condition is {found}; expected an expression of type bool.",
            code="te-condition",
            hints=(hint,),
        )


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


def check_elements(name: str, values: Sequence[object]) -> tuple[Expr, ...]:
    """The values of a te.compute: one reduction, or one expression per output. Raises: IRError."""
    found = tuple(value for value in values if isinstance(value, Expr))
    if not values or len(found) != len(values):
        wrong = next((value for value in values if not isinstance(value, Expr)), ())
        raise IRError(
            f"te.compute: the element of '{name}' is {wrong!r}; expected an expression.",
            code="te-element",
            hints=("te.const(value, dtype) makes a constant tensor.",),
        )
    if len(found) > 1 and any(isinstance(value, Reduce) for value in found):
        raise IRError(
            f"te.compute: '{name}' has a reduction among its {len(found)} outputs; expected one "
            "reduction that gives them all, or none.",
            code="te-outputs-reduce",
            hints=(
                "te.comm_reducer(combine, identity, name=...) reduces several values together; "
                "reductions of their own are several te.compute.",
            ),
        )
    return found


def output_names(name: str | tuple[str, ...], count: int) -> tuple[str, ...]:
    """The names of a te.compute's outputs: one string, or a tuple with a name for each output.

    Raises: IRError.
    """
    names = (name,) if isinstance(name, str) else name
    if len(names) == count and (count == 1 or not isinstance(name, str)):
        return names
    shown = ", ".join(map(repr, names))
    raise IRError(
        f"te.compute: name is {shown if isinstance(name, str) else f'({shown})'}, and the element "
        f"gives {count} values; expected {count} names.",
        code="te-output-names",
        hints=('best, at = te.compute(..., name=("best", "at")) gives two tensors.',),
    )


def check_element(name: str, value: Expr, axes: Mapping[Var, int]) -> None:
    """Refuse a reduction below the top of an element, a variable that nothing runs over, and an
    index that is data and may leave its tensor. axes: with their extents.

    Raises: IRError.
    """
    _check_variables(name, value, tuple(axes))
    extents = dict(axes)
    if isinstance(value, Reduce):
        extents |= dict(zip(value.axes, value.extents, strict=True))
    ranges = {axis: (0, max(extent - 1, 0)) for axis, extent in extents.items()}
    for load in loads(without_checks(value)):
        for position in loose_indices(load, lambda plain: known_interval(plain, ranges)):
            _refuse_data(name, load, position)
    if any(
        size is not None and size.low == 0 for load in loads(value) for size in load.buffer.dims
    ):
        _check_empty(name, without_checks(value), frozenset())


def _check_empty(name: str, expr: Expr, asked: frozenset[Dim]) -> None:
    """Refuse data as an index of an axis that may be empty where nobody asks whether it is. asked:
    dims that are not 0 where the expression is evaluated.
    """
    if isinstance(expr, Load):
        pairs = zip(expr.indices, expr.buffer.dims, strict=False)
        for at, size in pairs:
            if size is not None and size.low == 0 and size not in asked and loads(at):
                raise IRError(
                    f"te.compute: '{name}' reads '{expr.buffer.name}' at {print_expr(at)}, "
                    f"which is data, along an axis that may be empty, '{size.name}'; expected "
                    f"that it asks whether {size.name} > 0.",
                    code="te-index-empty",
                    hints=(f"te.select({size.name} > 0, {expr.buffer.name}[...], 0)",),
                )
    if isinstance(expr, Select):
        conditions = conjuncts(expr.condition)
        there = {d for d in found_in(expr.condition, Dim) if LT(index(0), d) in conditions}
        _check_empty(name, expr.condition, asked)
        _check_empty(name, expr.on_true, asked | there)
        _check_empty(name, expr.on_false, asked)
        return
    for child in expr.children():
        if isinstance(child, Expr):
            _check_empty(name, child, asked)


def _refuse_data(name: str, load: Load, position: int) -> None:
    size, text = load.buffer.extents[position], print_expr(load.indices[position])
    extent, last = (size.name, f"{size.name}-1") if isinstance(size, Dim) else (size, size - 1)
    raise IRError(
        f"te.compute: '{name}' reads dimension {position} of '{load.buffer.name}' at {text}, which "
        f"is data; expected it checked, or clamped to 0 .. {last}.",
        code="te-index-data",
        hints=(
            f"te.checked({text}, {extent}): a call raises IndexError for what lies outside.",
            f"te.clamp_index({text}, {extent}) takes the nearest index.",
        ),
    )


def _check_variables(name: str, value: Expr, axes: Sequence[Var]) -> None:
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
    free = {v for v in free_vars(value) if not isinstance(v, Dim)} - {*axes, *reduced}
    if free:
        wrong = min(variable.name for variable in free)
        known = ", ".join(f"'{axis.name}'" for axis in (*axes, *reduced)) or "none"
        raise IRError(
            f"te.compute: the element of '{name}' uses '{wrong}', which nothing runs over; "
            f"expected its own axes and those of its reduction: {known}.",
            code="te-axis-free",
            hints=(f"a reduction axis runs inside of a reduction: te.sum(..., axis={wrong}).",),
        )
