"""A model on a GPU: its kernels loaded, and its constants there, for frames to run (frame).

Nothing is looked for before the first frame: an engine is built, inspected and saved without a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ....codegen.cuda.program_artifact import CudaProgram
from ....tir.errors import TargetError
from ...arrays import Array
from ...log import log
from ..driver.architecture import capability_of, runs_on
from ..toolchain.compile import Cubin
from ..toolchain.cubins import Cubins
from .availability import NoDevice, Unavailable, availability
from .context import DeviceContext
from .frame import DeviceFrame
from .interface import DeviceInterface
from .loaded_program import LoadedProgram


class DeviceProgram:
    """A model on the first GPU.

    cubins: of each kernel. constants: by position; None for those that nobody reads or that are
    computed on the device. poison: what every byte of the memory of constants is set to first, for
    checks.
    """

    def __init__(
        self,
        artifact: CudaProgram,
        cubins: Sequence[Cubin],
        constants: Sequence[Array | None],
        poison: int | None = None,
    ) -> None:
        self.artifact = artifact
        self.cubins = tuple(cubins)
        self.constants = tuple(constants)
        self.checks = artifact.checks
        self.interface = DeviceInterface(artifact, self.context)
        self._poison = poison
        self._loaded: LoadedProgram | None = None
        self._loading = threading.Lock()

    def frame(self, threads: int, fence: int = 0) -> DeviceFrame:
        """Memory for runs; the first one loads the kernels and computes the constants.

        fence: bytes on either side of it that no run may touch, for checks.
        Raises: NoDevice; TargetError for a GPU that it was not built for; DeviceMemoryError,
        DeviceError.
        """
        return DeviceFrame(self.loaded(), fence)

    def loaded(self) -> LoadedProgram:
        """Its kernels and constants on the device, where it has no memory for a run yet.

        Raises: as `frame`.
        """
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def context(self) -> DeviceContext:
        """That of the first GPU. Raises: NoDevice."""
        found = availability()
        if isinstance(found, Unavailable):
            raise NoDevice(
                f"engine: '{self.artifact.name}' runs on a GPU, and none can be used: "
                f"{found.reason}.",
                code="engine-no-gpu",
                hints=("tw.emulated(engine) runs it on the CPU, slowly.", found.hint),
            )
        return found.context()

    def _load(self) -> LoadedProgram:
        context = self.context()
        cubins = self._fitting(context)
        return LoadedProgram(context, self.artifact, cubins, self.constants, self._poison)

    def _fitting(self, context: DeviceContext) -> tuple[Cubin, ...]:
        """Cubins that the device runs: on a newer one, of the sources compiled for it."""
        device, isa = context.device, self.artifact.target.isa
        if runs_on(isa, device.capability):
            return self.cubins
        if capability_of(isa) > device.capability:
            raise TargetError(
                f"engine: '{self.artifact.name}' is built for {isa}, and the {device.name} is "
                f"{device.arch}; expected one that is as new.",
                code="engine-gpu",
                hints=(f"tw.compile(model, 'cuda:{device.arch}') builds it for this one.",),
            )
        log.info("engine: '%s' for %s is compiled for %s", self.artifact.name, isa, device.arch)
        with Cubins(device.arch) as cubins:
            for kernel in self.artifact.kernels:
                cubins.add(kernel.source, kernel.name)
            return cubins.made()
