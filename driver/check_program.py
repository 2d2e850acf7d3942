"""The numeric check of a model's kernels: each distinct one runs once, alone, on poisoned, fenced
random data, constants too, against the reference of its function.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..codegen.artifact import Entry
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.arrays import Array
from ..runtime.library import Library, SharedObject
from ..runtime.native import NativeEntry
from ..tir.error_bound import reference
from ..tir.func import PrimFunc
from .check import CheckError, random_array, workspace_view
from .fenced import Fenced, poisoned

POISON = 0xFF  # every byte of scratch memory: NaN in every float type


class ProgramCheckError(CheckError):
    """Kernels of a model failed their checks. functions: the names of the functions, in order."""

    def __init__(self, name: str, failures: Mapping[str, str]) -> None:
        worst = "; ".join(f"'{function}': {reason}" for function, reason in failures.items())
        super().__init__(
            f"check: {len(failures)} function(s) of '{name}' have wrong kernels: {worst}",
            code="check-program",
        )
        self.functions = tuple(failures)


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """One kernel's check: "ok", "unchecked: ..." or what is wrong; the largest error over its
    bound; seconds.
    """

    verdict: str
    error: float | None
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the kernel may be used."""
        return self.verdict == "ok" or self.verdict.startswith("unchecked")


class KernelChecker:
    """Checks the kernels of one object."""

    def __init__(
        self, artifact: ProgramArtifact, shared: SharedObject, *, threads: int = 2, seed: int = 0
    ) -> None:
        """Load the object. Raises: LibraryError."""
        self._artifact = artifact
        self._library = Library(shared, name=artifact.name)
        self._threads = threads
        self._seed = seed

    def check(self, func: PrimFunc, run: str, prepare: str | None) -> KernelCheck:
        """Check the kernel of a function. run, prepare: the symbols of its entries."""
        began = time.perf_counter()
        rng = np.random.default_rng(self._seed)
        arrays: dict[str, Fenced] = {}
        given: dict[str, Array] = {}
        for parameter in func.parameters:
            name, shape = parameter.name, parameter.buffer.shape
            if parameter.role == "output":
                arrays[name] = Fenced(poisoned(parameter.dtype, shape))
            else:
                given[name] = random_array(rng, parameter.dtype, shape)
                arrays[name] = Fenced(given[name])
        for symbol in (prepare, run):
            if symbol is not None:
                self._run(self._artifact.kernel(symbol), arrays)
        verdict, error = _judge(func, arrays, given)
        return KernelCheck(verdict, error, time.perf_counter() - began)

    def _run(self, entry: Entry, arrays: dict[str, Fenced]) -> None:
        """Run one entry on the arrays by name; what `prepare` computes is added to them."""
        for parameter in entry.parameters:
            if parameter.name not in arrays:
                arrays[parameter.name] = Fenced(poisoned(parameter.dtype, parameter.shape))
        native = NativeEntry(self._library, entry, {})
        size = native.workspace_bytes(self._threads)
        if size:
            np.frombuffer(workspace_view(size), np.uint8)[:] = POISON
        native.run([arrays[p.name].array for p in entry.parameters], self._threads)


def _judge(
    func: PrimFunc, arrays: dict[str, Fenced], given: Mapping[str, Array]
) -> tuple[str, float | None]:
    """The verdict, and the largest error over its bound. Empties `arrays`: of large weights the
    reference needs copies of its own.
    """
    outside = [name for name, fenced in arrays.items() if not fenced.intact()]
    if outside:
        return f"it wrote outside of '{outside[0]}'.", None
    changed = [name for name in given if not _same_bits(arrays[name].array, given[name])]
    if changed:
        return f"it wrote into '{changed[0]}', which it may only read.", None
    results = {buffer.name: arrays[buffer.name].array for buffer in func.outputs}
    arrays.clear()
    comparison = reference(func, given).compare(results)
    return ("ok" if comparison else f"{comparison}."), comparison.ratio


def _same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one type and shape are the same, NaN for NaN."""
    whole = f"u{one.itemsize}"
    return np.array_equal(one.view(whole), other.view(whole))
