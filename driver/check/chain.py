"""The blocks of a schedule against the function's own, by numbers: the side of inlining, packing,
another layout and a reduction in parts that the proof of the nest does not see, since it starts
from the blocks as the schedule left them.

Where no step changed a block the two are one function and nothing is computed. What is too large to
be computed whole twice is left to the check of the kernel, which holds the compiled code against
the function's own definition.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...codegen.lower.lower import contraction
from ...schedule.canonical import canonical_form
from ...schedule.schedule import Schedule
from ...schedule.verdict import REFUTED, Failure, Verdict
from ...tir.analysis.specialise import specialise
from ...tir.dtype import FLOAT64
from ...tir.func import PrimFunc
from ...tir.reference.evaluate import evaluate
from ...tir.target.target import Target
from ...tir.text.equal import equal
from ...tir.work.work import operations
from ..lower_program import LoweredKernel
from .check import CheckError, sample_sizes
from .data import Draw, draw_arrays
from .program import KernelCheck

MOST_OPERATIONS = 50_000_000  # of the function: some tens of milliseconds
MOST_BYTES = 1 << 28  # of all tensors in float64
TOLERANCE = 1e-11  # of the largest value: float64 sums in another order


def check_chain(original: PrimFunc, canonical: PrimFunc, *, seed: int = 0) -> bool:
    """Compare a function with the canonical form of its schedule, whole, in float64, on random
    data; where no step changed a block the two are one. False where they are too large for that.

    Raises: CheckError.
    """
    if equal(canonical_form(original), canonical):
        return True
    buffers = {*(p.buffer for p in canonical.parameters), *canonical.allocations}
    if sum(b.size for b in buffers) * 8 > MOST_BYTES or operations(original) > MOST_OPERATIONS:
        return False
    sizes = sample_sizes(original)[min(2, len(sample_sizes(original)) - 1)]
    original, canonical = specialise(original, sizes), specialise(canonical, sizes)
    given = draw_arrays(original, Draw.NORMAL, np.random.default_rng(seed))
    before, after = evaluate(original, given, FLOAT64), evaluate(canonical, given, FLOAT64)
    for name, wanted in before.items():
        scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
        if not np.allclose(
            after[name], wanted, rtol=0, atol=TOLERANCE * (scale or 1.0), equal_nan=True
        ):
            raise CheckError(
                f"check: the schedule of '{original.name}' changes the value of '{name}'.",
                code="check-chain",
            )
    return True


def with_values(verdict: Verdict, schedule: Schedule, target: Target) -> Verdict:
    """The verdict on the nest of a schedule with what numbers say of its blocks."""
    original = contraction(schedule.original, target)
    canonical = canonical_form(contraction(schedule.func, target))
    if equal(canonical_form(original), canonical):
        return verdict
    try:
        compared = check_chain(original, canonical)
    except CheckError as error:
        return verdict.joined(Verdict(REFUTED, (Failure("values", _problem(error)),)))
    steps = ", ".join(schedule.rewrites)
    said = "equal in float64 on random data" if compared else "too large to be compared here"
    return replace(verdict, scope=(*verdict.scope, f"those, after {steps}, and its own: {said}"))


def changed_kernels(
    kernels: Mapping[str, LoweredKernel], target: Target, *, strict: bool
) -> dict[str, KernelCheck]:
    """The kernels, by name, whose blocks compute other values than their function's own."""
    found: dict[str, KernelCheck] = {}
    for name, kernel in kernels.items():
        began = time.perf_counter()
        original = contraction(kernel.func, target, strict=strict)
        try:
            check_chain(original, kernel.canonical)
        except CheckError as error:
            found[name] = KernelCheck(_problem(error), None, time.perf_counter() - began)
    return found


def _problem(error: CheckError) -> str:
    return error.message.removeprefix("check: ")
