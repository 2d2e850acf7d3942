"""What a worker runs candidates on: the CPU, or a GPU."""

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
    """A device, as a worker uses it. Its parts come in the order in which they stand here."""

    def begin(self, memory: int, threads: int) -> None:
        """Make ready for a job. memory: bytes of the host that it may take, beside what there is;
        threads: of a call.
        """

    def load(self, body: Reader, binary: bytes, bench: Bench) -> Kernel:
        """A candidate by what `machine` says of it. Raises: TilewrightError, MemoryError."""

    def bind(self, kernel: Kernel, bench: Bench) -> Call:
        """A call on copies of the data. Raises: TilewrightError, MemoryError."""

    def rate(self) -> float:
        """GFLOP/s of the probe, now."""

    def sampler(self, call: Call, bench: Bench) -> Sampler:
        """What takes samples of a call. Raises: DeviceError."""

    def rotated(self, bench: Bench) -> int:
        """Bytes that keep the constants of a call out of the caches; 0 where there are none."""

    def outcome(self, error: TilewrightError) -> Outcome:
        """What an error of `load`, `bind`, a check or a sampler makes of a candidate."""
