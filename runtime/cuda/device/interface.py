"""The arrays of a call of a model on a GPU: of the host, or of the device, where they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....codegen.program_artifact import HasInterface
from ....tir.dim import Dim
from ....tir.sizes import shape_in
from ...arrays import Argument, ArgumentValueError, accept_call, sizes_of_call
from ...model.interface import Interface
from .array import DeviceArray
from .context import DeviceContext
from .dlpack import CUDA, CUDA_MANAGED

_ALIGNMENT = 16  # bytes, of the widest access of a thread


class DeviceInterface(Interface):
    """The inputs and outputs of a model that runs on a device.

    An array on the device, ours or one that shows its memory through `__cuda_array_interface__` or
    DLPack, is read and written where it lies.
    """

    def __init__(self, artifact: HasInterface, context: Callable[[], DeviceContext]) -> None:
        """context: gives the device's, where an array of it is met."""
        super().__init__(artifact)
        self._context = context

    def _accepted(self, values: Sequence[object]) -> tuple[list[Any], list[Any]]:
        """Each array checked as it must be where it lies: an Array or a DeviceArray.

        Raises: as `Interface`; ExchangeError for memory of another device, or with gaps.
        """
        expected, count = (*self._inputs, *self._outputs), len(self._inputs)
        if not any(map(on_device, values)) or len(values) not in (count, len(expected)):
            return super()._accepted(values)
        arrays = self._checked(expected[: len(values)], values)
        sizes = sizes_of_call(self.name, expected[: len(values)], arrays)
        expected = tuple(replace(a, shape=shape_in(a.shape, sizes)) for a in expected)
        there = {n: array for n, array in enumerate(arrays) if isinstance(array, DeviceArray)}
        left = [n for n in range(len(values)) if n not in there]
        read = [expected[n] for n in left if n < count]
        written = [argument for n, argument in enumerate(expected) if n >= count and n not in there]
        hosts, results = accept_call(self.name, read, written, [values[n] for n in left])
        self._check_apart(there)
        rest = iter((*hosts, *results))
        arrays = [there[n] if n in there else next(rest) for n in range(len(expected))]
        return arrays[:count], arrays[count:]

    def _sizes(self, values: Sequence[object]) -> Mapping[Dim, int]:
        """The sizes that the inputs of a call tell, wherever they lie."""
        if not any(map(on_device, values)):
            return super()._sizes(values)
        return sizes_of_call(self.name, self._inputs, self._checked(self._inputs, values))

    def _checked(self, expected: Sequence[Argument], values: Sequence[object]) -> list[Any]:
        """Each array as what is expected, where it lies."""
        return [
            self._taken(value, argument) if on_device(value) else argument.accept(value, self.name)
            for argument, value in zip(expected, values, strict=True)
        ]

    def _taken(self, value: object, expected: Argument) -> DeviceArray:
        array = DeviceArray.view(self._context(), value)
        expected.check_type(array, self.name)
        if array.pointer % _ALIGNMENT:
            raise ArgumentValueError(
                f"{self.name}: '{expected.name}' starts at {array.pointer:#x} of the device; "
                f"expected a multiple of {_ALIGNMENT}.",
                code="argument-device-aligned",
                hints=(f"PyTorch: {expected.name}.clone(); CuPy: {expected.name}.copy().",),
            )
        return array

    def _check_apart(self, there: Mapping[int, DeviceArray]) -> None:
        """Refuse an output that shares memory of the device with another argument."""
        expected = (*self._inputs, *self._outputs)
        for n, array in there.items():
            for other, value in there.items() if expected[n].written else ():
                if other != n and _overlap(array, value):
                    raise ArgumentValueError(
                        f"{self.name}: '{expected[n].name}' is written and shares memory of the "
                        f"device with '{expected[other].name}'.",
                        code="argument-device-overlap",
                        hints=("an array of its own: torch.empty_like(x), cupy.empty_like(x).",),
                    )


def on_device(value: object) -> bool:
    """Whether an array lies on a device."""
    if isinstance(value, DeviceArray) or hasattr(value, "__cuda_array_interface__"):
        return True
    tell = getattr(value, "__dlpack_device__", None)
    return tell is not None and int(tell()[0]) in (CUDA, CUDA_MANAGED)


def _overlap(one: DeviceArray, other: DeviceArray) -> bool:
    first, last = sorted((one, other), key=lambda array: array.pointer)
    return first.nbytes > 0 and last.nbytes > 0 and first.pointer + first.nbytes > last.pointer
