"""A kernel on one draw of data: what its outputs should be, and runs that must give them.

Each run has another number of threads, another fence around each array and other first contents of
what it writes (fenced.py). The results of all have the same bits: so none depends on how threads
share the work, on what lies outside of an array, or on memory that the kernel did not write. Those
of the first are compared with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...runtime.arrays import Array
from ...runtime.cpu.workspace import lend_workspace
from ...tir.dtype import dtype as as_dtype
from ...tir.func import PrimFunc
from ...tir.reference.error_bound import Comparison, Reference, Sample, reference
from .fenced import PATTERNS, Fenced, fenced_scratch, poisoned, same_bits

THREADS = (1, 2, 3)
SCRATCH = "its scratch memory"

# runs a kernel on arrays by name, on so many threads, what it makes itself in so many'th pattern;
# the names of that beside which it wrote
Execute = Callable[[Mapping[str, Fenced], int, int], Sequence[str]]


class Fault(Exception):
    """A kernel misbehaved. code: of the error that says so to a user. comparison: with the
    reference, where that is what is wrong.
    """

    def __init__(self, said: str, comparison: Comparison | None = None, *, code: str) -> None:
        super().__init__(said)
        self.code = code
        self.said = said
        self.comparison = comparison


class CheckTrial:
    """One draw of data for a function whose sizes are numbers, for any number of kernels of it."""

    def __init__(
        self,
        func: PrimFunc,
        given: Mapping[str, Array],
        constants: Mapping[str, Array] | None = None,
        *,
        strict: bool = False,
        sample: Sample | None = None,
        cut: int = 0,
    ) -> None:
        """given: what a kernel takes, by name. constants: what it holds already. strict, sample,
        cut: as `reference` takes them.
        """
        self.func = func
        self.given = given
        self.constants = constants or {}
        self._strict = strict
        self._sample = sample
        self._cut = cut

    def check(self, execute: Execute, threads: Sequence[int] = THREADS) -> Comparison:
        """Run a kernel on each number of threads. Raises: Fault."""
        inputs = {name: Fenced(array) for name, array in self.given.items()}
        first = self._run(execute, inputs, threads[0], 0)
        for turn, count in enumerate(threads[1:], 1):
            pattern = turn % PATTERNS
            found = self._run(execute, inputs, count, pattern)
            place = _differing(first, found)
            if place is None:
                continue
            if all(place.holds(*one) for one in ((first, 0), (found, pattern))):
                raise Fault(f"it does not write {place}", code="check-unwritten")
            again = self._run(execute, inputs, threads[0], pattern)
            if _differing(first, again) is not None:
                raise Fault(
                    f"its {place} depends on what lies outside of its arrays, or on memory that "
                    "it did not write",
                    code="check-outside",
                )
            raise Fault(
                f"its {place} has other bits on {count} threads than on {threads[0]}",
                code="check-threads",
            )
        del inputs
        comparison = self.expected.compare(first)
        if not comparison:
            raise Fault(str(comparison), comparison, code="check-differs")
        return comparison

    def prepare(self) -> Reference:
        """Compute, before a kernel runs, what the outputs should be."""
        return self.expected

    @cached_property
    def expected(self) -> Reference:
        """What the outputs should be."""
        given = {**self.given, **self.constants}
        return reference(self.func, given, strict=self._strict, sample=self._sample, cut=self._cut)

    def _run(
        self, execute: Execute, inputs: Mapping[str, Fenced], threads: int, pattern: int
    ) -> dict[str, Array]:
        """The outputs of one run. Raises: Fault."""
        for fenced in inputs.values():
            fenced.set_fence(pattern)
        outputs = {
            b.name: Fenced(poisoned(b.type, b.shape, pattern), pattern) for b in self.func.outputs
        }
        arrays = {**inputs, **outputs}
        made = execute(arrays, threads, pattern)
        for name in (*broken(arrays), *made):
            raise Fault(f"it wrote outside of {_quoted(name)}", code="check-fence")
        for name, array in self.given.items():
            if not same_bits(inputs[name].array, array):
                said = f"it wrote into '{name}', which it may only read"
                raise Fault(said, code="check-input")
        return {name: fenced.array for name, fenced in outputs.items()}


def broken(arrays: Mapping[str, Fenced]) -> list[str]:
    """The names of arrays beside which something was written."""
    return [name for name, fenced in arrays.items() if not fenced.intact()]


def run_on_scratch(size: int, pattern: int, run: Callable[[], object]) -> list[str]:
    """Run on fenced scratch memory of so many bytes; its name where that has a fence broken."""
    if not size:
        run()
        return []
    scratch = fenced_scratch(size, pattern)
    with ExitStack() as stack:
        stack.enter_context(lend_workspace(scratch.array))
        run()
    return [] if scratch.intact() else [SCRATCH]


def _quoted(name: str) -> str:
    return name if name == SCRATCH else f"'{name}'"


@dataclass(frozen=True, slots=True)
class _Place:
    """An element of an output."""

    name: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name

    def holds(self, outputs: Mapping[str, Array], pattern: int) -> bool:
        """Whether it has what it started with."""
        element = outputs[self.name][self.index]
        began: bytes = poisoned(as_dtype(element.dtype), (), pattern).tobytes()
        return bool(element.tobytes() == began)


def _differing(one: Mapping[str, Array], other: Mapping[str, Array]) -> _Place | None:
    """The first element whose bits differ; any NaN is as good as another."""
    for name, array in one.items():
        if same_bits(array, other[name]):
            continue
        bits = f"u{array.itemsize}"
        same = np.equal(array.view(bits), other[name].view(bits))
        if as_dtype(array.dtype).is_float:
            both_nan = np.logical_and(array != array, other[name] != other[name])
            same = np.logical_or(same, both_nan)
        if not np.all(same):
            at = np.unravel_index(int(np.argmin(same)), array.shape)
            return _Place(name, tuple(int(i) for i in at))
    return None
