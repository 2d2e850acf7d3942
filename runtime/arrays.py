"""The arrays of a call: what a kernel accepts, checked at every call, never copied in silence.

An argument is a NumPy array, or anything that shows its memory through `__array_interface__` or
DLPack (CPU only). It must have the parameter's dtype and shape, lie in row-major order without
gaps, be aligned to its item, and, where it is written, be writable and share no memory with another
argument, nor with an array that a constant was bound to (occupied.py). Arrays of size zero are
fine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..tir.dim import Dim
from ..tir.errors import TilewrightError
from ..tir.sizes import AnySize, Size, product_of, shape_in, size_in
from .toolchain.library import Pointer, ffi

Array = npt.NDArray[np.generic]

NO_SIZES: Mapping[Dim, int] = MappingProxyType({})
ALIGNMENT = 64  # bytes: a cache line, and a vector of the widest instruction set
_ALIGNED_FROM = 1 << 14  # bytes; below, an allocation by NumPy's own rule costs less than it loses
_CPU_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_BYTES = ffi.typeof("char[]")
_ADDRESS = ffi.typeof("uintptr_t")


class ArgumentError(TilewrightError):
    """An argument of a call is not what the kernel was built for."""


class ArgumentTypeError(ArgumentError, TypeError):
    """The number, the kind or the dtype of an argument is wrong."""


class ArgumentValueError(ArgumentError, ValueError):
    """The shape, the layout or the memory of an argument is wrong."""


class Typed(Protocol):
    """An array, wherever it lies."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Of its items."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call must give for one parameter. written: the kernel writes the whole array.

    open_axes: those whose sizes the call decides, with these.
    """

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[AnySize, ...]
    written: bool = False
    open_axes: tuple[tuple[int, Size], ...] = field(init=False)

    def __post_init__(self) -> None:
        found = ((axis, size) for axis, size in enumerate(self.shape) if isinstance(size, Size))
        object.__setattr__(self, "open_axes", tuple(found))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]"

    @property
    def _shape_text(self) -> str:
        """The shape as a Python tuple."""
        return f"({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"

    @property
    def _new_text(self) -> str:
        """A new array for this parameter, as a line of Python."""
        return f"np.empty({self._shape_text}, {numpy_name(self.dtype)})"

    def _way_out(self, converted: str) -> str:
        """What to pass: of an input its value `converted`; of an output a new array, since the
        caller never sees a copy that is written.
        """
        return self._new_text if self.written else converted

    def new(self, sizes: Mapping[Dim, int] = NO_SIZES) -> Array:
        """A new array for this parameter, uninitialised; sizes: those that the call decides."""
        return empty_aligned(shape_in(self.shape, sizes), self.dtype)

    def accept(self, value: object, call: str) -> Array:
        """The array of `value`, without a copy; `call` is the name of what is called, for messages.

        Raises: ArgumentTypeError, ArgumentValueError.
        """
        array = value if type(value) is np.ndarray else self._view(value, call)
        self.check_type(array, call)
        flags = array.flags
        if not flags.c_contiguous:
            raise self._layout_error(array, call)
        if not flags.aligned:
            raise ArgumentValueError(
                f"{call}: '{self.name}' is not aligned to its {self.dtype.itemsize}-byte items.",
                code="argument-aligned",
                hints=(self._way_out(f"{self.name}.copy()"),),
            )
        if self.written and not flags.writeable:
            raise ArgumentValueError(
                f"{call}: '{self.name}' is read-only; expected an array to write into.",
                code="argument-read-only",
                hints=(self._new_text,),
            )
        return array

    def check_type(self, array: Typed, call: str) -> None:
        """Refuse another dtype or shape. Raises: ArgumentTypeError, ArgumentValueError."""
        if array.dtype != self.dtype:
            raise self._dtype_error(array, call)
        if array.shape != self.shape:
            self._check_shape(array, call)

    def _check_shape(self, array: Typed, call: str) -> None:
        """Refuse a shape that is none of those that the parameter may have."""
        if not self.open_axes or len(array.shape) != len(self.shape):
            raise self._shape_error(array, call)
        for axis, (n, size) in enumerate(zip(array.shape, self.shape, strict=True)):
            if not isinstance(size, Size):
                if n != size:
                    raise self._shape_error(array, call)
            elif not size.low <= n <= size.high:
                raise self.size_error(call, axis, n, size)

    def size_error(self, call: str, axis: int, n: int, size: Size) -> ArgumentValueError:
        """What is wrong with an axis of `n` elements, a number that `size` never is."""
        low, high = min(n, size.low), max(n, size.high)
        return ArgumentValueError(
            f"{call}: axis {axis} of '{self.name}' has {n} elements; expected "
            f"'{size}', which is {size.low} to {size.high}.",
            code="argument-size",
            hints=(f'te.dim("{size}", {low}, {high}) builds a kernel that takes it.',),
        )

    def _view(self, value: object, call: str) -> Array:
        """The memory of a foreign array as a NumPy array."""
        if isinstance(value, np.ndarray):
            return value
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            raise ArgumentTypeError(
                f"{call}: '{self.name}' is a {type(value).__name__}; expected a NumPy array, or "
                "one that has __array_interface__ or __dlpack__.",
                code="argument-kind",
                hints=(self._way_out(f"np.asarray({self.name}, dtype={numpy_name(self.dtype)})"),),
            )
        device = int(value.__dlpack_device__()[0])
        if device not in _CPU_DEVICES:
            raise ArgumentValueError(
                f"{call}: '{self.name}' lies on a device (DLPack type {device}); expected the "
                "CPU's memory.",
                code="argument-device",
                hints=(self._way_out(f"{self.name}.cpu()"),),
            )
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"{call}: '{self.name}', a {type(value).__name__}, does not share its memory: "
                f"{error}.",
                code="argument-exchange",
                hints=(self._way_out(f"np.asarray({self.name}, dtype={numpy_name(self.dtype)})"),),
            ) from error

    def _dtype_error(self, array: Typed, call: str) -> ArgumentTypeError:
        got = (
            array.dtype.name
            if array.dtype.isnative
            else f"{array.dtype.name} of foreign byte order"
        )
        return ArgumentTypeError(
            f"{call}: '{self.name}' is {got}, expected {self.dtype.name}.",
            code="argument-dtype",
            hints=(self._way_out(f"{self.name}.astype({numpy_name(self.dtype)})"),),
        )

    def _shape_error(self, array: Typed, call: str) -> ArgumentValueError:
        same_size = not self.open_axes and math.prod(array.shape) == product_of(self.shape)
        is_transposed = not self.written and array.shape == self.shape[::-1]
        right = (
            f"np.ascontiguousarray({self.name}.T)"
            if same_size and is_transposed
            else f"{self.name}.reshape({self.shape})"
        )
        return ArgumentValueError(
            f"{call}: '{self.name}' has shape {array.shape}, expected {self._shape_text}.",
            code="argument-shape",
            hints=((self._way_out(right),) if same_size or self.written else ()),
        )

    def _layout_error(self, array: Array, call: str) -> ArgumentValueError:
        return ArgumentValueError(
            f"{call}: '{self.name}' has strides {array.strides}; expected row-major order without "
            "gaps.",
            code="argument-layout",
            hints=(self._way_out(f"np.ascontiguousarray({self.name})"),),
        )


def accept_call(
    call: str,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    values: Sequence[object],
    computed: Mapping[Dim, int] = NO_SIZES,
) -> tuple[list[Array], list[Array]]:
    """The arrays of a call, inputs and outputs; outputs that were not given are new.

    `values` are all inputs, or all inputs and all outputs, in order. computed: the most of each
    size that the call computes itself.
    Raises: ArgumentTypeError, ArgumentValueError.
    """
    given = len(values)
    if given == len(inputs):
        arrays = [
            argument.accept(value, call) for argument, value in zip(inputs, values, strict=True)
        ]
        sizes = sizes_of_call(call, inputs, arrays)
        sizes = {**sizes, **computed} if computed else sizes
        return arrays, [argument.new(sizes) for argument in outputs]
    if given != len(inputs) + len(outputs):
        raise _count_error(call, inputs, outputs, given)
    expected = (*inputs, *outputs)
    arrays = [
        argument.accept(value, call) for argument, value in zip(expected, values, strict=True)
    ]
    sizes_of_call(call, expected, arrays, computed)
    _check_apart(call, expected, arrays)
    return arrays[: len(inputs)], arrays[len(inputs) :]


def numpy_name(dtype: np.dtype[np.generic]) -> str:
    """The type in a Python program that imports NumPy as np."""
    return f"{'np' if dtype.isbuiltin == 1 else 'ml_dtypes'}.{dtype.name}"


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """A new, uninitialised array; one of 16 KiB or more starts at a multiple of 64 bytes."""
    array: Array = np.empty(shape, dtype)
    if array.nbytes < _ALIGNED_FROM:
        return array
    store = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, store.data, -address(store) % ALIGNMENT)


def memory(array: Array) -> Pointer:
    """The array's memory, without a copy; the pointer keeps it alive."""
    # of types that others add to NumPy it shows no buffer: their bits then
    shown = array.view(f"u{array.itemsize}") if array.dtype.isbuiltin == 2 else array
    return ffi.from_buffer(_BYTES, shown)


def address(array: Array) -> int:
    """Where the array's memory starts."""
    return int(ffi.cast(_ADDRESS, memory(array)))


def sizes_of_call(
    call: str,
    arguments: Sequence[Argument],
    arrays: Sequence[Array],
    computed: Mapping[Dim, int] = NO_SIZES,
) -> Mapping[Dim, int]:
    """The sizes that a call decides. Raises: ArgumentValueError where two arrays disagree."""
    found: dict[Dim, int] = {**computed}
    told: dict[Dim, str] = {}
    others: list[tuple[Argument, Array, int, Size]] = []
    for argument, array in zip(arguments, arrays, strict=True):
        for axis, size in argument.open_axes:
            n, dim = array.shape[axis], size.dim
            if dim is None:
                others.append((argument, array, axis, size))
            elif found.setdefault(dim, n) != n:
                raise _sizes_error(call, argument, array, axis, found[dim], told[dim])
            else:
                told.setdefault(dim, argument.name)
    for argument, array, axis, size in others:
        wanted = size_in(size, found)
        if array.shape[axis] != wanted:
            raise _sizes_error(call, argument, array, axis, wanted, told[size.dims[0]])
    return found


def _sizes_error(
    call: str, argument: Argument, array: Array, axis: int, known: int, where: str
) -> ArgumentValueError:
    right = (*array.shape[:axis], known, *array.shape[axis + 1 :])
    return ArgumentValueError(
        f"{call}: '{argument.shape[axis]}' is {known} in '{where}' and {array.shape[axis]} in "
        f"'{argument.name}'; expected one size in all arguments.",
        code="argument-sizes",
        hints=(f"{argument.name}: an array of shape {right}.",),
    )


def _check_apart(call: str, arguments: Sequence[Argument], arrays: Sequence[Array]) -> None:
    """Refuse an output that shares memory with another argument.

    The arrays have no gaps, so their bounds decide.
    """
    for index, (written, array) in enumerate(zip(arguments, arrays, strict=True)):
        if not written.written:
            continue
        for other, (argument, value) in enumerate(zip(arguments, arrays, strict=True)):
            if other == index or (argument.written and other > index):
                continue
            if np.may_share_memory(array, value):
                raise ArgumentValueError(
                    f"{call}: '{written.name}' is written and shares memory with "
                    f"'{argument.name}'.",
                    code="argument-overlap",
                    hints=(
                        f"{written.name}: np.empty({array.shape}, {numpy_name(written.dtype)})",
                    ),
                )


def _count_error(
    call: str, inputs: Sequence[Argument], outputs: Sequence[Argument], given: int
) -> ArgumentTypeError:
    everything = ", ".join(argument.name for argument in (*inputs, *outputs))
    return ArgumentTypeError(
        f"{call}: {given} arrays given; expected {len(inputs)} (the inputs) or "
        f"{len(inputs) + len(outputs)} (inputs and outputs).",
        code="argument-count",
        hints=(
            f"{call}({', '.join(argument.name for argument in inputs)})",
            f"{call}({everything})",
        ),
    )
