"""The numeric check: every compiled kernel runs on poisoned, fenced data of several kinds, on
several numbers of threads, against its reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...codegen.artifact import Entry
from ...runtime.arrays import Array
from ...runtime.kernel import Kernel
from ...tir.analysis.facts import agree
from ...tir.analysis.specialise import specialise
from ...tir.dim import Dim
from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.instructions.warp_products import cut_terms
from ...tir.reference.error_bound import Comparison, Sample, sample_of
from .data import Draw, draw_arrays, draws_for
from .fenced import Fenced, HostFences
from .guarded import GuardedProcess, given_arrays
from .trial import THREADS, CheckTrial, Fault, run_on_scratch

# each draw runs on these numbers of threads
THREADS_OF = {Draw.NORMAL: THREADS, Draw.WIDE: (2,), Draw.POSITIVE: (3,)}


class CheckError(TilewrightError, RuntimeError):
    """A compiled kernel wrote outside its arrays, or its results differ from the reference."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A process that runs entries of an object between guard pages: those of a kernel, in order."""

    process: GuardedProcess
    entries: Sequence[Entry]


def check_kernel(
    kernel: Kernel,
    func: PrimFunc,
    constants: Mapping[str, Array],
    *,
    strict: bool = False,
) -> Comparison:
    """Run a kernel on random inputs and compare with the reference of its function; the worst.

    Of the sizes that a call decides it takes the largest, the smallest and some in between; the
    largest on every kind of data. strict: it adds in the order of the definition.
    Raises: CheckError for a result beyond the error bound or that depends on what it may not, and
    for a write outside the arrays.
    """
    found = []
    cut = cut_terms(kernel.artifact.target, strict=strict)
    native = kernel.code.entries()
    guarded = None if native is None else Guarded(GuardedProcess(native[0]), native[1])
    for number, sizes in enumerate(sample_sizes(func)):
        plain = specialise(func, sizes)
        sample = sample_of(plain)
        for draw in draws_for(func) if number == 0 else (Draw.NORMAL,):
            checker = Checker.of(plain, constants, draw, strict=strict, sample=sample, cut=cut)
            if guarded is not None and draw is Draw.NORMAL:
                checker.check_guarded(kernel.name, guarded)
            found.append(checker.check(kernel, THREADS_OF[draw]))
    return max(found, key=lambda comparison: comparison.ratio)


def sample_sizes(func: PrimFunc) -> tuple[dict[Dim, int], ...]:
    """Sizes at which a function is tried: all as large as can be, all as small, all between, and
    each as small as can be beside the largest of the others; of these, sizes that belong together.
    """
    largest = {dim: dim.high for dim in func.dims}
    found = [
        largest,
        {dim: dim.low for dim in func.dims},
        {dim: (dim.low + 2 * dim.high) // 3 for dim in func.dims},
        *({**largest, dim: dim.low} for dim in func.dims),
    ]
    found = [sizes for sizes in found if agree(func.facts, sizes)]
    return tuple(sizes for n, sizes in enumerate(found) if sizes not in found[:n])


def describe(draws: Sequence[Draw], guarded: bool) -> str:
    """What a check of these draws ran, in words. guarded: between guard pages, too."""
    parts = []
    for draw in draws:
        counts = [str(count) for count in THREADS_OF[draw]]
        threads = " and ".join(filter(None, (", ".join(counts[:-1]), counts[-1])))
        parts.append(f"{draw} data on {threads} thread{'s' if threads != '1' else ''}")
    return f"{', '.join(parts)}; {'with' if guarded else 'without'} guard pages"


class Checker:
    """Random inputs of a function whose sizes are numbers, and what its outputs should be: computed
    once, for any number of kernels of it.
    """

    def __init__(self, trial: CheckTrial) -> None:
        self._trial = trial

    @staticmethod
    def of(
        func: PrimFunc,
        constants: Mapping[str, Array],
        draw: Draw = Draw.NORMAL,
        *,
        seed: int = 0,
        strict: bool = False,
        sample: Sample | None = None,
        cut: int = 0,
    ) -> Checker:
        """A checker of kernels that hold these constants. strict, sample, cut: as `reference` takes
        them.
        """
        drawn = draw_arrays(func, draw, np.random.default_rng(draw.value + seed))
        given = {buffer.name: drawn[buffer.name] for buffer in func.inputs}
        trial = CheckTrial(func, given, constants, strict=strict, sample=sample, cut=cut)
        return Checker(trial)

    def check_guarded(self, name: str, guarded: Guarded) -> None:
        """Run the kernel called `name` between guard pages, if that can be done.

        Raises: CheckError.
        """
        trial = self._trial
        given = {**trial.given, **trial.constants}
        try:
            arrays = given_arrays(guarded.entries, given, trial.func.outputs)
            guarded.process.check(guarded.entries, arrays, trial.prepare)
        except Fault as fault:
            raise _error(name, fault) from fault

    def check(self, kernel: Kernel, threads: Sequence[int] = THREADS) -> Comparison:
        """Run a kernel on each number of threads. Outputs and scratch memory start as no number;
        every array stands between guard bytes, on a GPU each of them there.

        Raises: CheckError for a result beyond the error bound or that depends on what it may not,
        and for a write outside the arrays.
        """
        device = kernel.code.fenced(HostFences())
        code = device or kernel.code
        checked = Kernel(kernel.artifact, code)

        def execute(arrays: Mapping[str, Fenced], count: int, pattern: int) -> Sequence[str]:
            placed = [fenced.array for fenced in arrays.values()]
            inputs = len(placed) - len(self._trial.func.outputs)
            run = partial(checked.run, placed[:inputs], placed[inputs:], threads=count)
            outside = run_on_scratch(code.scratch_bytes(count), pattern, run)
            return outside if device is None else device.broken

        try:
            return self._trial.check(execute, threads if code.has_threads else (1,))
        except Fault as fault:
            raise _error(kernel.name, fault) from fault


def _error(name: str, fault: Fault) -> CheckError:
    """What a check raises for a fault of the kernel called `name`."""
    if fault.comparison is None:
        return CheckError(f"check: kernel '{name}': {fault.said}.", code=fault.code)
    return CheckError(
        f"check: the results of kernel '{name}' differ from its reference: {fault.said}",
        code=fault.code,
    )
