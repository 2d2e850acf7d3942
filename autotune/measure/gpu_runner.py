"""A GPU as the device of a worker. The context belongs to this process, and is lost when a
candidate accesses invalid memory.
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
from ..log.record import Outcome
from .bench import Bench
from .runner import Call


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

    def load(self, body: Reader, binary: bytes, bench: Bench) -> Kernel:
        """Load a cubin. Raises: TilewrightError, MemoryError."""
        artifact = cuda_from_json(body)
        compiler = body["compiler"].text()
        cubin = Cubin(artifact.name, artifact.target.isa, binary, None, compiler, 0.0)
        return Kernel(artifact, DeviceCode(artifact, bench.constants, cubin))

    def bind(self, kernel: Kernel, bench: Bench) -> Call:
        """A call on data in device memory. Raises: TilewrightError, MemoryError."""
        return kernel.bind_copies(*bench.inputs, threads=1)

    def rate(self) -> float:
        """GFLOP/s of the probe."""
        return self._probe.gflops()

    def sampler(self, call: Call, bench: Bench) -> Sampler:
        """Take samples with the clock of the device. Raises: DeviceError."""
        assert isinstance(call, DeviceCall)
        return call.sampler("cold" if bench.constants else "warm")

    def rotated(self, bench: Bench) -> int:
        """Bytes that are written before each call."""
        return evicted_bytes(self._context) if bench.constants else 0

    def outcome(self, error: TilewrightError) -> Outcome:
        """The outcome of an error: a crash where the context is lost."""
        lost = isinstance(error, DeviceError) and error.sticky
        return "crashed" if lost else "build-failed"
