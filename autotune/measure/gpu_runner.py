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
from ..log.record import Outcome
from .bench import Bench
from .runner import Call


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

    def load(self, body: Reader, binary: bytes, bench: Bench) -> Kernel:
        """A kernel of a cubin. Raises: TilewrightError, MemoryError."""
        artifact = cuda_from_json(body)
        compiler = body["compiler"].text()
        cubin = Cubin(artifact.name, artifact.target.isa, binary, None, compiler, 0.0)
        return Kernel(artifact, DeviceCode(artifact, bench.constants, cubin))

    def bind(self, kernel: Kernel, bench: Bench) -> Call:
        """A call on data that lies on the device. Raises: TilewrightError, MemoryError."""
        return kernel.bind_copies(*bench.inputs, threads=1)

    def rate(self) -> float:
        """GFLOP/s of the probe."""
        return self._probe.gflops()

    def sampler(self, call: Call, bench: Bench) -> Sampler:
        """Samples by the device's clock. Raises: DeviceError."""
        assert isinstance(call, DeviceCall)
        return call.sampler("cold" if bench.constants else "warm")

    def rotated(self, bench: Bench) -> int:
        """Bytes that are written before each call."""
        return evicted_bytes(self._context) if bench.constants else 0

    def outcome(self, error: TilewrightError) -> Outcome:
        """A crash, where the context is lost."""
        lost = isinstance(error, DeviceError) and error.sticky
        return "crashed" if lost else "build-failed"
