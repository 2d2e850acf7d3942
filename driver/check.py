"""The numeric check: every compiled kernel runs once on poisoned, fenced data against its
reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.artifact import Artifact
from ..runtime.arrays import Array
from ..runtime.kernel import Kernel
from ..runtime.library import ffi
from ..runtime.workspace import workspace
from ..schedule.canonical import canonical_form
from ..tir.dim import Dim
from ..tir.dtype import FLOAT64, DType
from ..tir.equal import equal
from ..tir.error_bound import Comparison, Reference, reference
from ..tir.errors import TilewrightError
from ..tir.evaluate import evaluate
from ..tir.func import PrimFunc
from ..tir.number import integer_range
from ..tir.specialise import specialise
from .fenced import Fenced, poison, poisoned

if TYPE_CHECKING:
    from .check_on_device import FencedCode

CHAIN = 1e-11  # of the largest value: float64 sums in another order
_PIECE = 1 << 20  # elements that are drawn at a time


class CheckError(TilewrightError, RuntimeError):
    """A compiled kernel wrote outside its arrays, or its results differ from the reference."""


def check_kernel(
    kernel: Kernel,
    func: PrimFunc,
    constants: Mapping[str, Array],
    *,
    seed: int = 0,
    threads: int = 2,
) -> Comparison:
    """Run a kernel on random inputs and compare with the reference of its function; the worst.

    Of the sizes that a call decides it takes the largest, the smallest and some in between.
    Raises: CheckError for a result beyond the error bound, or a write outside the arrays.
    """
    rng = np.random.default_rng(seed)
    found = (
        Checker(specialise(func, sizes), constants, rng).check(kernel, threads)
        for sizes in sample_sizes(func)
    )
    return max(found, key=lambda comparison: comparison.ratio)


def sample_sizes(func: PrimFunc) -> tuple[dict[Dim, int], ...]:
    """Sizes at which a function is tried: all as large as can be, all as small, all between."""
    found = [
        {dim: dim.high for dim in func.dims},
        {dim: dim.low for dim in func.dims},
        {dim: (dim.low + 2 * dim.high) // 3 for dim in func.dims},
    ]
    return tuple(sizes for n, sizes in enumerate(found) if sizes not in found[:n])


class Checker:
    """Random inputs of a function whose sizes are numbers, and what its outputs should be: computed
    once, for any number of kernels of it.
    """

    def __init__(
        self, func: PrimFunc, constants: Mapping[str, Array], rng: np.random.Generator
    ) -> None:
        self._func = func
        self._inputs = {b.name: random_array(rng, b.type, b.shape) for b in func.inputs}
        self._constants = constants
        self._reference: Reference | None = None

    def check(self, kernel: Kernel, threads: int) -> Comparison:
        """Run a kernel once. Outputs and scratch memory start as NaN; every array stands between
        guard bytes, on a GPU each of them there.

        Raises: CheckError for a result beyond the error bound, or a write outside the arrays.
        """
        inputs = {name: Fenced(array) for name, array in self._inputs.items()}
        outputs = {b.name: Fenced(poisoned(b.type, b.shape)) for b in self._func.outputs}
        _poison_workspace(kernel, threads)
        device = _on_device(kernel)
        (kernel if device is None else Kernel(kernel.artifact, device)).run(
            [f.array for f in inputs.values()],
            [f.array for f in outputs.values()],
            threads=threads,
        )
        broken = [name for name, f in (*inputs.items(), *outputs.items()) if not f.intact()]
        for name in (*broken, *(() if device is None else device.broken)):
            raise CheckError(
                f"check: kernel '{kernel.name}' wrote outside of '{name}'.", code="check-fence"
            )
        results = {name: fenced.array for name, fenced in outputs.items()}
        comparison = self._expected().compare(results)
        if not comparison:
            raise CheckError(
                f"check: the results of kernel '{kernel.name}' differ from its reference: "
                f"{comparison}",
                code="check-differs",
            )
        return comparison

    def _expected(self) -> Reference:
        if self._reference is None:
            self._reference = reference(self._func, {**self._inputs, **self._constants})
        return self._reference


def _on_device(kernel: Kernel) -> FencedCode | None:
    """What runs a GPU's kernel between fences; None for what no GPU runs."""
    if kernel.artifact.target.kind != "cuda":
        return None
    from .check_on_device import fenced  # the CPU's start without it is shorter

    return fenced(kernel.code)


def check_chain(original: PrimFunc, canonical: PrimFunc, *, seed: int = 0) -> None:
    """Compare a function with the canonical form of its schedule, whole, in float64, on random
    data.

    It is the numeric side of the theorems behind steps that change blocks: inlining, packing,
    another layout. Where no step did, the two are one function and nothing is computed.
    Raises: CheckError.
    """
    if equal(canonical_form(original), canonical):
        return
    rng = np.random.default_rng(seed)
    sizes = sample_sizes(original)[-1]
    original, canonical = specialise(original, sizes), specialise(canonical, sizes)
    given = {
        p.name: random_array(rng, p.dtype, p.buffer.shape)
        for p in original.parameters
        if p.role != "output"
    }
    before, after = evaluate(original, given, FLOAT64), evaluate(canonical, given, FLOAT64)
    for name, wanted in before.items():
        scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
        if not np.allclose(
            after[name], wanted, rtol=0, atol=CHAIN * (scale or 1.0), equal_nan=True
        ):
            raise CheckError(
                f"check: the schedule of '{original.name}' changes the value of '{name}'.",
                code="check-chain",
            )


def random_array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Random numbers of a type: normal floats, small integers, truth values."""
    if dtype.is_float:
        array = np.empty(shape, dtype.numpy)
        flat = array.reshape(-1)
        for start in range(0, flat.size, _PIECE):  # they are drawn in float64, twice the memory
            piece = flat[start : start + _PIECE]
            piece[...] = rng.standard_normal(piece.size)
        return array
    high = 2 if dtype.is_bool else min(100, integer_range(dtype)[1])
    return rng.integers(0, high, shape).astype(dtype.numpy)


def _poison_workspace(kernel: Kernel, threads: int) -> None:
    artifact = kernel.artifact
    if not isinstance(artifact, Artifact):
        return
    size = artifact.workspace_bytes + threads * artifact.thread_workspace_bytes
    if size:
        poison(np.frombuffer(workspace_view(size), np.uint8))


def workspace_view(size: int) -> memoryview:
    """The calling thread's scratch memory, which its next run uses, as writable bytes."""
    return memoryview(ffi.buffer(workspace(size), size))
