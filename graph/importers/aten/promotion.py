"""Which element type a result of several operands has, as PyTorch decides it.

Kinds come first: truth values, integers, floats. Of the operands with the highest kind, tensors
with axes decide over those without, and these over Python's numbers; a number of a higher kind than
all tensors gives that kind's default type. Among equals the smallest type that holds both does.
Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from ....tir.dtype import dtype
from ...types import TensorType

DEFAULT_FLOAT = "float32"
DEFAULT_INTEGER = "int64"
Number = bool | int | float


def kind_of(name: str) -> int:
    """0 for truth values, 1 for integers, 2 for floats."""
    if name == "bool":
        return 0
    return 2 if dtype(name).is_float else 1


def number_type(value: object) -> str:
    """The default type of a Python number, or of a size that a call decides."""
    if isinstance(value, bool):
        return "bool"
    return DEFAULT_FLOAT if isinstance(value, float) else DEFAULT_INTEGER


def joined(a: str, b: str) -> str:
    """The smallest type that holds the values of two."""
    if a == b:
        return a
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    kinds = kind_of(a), kind_of(b)
    if kinds[0] != kinds[1]:
        return a if kinds[0] > kinds[1] else b
    if kinds[0] == 2:
        return a if dtype(a).bytes > dtype(b).bytes else b
    return str(np.promote_types(a, b))


def promoted_type(types: Sequence[TensorType], numbers: Iterable[object] = ()) -> str:
    """The type that operands are brought to: tensors of these types, and numbers."""
    groups = (
        [type_.dtype for type_ in types if type_.rank],
        [type_.dtype for type_ in types if not type_.rank],
        [number_type(number) for number in numbers],
    )
    found = ""
    for names in groups:
        if names:
            own = reduce(joined, names)
            found = own if not found or kind_of(own) > kind_of(found) else found
    return found


def as_float(name: str) -> str:
    """The type in which a function of real numbers is computed: floats as they are."""
    return name if kind_of(name) == 2 else DEFAULT_FLOAT
