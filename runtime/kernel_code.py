"""Code: what executes a kernel, whichever back end made it, and what a check has to know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from ..codegen.artifact import Entry
from ..tir.dtype import DType
from .arrays import Array
from .toolchain.library import SharedObject


class Fence(Protocol):
    """A copy of an array between guard bytes."""

    @property
    def memory(self) -> Array:
        """The bytes of the copy with its guards."""
        ...

    @property
    def array(self) -> Array:
        """The copy."""
        ...

    def intact(self) -> bool:
        """Whether no guard byte has changed."""
        ...


class Fences(Protocol):
    """How a check fences arrays: `guard` bytes lie before and behind each."""

    @property
    def guard(self) -> int:
        """Bytes on either side."""
        ...

    def around(self, array: Array) -> Fence:
        """A fenced copy of an array."""
        ...

    def poisoned(self, dtype: DType, shape: Sequence[int]) -> Array:
        """An array that holds what none may read."""
        ...


class Code(ABC):
    """What executes a kernel: arrays are those of inputs and outputs, in parameter order.

    What is said here is true of code that runs on arrays of the host, in one thread.
    device: what it is for. has_threads: whether it runs on as many threads as it is told.
    """

    device: Literal["CPU", "GPU"] = "CPU"
    has_threads: bool = False

    @abstractmethod
    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run once."""

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> Callable[[], object]:
        """A call that runs on these arrays again and again, by turns with so many copies of the
        constants, where there are any.
        """
        return lambda: self.run(arrays, threads)

    def assembly(self) -> str | None:
        """The compiler's text of it; None where nothing is compiled. Raises: CompilerNotFound,
        NvrtcNotFound, CompileFailed; TargetError for another kind of processor.
        """
        return None

    def scratch_bytes(self, threads: int) -> int:
        """Bytes of scratch memory of a run on so many threads."""
        return 0

    def entries(self) -> tuple[SharedObject, tuple[Entry, ...]] | None:
        """The object and the entries, in order, that another process can run between guard pages;
        None where there are none.
        """
        return None

    def fenced(self, fences: Fences) -> FencedCode | None:
        """The same with a fence around all that a launch is handed in memory of its own; None where
        it runs on the arrays themselves, which the caller fences.
        """
        return None

    def emulated(self, *, checked: bool) -> Code | None:
        """The same as the CPU emulates it; None for what is for no other device."""
        return None


class FencedCode(Code):
    """Code that looks after its fences. broken: the names of those beside which the last run
    wrote.
    """

    broken: tuple[str, ...] = ()
