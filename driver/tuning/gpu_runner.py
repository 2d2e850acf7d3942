"""A GPU, as a worker uses it: this process has its context, and loses it to a candidate that reads
or writes where it may not.
"""

from __future__ import annotations

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
from ...tir.parsing.json_reader import Reader
from .runner import Call, Data


class GpuRunner:
    """The first GPU. Where a function has constants, its data comes from the device's memory at
    each call, as it does in a model that is larger than the caches.

    Raises: NoDevice, DeviceError.
    """

    def __init__(self) -> None:
        found = availability()
        if isinstance(found, Unavailable):
            raise found.error()
        self._context = found.context()
        self._probe = DeviceProbe(self._context)

    def begin(self, memory: int, threads: int) -> None:
        """Nothing: the device says itself when its memory is spent, and the address space of a
        process with a GPU is no measure.
        """

    def load(self, body: Reader, binary: bytes, data: Data) -> Kernel:
        """A kernel of a cubin. Raises: TilewrightError, MemoryError."""
        artifact = cuda_from_json(body)
        compiler = body["compiler"].text()
        cubin = Cubin(artifact.name, artifact.target.isa, binary, None, compiler, 0.0)
        return Kernel(artifact, DeviceCode(artifact, data.constants, cubin))

    def bind(self, kernel: Kernel, data: Data) -> Call:
        """A call on data that lies on the device. Raises: TilewrightError, MemoryError."""
        return kernel.bind_copies(*data.inputs, threads=1)

    def rate(self) -> float:
        """GFLOP/s of the probe."""
        return self._probe.gflops()

    def sampler(self, call: Call, data: Data) -> Sampler:
        """Samples by the device's clock. Raises: DeviceError."""
        assert isinstance(call, DeviceCall)
        return call.sampler("cold" if data.constants else "warm")

    def rotated(self, data: Data) -> int:
        """Bytes that are written before each call."""
        return evicted_bytes(self._context) if data.constants else 0

    def is_lost(self, error: TilewrightError) -> bool:
        """Whether the context is lost."""
        return isinstance(error, DeviceError) and error.sticky
