"""Artifact: what code generation hands to the runtime, as one value: source text and how to call
what it defines.

Every entry has the type `void (void *const *args, const struct tw_team *team, int thread, int
threads)` and is called once per thread, each time with the same `args`: the data pointers of its
parameters, in order, then one pointer to scratch memory, 64-byte aligned, of `workspace_bytes +
threads * thread_workspace_bytes` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..tir.dtype import DType
from ..tir.index_check import IndexCheck
from ..tir.target import Target


@dataclass(frozen=True, slots=True)
class Parameter:
    """One pointer of a call.

    role: "input", "constant" (bound when a kernel is built), "prepared" (a result of `prepare`, or
    an input of `run` that `prepare` made; 64-byte aligned) or "output".
    check: what an output says that is no result but a check of indices; such outputs come last.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: str
    check: IndexCheck | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the whole array."""
        size = self.dtype.bytes
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of the source: its name, its parameters and the scratch memory that it needs, in
    bytes.
    """

    symbol: str
    parameters: tuple[Parameter, ...]
    workspace_bytes: int = 0
    thread_workspace_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kernel as C text.

    symbol, parameters, workspace_bytes, thread_workspace_bytes: the entry that a call runs.
    prepare: the entry that computes the parameters of role "prepared" from the constants, once; its
    own parameters are constants, then, with role "output", the prepared buffers under the names
    that `parameters` has for them. None where nothing depends on constants alone.
    """

    name: str
    symbol: str
    source: str
    target: Target
    parameters: tuple[Parameter, ...]
    workspace_bytes: int = 0
    thread_workspace_bytes: int = 0
    prepare: Entry | None = None

    @property
    def run(self) -> Entry:
        """The entry that a call runs."""
        return Entry(
            self.symbol, self.parameters, self.workspace_bytes, self.thread_workspace_bytes
        )
