"""The numeric check of a model's kernels: each distinct one runs alone on poisoned, fenced random
data, constants too, of several kinds and on several numbers of threads, against the reference of
its function.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...codegen.artifact import Entry
from ...codegen.program_artifact import ProgramArtifact
from ...runtime.cpu.native import NativeEntry
from ...runtime.toolchain.library import Library, SharedObject
from ...tir.analysis.specialise import specialise
from ...tir.func import PrimFunc
from ...tir.reference.error_bound import sample_of
from .budget import checked_sizes
from .check import THREADS_OF, CheckError, describe
from .data import Draw, draw_arrays, draws_for
from .fenced import Fenced, poisoned
from .guarded import GuardedProcess, given_arrays
from .trial import CheckTrial, Fault, broken, run_on_scratch


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
    bound; seconds; on what it ran.
    """

    verdict: str
    error: float | None
    seconds: float
    ran: str = ""

    @property
    def ok(self) -> bool:
        """Whether the kernel may be used."""
        return self.verdict == "ok" or self.verdict.startswith("unchecked")


class KernelChecker:
    """Checks the kernels of one object."""

    def __init__(self, artifact: ProgramArtifact, shared: SharedObject) -> None:
        """Load the object. Raises: LibraryError."""
        self._artifact = artifact
        self._library = Library(shared, name=artifact.name)
        self._guarded = GuardedProcess(shared)

    def check(
        self, func: PrimFunc, run: str, prepare: str | None, *, strict: bool = False
    ) -> KernelCheck:
        """Check the kernel of a function. run, prepare: the symbols of its entries. strict: it adds
        in the order of the definition.
        """
        began = time.perf_counter()
        symbols = [symbol for symbol in (prepare, run) if symbol is not None]
        kernels = [self._artifact.kernel(symbol) for symbol in symbols]
        chosen, error, draws = checked_sizes(func), 0.0, draws_for(func)
        guarded = False
        try:
            for values in chosen:
                plain = specialise(func, values)
                sample, entries = sample_of(plain), [entry.at(values) for entry in kernels]
                execute = partial(self._run, entries)
                for draw in draws if values is chosen[0] else (Draw.NORMAL,):
                    given = draw_arrays(plain, draw, np.random.default_rng(draw.value))
                    trial = CheckTrial(plain, given, strict=strict, sample=sample)
                    if draw is Draw.NORMAL:
                        arrays = given_arrays(entries, given, plain.outputs)
                        guarded = self._guarded.check(entries, arrays, trial.prepare)
                    error = max(error, trial.check(execute, THREADS_OF[draw]).ratio)
        except Fault as fault:
            ratio = None if fault.comparison is None else fault.comparison.ratio
            return KernelCheck(f"{fault.said}.", ratio, time.perf_counter() - began)
        return KernelCheck("ok", error, time.perf_counter() - began, describe(draws, guarded))

    def _run(
        self, entries: Sequence[Entry], given: Mapping[str, Fenced], threads: int, pattern: int
    ) -> list[str]:
        """Run entries on the arrays by name, and on what `prepare` computes. The names of that
        beside which they wrote.
        """
        found: list[str] = []
        arrays, own = dict(given), set(given)
        for entry in entries:
            for parameter in entry.parameters:
                if parameter.name not in arrays:
                    array = poisoned(parameter.dtype, parameter.largest_shape, pattern)
                    arrays[parameter.name] = Fenced(array, pattern)
            native = NativeEntry(self._library, entry, {})
            placed = [arrays[p.name].array for p in entry.parameters]
            size = native.workspace_bytes(threads)
            found += run_on_scratch(size, pattern, partial(native.run, placed, threads))
        made = {name: fenced for name, fenced in arrays.items() if name not in own}
        return [*found, *broken(made)]
