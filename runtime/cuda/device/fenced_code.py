"""A GPU's kernel on arrays that stand between guard bytes in the device's memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....codegen.artifact import Parameter
from ....codegen.cuda.artifact import CudaArtifact, Temporary
from ...arrays import Array
from ...kernel_code import FencedCode, Fences
from .array import DeviceArray
from .context import DeviceContext, DeviceMemory
from .loaded import Loaded


class FencedDeviceCode(FencedCode):
    """Runs the code of a kernel with a fence around all that a launch is handed: inputs and
    outputs, constants, what is prepared of them, and temporaries, of which the last two start as
    NaN.

    broken: the names of those beside which the last run wrote.
    """

    def __init__(
        self,
        artifact: CudaArtifact,
        constants: Mapping[str, Array],
        load: Callable[[], Loaded],
        fences: Fences,
    ) -> None:
        """load: the artifact on a device, where none of its kernels has run."""
        self._artifact = artifact
        self._constants = constants
        self._load = load
        self._fences = fences

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run `prepare`, where there is one, and then a call. Raises: DeviceError."""
        loaded, artifact, fences = self._load(), self._artifact, self._fences
        parts = [part for part in (artifact.prepare, artifact.run) if part is not None]
        made: list[Parameter | Temporary] = []
        for part in parts:
            made += (*part.parameters, *part.temporaries)
        named = {one.name: fences.poisoned(one.dtype, one.largest_shape) for one in made}
        named |= self._constants
        free, sizes = artifact.free_parameters, artifact.sizes_of([a.shape for a in arrays])
        named |= {p.name: array for p, array in zip(free, arrays, strict=True)}
        around = {name: _Fence(loaded.context, fences, array) for name, array in named.items()}
        placed = {name: fence.placed for name, fence in around.items()}
        for part in parts:
            loaded.bound(part, placed, sizes).put()
        loaded.context.synchronize()
        self.broken = tuple(name for name, fence in around.items() if not fence.intact())
        for parameter, array in zip(free, arrays, strict=True):
            array[...] = around[parameter.name].array


class _Fence:
    """A copy of an array in device memory, between guard bytes; placed: where a kernel finds it."""

    def __init__(self, context: DeviceContext, fences: Fences, array: Array) -> None:
        self._host = fences.around(array)
        self._memory = context.allocate(self._host.memory.nbytes)
        self._memory.copy_in(self._host.memory)
        begin = self._memory.pointer + fences.guard
        inner = DeviceMemory(context, begin, array.nbytes, owner=self._memory)
        self.placed = DeviceArray(inner, array.shape, array.dtype)

    @property
    def array(self) -> Array:
        """What the device had when `intact` was asked last."""
        return self._host.array

    def intact(self) -> bool:
        """Whether no guard byte has changed on the device."""
        self._memory.copy_out(self._host.memory)
        return self._host.intact()
