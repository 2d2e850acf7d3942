"""NumPy's functions of expressions: np.exp(A[i, j]) is te.exp(A[i, j]), np.float32(2) * x is 2 * x.

What NumPy calls with an expression among its operands comes here by `Expr.__array_ufunc__`. A
function that is no operator and no intrinsic is refused with the name that the language has for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from . import intrinsics
from .dtype import FLOAT32, DType
from .errors import IRTypeError
from .intrinsics import Intrinsic
from .operand_checks import check_function

_OPERATORS: Mapping[str, Callable[..., object]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "negative": operator.neg,
    "absolute": operator.abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.invert,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}
# those that NumPy has under the same name, and one that it calls otherwise
_INTRINSICS = {
    one.name: one
    for one in intrinsics.ALL
    if one.arity == 1 and isinstance(getattr(np, one.name, None), np.ufunc)
} | {"rint": intrinsics.ROUND}
# where the language has another name for a function
_NAMES = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "equal": "eq",
    "fabs": "abs",
    "float_power": "pow",
    "fmod": "fmod",
    "logical_and": "all_of",
    "logical_not": "logical_not",
    "logical_or": "any_of",
    "maximum": "maximum",
    "minimum": "minimum",
    "not_equal": "ne",
    "reciprocal": "reciprocal",
    "sign": "sign",
    "square": "square",
}


class HasType(Protocol):
    """An expression, as far as it is looked at here."""

    @property
    def dtype(self) -> DType:
        """The type of its value."""


Operand = TypeVar("Operand", bound=HasType)


def apply_ufunc(
    ufunc: object,
    method: str,
    operands: Sequence[Operand],
    options: Mapping[str, object],
    call: Callable[[Intrinsic, Operand], object],
) -> object:
    """What NumPy's function gives of operands that are expressions or numbers.

    call: applies an intrinsic to an expression.
    Raises: IRError for a type that the function does not take; IRTypeError for arrays, for options,
    and for a function that has another name here.
    """
    name = getattr(ufunc, "__name__", str(ufunc))
    is_plain = method == "__call__" and not options
    array = next((one for one in operands if isinstance(one, np.ndarray) and one.ndim), None)
    if array is not None:
        raise IRTypeError(
            f"numpy.{name}: an operand is an array of shape {array.shape}; expected an expression "
            "or a number.",
            code="expr-array",
            hints=(
                "te.placeholder(shape, dtype, name=..., constant=True) stands for an array that is "
                "bound when the kernel is built.",
            ),
        )
    if is_plain and name in _OPERATORS:
        plain = (
            one.item() if isinstance(one, np.generic | np.ndarray) else one for one in operands
        )
        return _OPERATORS[name](*plain)
    if is_plain and name in _INTRINSICS:
        kind = operands[0].dtype
        check_function(_INTRINSICS[name].name, FLOAT32 if kind.is_half else kind)
        return call(_INTRINSICS[name], operands[0])
    ours = _NAMES.get(name)
    operands_text = ", ".join("abc"[: len(operands)])
    there = f"te.{ours}({operands_text}); " if ours else ""
    raise IRTypeError(
        f"numpy.{name}: an operand is an expression, which is computed when a kernel runs; "
        "expected a function of te.",
        code="expr-numpy",
        hints=(f"{there}dir(te) lists all functions.",),
    )
