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

from ..codegen.lower.first_half import contraction
from ..schedule.canonical import canonical_form
from ..schedule.schedule import Schedule
from ..schedule.verdict import REFUTED, Failure, Verdict
from ..tir.equal import equal
from ..tir.func import PrimFunc
from ..tir.target import Target
from ..tir.work import operations
from .check import CheckError, check_chain
from .check_program import KernelCheck
from .lower_program import LoweredKernel

MOST_OPERATIONS = 50_000_000  # of the function: some tens of milliseconds
MOST_BYTES = 1 << 28  # of all tensors in float64


def changed_value(original: PrimFunc, canonical: PrimFunc) -> str | None:
    """What is wrong with a canonical form that computes other values; "" where it is too large to
    be computed here; None where nothing is wrong.
    """
    if equal(canonical_form(original), canonical):
        return None
    buffers = {*(p.buffer for p in canonical.parameters), *canonical.allocations}
    if sum(b.size for b in buffers) * 8 > MOST_BYTES or operations(original) > MOST_OPERATIONS:
        return ""
    try:
        check_chain(original, canonical)
    except CheckError as error:
        return error.message.removeprefix("check: ")
    return None


def with_values(verdict: Verdict, schedule: Schedule, target: Target) -> Verdict:
    """The verdict on the nest of a schedule with what numbers say of its blocks."""
    original = contraction(schedule.original, target)
    canonical = canonical_form(contraction(schedule.func, target))
    if equal(canonical_form(original), canonical):
        return verdict
    wrong = changed_value(original, canonical)
    if wrong:
        found = Verdict(REFUTED, (Failure("values", wrong),))
        return verdict.joined(found)
    steps = ", ".join(schedule.rewrites)
    said = "equal in float64 on random data" if wrong is None else "too large to be compared here"
    return replace(verdict, scope=(*verdict.scope, f"those, after {steps}, and its own: {said}"))


def changed_kernels(
    kernels: Mapping[str, LoweredKernel], target: Target, *, strict: bool
) -> dict[str, KernelCheck]:
    """The kernels, by name, whose blocks compute other values than their function's own."""
    found: dict[str, KernelCheck] = {}
    for name, kernel in kernels.items():
        began = time.perf_counter()
        original = contraction(kernel.func, target, strict=strict)
        wrong = changed_value(original, kernel.lowered.canonical)
        if wrong:
            found[name] = KernelCheck(wrong, None, time.perf_counter() - began)
    return found
