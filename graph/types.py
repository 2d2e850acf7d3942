"""Types and constants of a model's values.

A value has a `TensorType`: an element type that tilewright's language has and a shape of known
sizes. Models compute with numbers of FLOATS, with integers of a byte and more, and with truth
values; other types are stored, moved and converted. Sizes that a model leaves open are
`SymbolicSize`s; they exist only while a model is imported and are gone before a Graph exists.

A constant is a NumPy array or a `Splat`: one value, repeated. A splat stays a splat for as long as
nobody needs its elements in memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..tir import dtype as dtypes
from ..tir.sizes import AnySize, largest, product_of

Array = NDArray[np.generic]
Floats = NDArray[np.float64] | NDArray[np.float32]

FLOATS = ("float16", "bfloat16", "float32", "float64")  # the types of floats to compute with
NARROW_INTEGERS = ("int8", "uint8", "int16")  # of which processors add up products in int32


def numpy_type(name: str) -> np.dtype[np.generic]:
    """NumPy's type for an element type, or that of ml_dtypes."""
    return dtypes.dtype(name).numpy


def is_only_stored(name: str) -> bool:
    """Whether an element type is only stored, moved and converted: float8, int4."""
    return dtypes.dtype(name).is_storage and name not in FLOATS


@dataclass(frozen=True, slots=True)
class SymbolicSize:
    """A size that a model names but does not give."""

    name: str

    def __str__(self) -> str:
        return self.name


Shape = tuple[AnySize, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type (a name of `tilewright.tir.dtype`, such as "float32") and shape of a value."""

    dtype: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> AnySize:
        """Number of elements."""
        return product_of(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements, densely stored; the most where a call decides."""
        return largest(self.elements) * numpy_type(self.dtype).itemsize

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return dtypes.dtype(self.dtype).is_float


@dataclass(frozen=True, slots=True)
class Splat:
    """A constant of `shape` whose elements all equal `value`; it takes no memory."""

    value: float | int | bool
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"splat({self.value:.6g})"

    def array(self) -> Array:
        """A read-only array of the whole shape that occupies one element."""
        return np.broadcast_to(np.asarray(self.value, numpy_type(self.dtype)), self.shape)


Constant = Array | Splat


def type_of(constant: Constant) -> TensorType:
    """The type of a constant."""
    if isinstance(constant, Splat):
        return TensorType(constant.dtype, constant.shape)
    return TensorType(constant.dtype.name, constant.shape)


def array_of(constant: Constant) -> Array:
    """A constant's elements; a splat's take no memory."""
    return constant.array() if isinstance(constant, Splat) else constant


def bits_of(constant: Constant, most: int = 1 << 16) -> Hashable:
    """What is equal for constants of equal type and bits; -0.0 and 0.0 differ.

    Arrays of more than `most` bytes equal only themselves.
    """
    if isinstance(constant, Splat):
        return (
            "splat",
            constant.dtype,
            constant.shape,
            np.asarray(constant.value, numpy_type(constant.dtype)).tobytes(),
        )
    if constant.nbytes > most:
        return ("array", id(constant))
    return (constant.dtype.name, constant.shape, constant.tobytes())


def frozen(array: Array) -> Array:
    """`array` itself when nobody can write to it, else a dense copy that nobody can."""
    if not array.flags.writeable and array.flags.c_contiguous and array.base is None:
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def owned(array: Array) -> Array:
    """`array`, which nobody else may write to, read-only; copied when it is not dense."""
    dense = np.asarray(array, order="C")
    dense.flags.writeable = False
    return dense


def permutation_to_last(rank: int) -> tuple[int, ...]:
    """The permutation that takes channels from axis 1 to the end: NCHW -> NHWC."""
    return (0, *range(2, rank), 1)


def permutation_to_first(rank: int) -> tuple[int, ...]:
    """The permutation that takes channels from the end to axis 1: NHWC -> NCHW."""
    return (0, rank - 1, *range(1, rank - 1))


def inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `permutation`."""
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


def composed(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that does `first`, then `second`."""
    return tuple(first[axis] for axis in second)


def permuted(shape: Shape, permutation: tuple[int, ...]) -> Shape:
    """The shape of a tensor of `shape` after its axes are permuted."""
    return tuple(shape[axis] for axis in permutation)
