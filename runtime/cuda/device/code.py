"""The code of a CUDA kernel as a GPU runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....codegen.cuda.artifact import CudaArtifact
from ...arrays import Array
from ...kernel_code import Code, Fences
from ...machine.timing import CacheState, Sampler, Timing
from ..toolchain.compile import Cubin, compile_cuda, ptx_of
from .array import DeviceArray
from .availability import Unavailable, availability
from .context import DeviceContext
from .fenced_code import FencedDeviceCode
from .loaded import Bound, Loaded
from .timing import measure_on, sampler_on

if TYPE_CHECKING:
    from ..emulator.emulated_code import EmulatedCode


class DeviceCall:
    """A call that runs on arrays of the device, and waits for it; it has the device's clock."""

    def __init__(self, context: DeviceContext, bound: Bound) -> None:
        self._context = context
        self._bound = bound

    def __call__(self) -> None:
        self._bound.put()
        self._context.synchronize()

    def measure(self, seconds: float, cache: CacheState) -> Timing:
        """Time it without what the host does. Raises: DeviceError."""
        return measure_on(self._context, self._bound.put, seconds, cache=cache)

    def sampler(self, cache: CacheState) -> Sampler:
        """What takes samples of it as `measure` does. Raises: DeviceError."""
        return sampler_on(self._context, self._bound.put, cache)


class DeviceCode(Code):
    """Runs an artifact's launches on the first GPU; compiled and loaded at the first run.

    constants: bound when the kernel is built; what `prepare` makes of them stays on the device.
    cubin: its machine code, where it was compiled before.
    Raises: NoDevice, NvrtcNotFound, CompileFailed; LaunchError, DeviceError.
    """

    device = "GPU"

    def __init__(
        self,
        artifact: CudaArtifact,
        constants: Mapping[str, Array],
        cubin: Cubin | None = None,
    ) -> None:
        self.artifact = artifact
        self.constants = dict(constants)
        self.cubin = cubin
        self._loaded: Loaded | None = None
        self._ready: Loaded | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return DeviceCode, (self.artifact, self.constants, self.cubin)

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Copy the inputs to the device, run, and copy the outputs back."""
        loaded = self.ready()
        named = self._named(loaded.context, arrays)
        bound = loaded.bound(self.artifact.run, named, self._sizes(arrays))
        bound.put()
        for parameter, array in zip(self.artifact.free_parameters, arrays, strict=True):
            if parameter.role == "output":
                named[parameter.name].memory.copy_out(array)

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> DeviceCall:
        """A call that runs on copies of these arrays that lie on the device, and waits for it."""
        loaded = self.ready()
        named = self._named(loaded.context, arrays)
        bound = loaded.bound(self.artifact.run, named, self._sizes(arrays))
        return DeviceCall(loaded.context, bound)

    def assembly(self) -> str:
        """The PTX that NVRTC makes."""
        artifact = self.artifact
        return ptx_of(artifact.source, artifact.target.isa, name=artifact.name)

    def fenced(self, fences: Fences) -> FencedDeviceCode:
        """It with fences around all arrays in the device's memory."""
        return FencedDeviceCode(self.artifact, self.constants, self.loaded, fences)

    def emulated(self, *, checked: bool) -> EmulatedCode:
        """It on the CPU. Raises: CompilerNotFound, CompileFailed; EmulationFailed."""
        from ..emulator.emulated_code import EmulatedCode  # a device needs no emulation

        return EmulatedCode(self.artifact, self.constants, checked=checked)

    def ready(self) -> Loaded:
        """It on the device, with its constants, where `prepare` has run."""
        if self._ready is None:
            self._ready = self._prepared(self.loaded())
        return self._ready

    def loaded(self) -> Loaded:
        """Its kernels on the device, none of which has run."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> Loaded:
        found = availability()
        if isinstance(found, Unavailable):
            raise found.error()
        context, artifact = found.context(), self.artifact
        module = context.load(
            self.cubin or compile_cuda(artifact.source, artifact.target.isa, name=artifact.name)
        )
        parts = [part for part in (artifact.prepare, artifact.run) if part is not None]
        names = {launch.kernel for part in parts for launch in part.launches}
        return Loaded(context, {name: module.kernel(name) for name in names})

    def _prepared(self, loaded: Loaded) -> Loaded:
        """Upload the constants and run `prepare`."""
        context, artifact = loaded.context, self.artifact
        fixed = {name: DeviceArray.of(context, array) for name, array in self.constants.items()}
        for parameter in artifact.parameters:
            if parameter.role == "prepared":
                made = DeviceArray.empty(context, parameter.largest_shape, parameter.dtype.numpy)
                fixed[parameter.name] = made
        ready = replace(loaded, fixed=fixed)
        if artifact.prepare is not None:
            ready.bound(artifact.prepare, {}).put()
            context.synchronize()  # its temporaries go now
        return ready

    def _sizes(self, arrays: Sequence[Array]) -> dict[str, int]:
        return self.artifact.sizes_of([array.shape for array in arrays])

    def _named(self, context: DeviceContext, arrays: Sequence[Array]) -> dict[str, DeviceArray]:
        return {
            parameter.name: DeviceArray.of(context, array)
            if parameter.role == "input"
            else DeviceArray.empty(context, array.shape, array.dtype)
            for parameter, array in zip(self.artifact.free_parameters, arrays, strict=True)
        }
