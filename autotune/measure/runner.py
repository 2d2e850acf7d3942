"""The interface of a device to a worker: the CPU, or a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...runtime.kernel import Kernel
from ...runtime.machine.timing import Sampler
from ...tir.errors import TilewrightError
from ...tir.parsing.json_reader import Reader
from ..log.record import Outcome
from .bench import Bench

Call = Callable[[], object]


class Runner(Protocol):
    """A device of a worker. The methods are called in the order in which they stand here."""

    def begin(self, memory: int, threads: int) -> None:
        """Prepare for a job. memory: bytes of host memory that it may use in addition; threads: of
        a call.
        """

    def load(self, body: Reader, binary: bytes, bench: Bench) -> Kernel:
        """Load a candidate. body: what `machine` sends. Raises: TilewrightError, MemoryError."""

    def bind(self, kernel: Kernel, bench: Bench) -> Call:
        """A call on copies of the data. Raises: TilewrightError, MemoryError."""

    def rate(self) -> float:
        """Run the probe; its GFLOP/s."""

    def sampler(self, call: Call, bench: Bench) -> Sampler:
        """A sampler of a call. Raises: DeviceError."""

    def rotated(self, bench: Bench) -> int:
        """Bytes that evict the constants of a call from the caches; 0 where there are none."""

    def outcome(self, error: TilewrightError) -> Outcome:
        """The outcome of a candidate for an error of `load`, `bind`, a check or a sampler."""
