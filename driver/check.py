"""The numeric check: every compiled kernel runs once on poisoned, fenced data against its reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..runtime.kernel import Kernel
from ..runtime.library import ffi
from ..runtime.workspace import workspace
from ..tir.dtype import DType
from ..tir.error_bound import Comparison, reference
from ..tir.errors import TilewrightError
from ..tir.func import PrimFunc

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

GUARD = 256  # bytes on either side of an array
_FENCE = 0xA5
_POISON = 0xFF  # all bits set: NaN in every float type


class CheckError(TilewrightError, RuntimeError):
    """A compiled kernel wrote outside its arrays, or its results differ from the reference."""


def check_kernel(
    kernel: Kernel, func: PrimFunc, constants: Mapping[str, Array], *, seed: int = 0, threads: int = 2
) -> Comparison:
    """Run a kernel on random inputs and compare with the reference of its function.

    Outputs and scratch memory start as NaN; every array stands between guard bytes.
    Raises: CheckError for a result beyond the error bound, or a write outside the arrays.
    """
    rng = np.random.default_rng(seed)
    inputs = [Fenced(random_array(rng, b.type, b.shape)) for b in func.inputs]
    outputs = [Fenced(poisoned(b.type, b.shape)) for b in func.outputs]
    _poison_workspace(kernel, threads)
    kernel(*(f.array for f in inputs), *(f.array for f in outputs), threads=threads)
    named = dict(zip((b.name for b in func.inputs), (f.array for f in inputs), strict=True))
    for name, fenced in zip((b.name for b in (*func.inputs, *func.outputs)), (*inputs, *outputs), strict=True):
        if not fenced.intact():
            raise CheckError(
                f"check: kernel '{kernel.name}' wrote outside of '{name}'.", code="check-fence"
            )
    results = {b.name: f.array for b, f in zip(func.outputs, outputs, strict=True)}
    comparison = reference(func, {**named, **constants}).compare(results)
    if not comparison:
        raise CheckError(
            f"check: the results of kernel '{kernel.name}' differ from its reference: {comparison}",
            code="check-differs",
        )
    return comparison


def random_array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Random numbers of a type: normal floats, small integers, truth values."""
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    high = 2 if dtype.is_bool else 100
    return rng.integers(0, high, shape).astype(dtype.numpy)


def poisoned(dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array all of whose bits are set."""
    array = np.empty(shape, dtype.numpy)
    array.reshape(-1).view(np.uint8)[:] = _POISON
    return array


class Fenced:
    """A copy of an array with guard bytes on either side. The copy is aligned to its item only."""

    def __init__(self, array: Array) -> None:
        self._memory = np.full(array.nbytes + 2 * GUARD, _FENCE, np.uint8)
        middle = self._memory[GUARD : GUARD + array.nbytes]
        self.array: Array = middle.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def intact(self) -> bool:
        """Whether no guard byte has changed."""
        ends = (self._memory[:GUARD], self._memory[self._memory.size - GUARD :])
        return all(bool((end == _FENCE).all()) for end in ends)


def _poison_workspace(kernel: Kernel, threads: int) -> None:
    size = kernel.artifact.workspace_bytes + threads * kernel.artifact.thread_workspace_bytes
    if size:
        np.frombuffer(workspace_view(size), np.uint8)[:] = _POISON


def workspace_view(size: int) -> memoryview:
    """The calling thread's scratch memory, which its next run uses, as writable bytes."""
    return memoryview(ffi.buffer(workspace(size), size))
