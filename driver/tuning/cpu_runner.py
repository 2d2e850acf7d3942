"""The CPU as the device of a worker."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ...runtime.artifact_json import kernel_from_json
from ...runtime.cpu.native import NativeCode
from ...runtime.kernel import Kernel
from ...runtime.machine.timing import Sampler, calibrate, sample
from ...runtime.measure.limits import Probe, fma_peak
from ...runtime.toolchain.library import SharedObject
from ...tir.errors import TilewrightError
from ...tir.json_reader import Reader
from .runner import Call, Data

_PROBED = 3  # calls of the probe; the fastest counts


class CpuRunner:
    """Runs candidates on threads of this process, whose memory is limited."""

    def __init__(self) -> None:
        self._threads = 1
        self._probe: Probe | None = None

    def begin(self, memory: int, threads: int) -> None:
        """Limit the memory of this process."""
        _limit_memory(memory)
        self._threads = threads
        self._probe = fma_peak(threads)

    def load(self, body: Reader, binary: bytes, data: Sequence[Data]) -> list[Kernel]:
        """Load a shared object; its constants are the same at each size. Raises: TilewrightError,
        MemoryError.
        """
        each = [kernel_from_json(body).at(one.sizes) for one in data]
        artifact = each[0]
        place, needs = Path(body["path"].text()), artifact.target.instructions
        shared = SharedObject(binary, place, "", 0.0, needs)
        code = NativeCode.load(artifact, shared, data[0].constants)
        return [Kernel(artifact, code), *(Kernel(one, code.at(one)) for one in each[1:])]

    def bind(self, kernel: Kernel, data: Data) -> Call:
        """A call that rotates over copies of the constants."""
        return kernel.bind_copies(*data.inputs, threads=self._threads, rotated=data.copies)

    def rate(self) -> float:
        """GFLOP/s of the fastest of some calls, since other processes may slow one down."""
        assert self._probe is not None
        return self._probe.rate(min(sample(self._probe, 1) for _ in range(_PROBED)))

    def sampler(self, call: Call, data: Data) -> Sampler:
        """Take samples of as many calls as last a millisecond."""
        repeats = calibrate(call)
        return Sampler(partial(sample, call, repeats), repeats)

    def rotated(self, data: Data) -> int:
        """Bytes of the copies of the constants."""
        return data.rotated

    def is_lost(self, error: TilewrightError) -> bool:
        """The outcome of an error: on a CPU always one before the candidate runs."""
        return False


def _limit_memory(more: int) -> None:
    """Limit the memory of this process to so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bounded, hard))
