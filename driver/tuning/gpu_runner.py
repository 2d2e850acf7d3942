"""A GPU as the device of a worker. The context belongs to this process, and is lost when a
candidate accesses invalid memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.cuda.artifact_json import cuda_from_json
from ...runtime.cuda.device.availability import Unavailable, availability
from ...runtime.cuda.device.code import DeviceCall, DeviceCode
from ...runtime.cuda.device.probe import DeviceProbe
from ...runtime.cuda.device.timing import evicted_bytes
from ...runtime.cuda.driver.errors import DeviceError
from ...runtime.cuda.toolchain.compile import Cubin
from ...runtime.kernel import Kernel
from ...runtime.machine.timing import Sampler
from ...tir.errors import TilewrightError
from ...tir.json_reader import Reader
from .runner import Call, Data


class GpuRunner:
    """The first GPU. For a function with constants the caches are flushed before each call, as in a
    model that is larger than the caches.

    Raises: NoDevice, DeviceError.
    """

    def __init__(self) -> None:
        found = availability()
        if isinstance(found, Unavailable):
            raise found.error()
        self._context = found.context()
        self._probe = DeviceProbe(self._context)

    def begin(self, memory: int, threads: int) -> None:
        """Do nothing: the driver reports when device memory is exhausted, and the address space of
        a process with a GPU does not measure its memory.
        """

    def load(self, body: Reader, binary: bytes, data: Sequence[Data]) -> list[Kernel]:
        """Load a cubin, of a function whose sizes are numbers. Raises: TilewrightError,
        MemoryError.
        """
        artifact = cuda_from_json(body)
        compiler = body["compiler"].text()
        cubin = Cubin(artifact.name, artifact.target.isa, binary, None, compiler, 0.0)
        return [Kernel(artifact, DeviceCode(artifact, one.constants, cubin)) for one in data]

    def bind(self, kernel: Kernel, data: Data) -> Call:
        """A call on data in device memory. Raises: TilewrightError, MemoryError."""
        return kernel.bind_copies(*data.inputs, threads=1)

    def rate(self) -> float:
        """GFLOP/s of the probe."""
        return self._probe.gflops()

    def sampler(self, call: Call, data: Data) -> Sampler:
        """Take samples with the clock of the device. Raises: DeviceError."""
        assert isinstance(call, DeviceCall)
        return call.sampler("cold" if data.constants else "warm")

    def rotated(self, data: Data) -> int:
        """Bytes that are written before each call."""
        return evicted_bytes(self._context) if data.constants else 0

    def is_lost(self, error: TilewrightError) -> bool:
        """The outcome of an error: a crash where the context is lost."""
        return isinstance(error, DeviceError) and error.sticky
