"""What a worker runs candidates on: the CPU, or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ...runtime.arrays import Array
from ...runtime.kernel import Kernel
from ...runtime.machine.timing import Sampler
from ...tir.errors import TilewrightError
from ...tir.json_reader import Reader

Call = Callable[[], object]


class Data(Protocol):
    """What candidates of a function run on."""

    @property
    def constants(self) -> Mapping[str, Array]:
        """Arrays of the constants, by name."""
        ...

    @property
    def inputs(self) -> Sequence[Array]:
        """Arrays of the inputs."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes that the data decide, in the order of the function's dims."""
        ...

    @property
    def copies(self) -> int:
        """How many copies of the constants calls take in turn, to find them out of the caches."""
        ...

    @property
    def rotated(self) -> int:
        """Bytes of all copies; 0 where there are no constants."""
        ...


class Runner(Protocol):
    """A device, as a worker uses it. Its parts come in the order in which they stand here."""

    def begin(self, memory: int, threads: int) -> None:
        """Make ready for a job. memory: bytes of the host that it may take, beside what there is;
        threads: of a call.
        """

    def load(self, body: Reader, binary: bytes, data: Sequence[Data]) -> list[Kernel]:
        """A candidate, by what `machine` says of it, for the data of each size. Raises:
        TilewrightError, MemoryError.
        """

    def bind(self, kernel: Kernel, data: Data) -> Call:
        """A call on copies of the data. Raises: TilewrightError, MemoryError."""

    def rate(self) -> float:
        """GFLOP/s of the probe, now."""

    def sampler(self, call: Call, data: Data) -> Sampler:
        """What takes samples of a call. Raises: DeviceError."""

    def rotated(self, data: Data) -> int:
        """Bytes that keep the constants of a call out of the caches; 0 where there are none."""

    def is_lost(self, error: TilewrightError) -> bool:
        """Whether an error of `load`, `bind`, a check or a sampler says that a candidate crashed
        the device.
        """
