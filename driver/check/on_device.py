"""A GPU's kernel on arrays that stand between guard bytes in the device's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...codegen.artifact import Parameter
from ...codegen.cuda.artifact import Temporary
from ...runtime.arrays import Array
from ...runtime.cuda.device.array import DeviceArray
from ...runtime.cuda.device.code import DeviceCode
from ...runtime.cuda.device.context import Context, Memory
from ...runtime.kernel import Code
from .fenced import GUARD, Fenced, poisoned


def fenced(code: Code) -> FencedCode | None:
    """What runs the code between fences; None for what runs on no device."""
    return FencedCode(code) if isinstance(code, DeviceCode) else None


class FencedCode:
    """Runs the code of a kernel with a fence around all that a launch is handed: inputs and
    outputs, constants, what is prepared of them, and temporaries, of which the last two start as
    NaN.

    broken: the names of those beside which the last run wrote.
    """

    def __init__(self, code: DeviceCode) -> None:
        self.broken: tuple[str, ...] = ()
        self._code = code

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run `prepare`, where there is one, and then a call. Raises: DeviceError."""
        loaded, artifact = self._code.loaded(), self._code.artifact
        parts = [part for part in (artifact.prepare, artifact.run) if part is not None]
        made: list[Parameter | Temporary] = []
        for part in parts:
            made += (*part.parameters, *part.temporaries)
        named = {one.name: poisoned(one.dtype, one.shape) for one in made}
        named |= self._code.constants
        free, sizes = artifact.free_parameters, artifact.sizes_of([a.shape for a in arrays])
        named |= {p.name: array for p, array in zip(free, arrays, strict=True)}
        fences = {name: _Fence(loaded.context, array) for name, array in named.items()}
        placed = {name: fence.placed for name, fence in fences.items()}
        for part in parts:
            loaded.bound(part, placed, sizes).put()
        loaded.context.synchronize()
        self.broken = tuple(name for name, fence in fences.items() if not fence.intact())
        for parameter, array in zip(free, arrays, strict=True):
            array[...] = fences[parameter.name].array

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> Callable[[], object]:
        """A call that runs on these arrays again and again."""
        return lambda: self.run(arrays, threads)


class _Fence:
    """A copy of an array in device memory, between guard bytes; placed: where a kernel finds it."""

    def __init__(self, context: Context, array: Array) -> None:
        self._host = Fenced(array)
        self._memory = context.allocate(self._host.memory.nbytes)
        self._memory.copy_in(self._host.memory)
        begin = self._memory.pointer + GUARD
        inner = Memory(context, begin, array.nbytes, owner=self._memory)
        self.placed = DeviceArray(inner, array.shape, array.dtype)

    @property
    def array(self) -> Array:
        """What the device had when `intact` was asked last."""
        return self._host.array

    def intact(self) -> bool:
        """Whether no guard byte has changed on the device."""
        self._memory.copy_out(self._host.memory)
        return self._host.intact()
