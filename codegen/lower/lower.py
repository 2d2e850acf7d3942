"""Lowering in its three parts: contraction, before anything else; the nest that the proof reads;
then, with what depends on constants alone cut off, what a back end writes.
"""

from __future__ import annotations

from ...tir.func import PrimFunc
from ...tir.target.target import Target
from .passes import CONTRACTION, NEST, lowering
from .run_passes import Verified, run_passes
from .split_prepare import Prepared, split_prepare


def contraction(func: PrimFunc, target: Target, *, strict: bool = False) -> PrimFunc:
    """From stage SCHEDULED to stage CONTRACTED: fused multiply-adds are decided. Strict builds and
    targets without one keep the function as it is.
    """
    if strict or not target.has_fma:
        return func
    return run_passes(func, CONTRACTION, verified=Verified.NOWHERE)


def lower_to_nest(func: PrimFunc, *, verified: Verified = Verified.NOWHERE) -> PrimFunc:
    """From stage CONTRACTED to stage NEST."""
    return run_passes(func, NEST, verified=verified)


def lower(func: PrimFunc, target: Target, *, verified: Verified = Verified.ENDS) -> PrimFunc:
    """From stage NEST to stage LOWERED. Raises: TargetError and others of the passes."""
    return run_passes(func, lowering(target), verified=verified)


def lower_parts(func: PrimFunc, target: Target, *, verified: Verified = Verified.ENDS) -> Prepared:
    """Both parts of a function of stage NEST, lowered. Raises: TargetError."""
    parts = split_prepare(func)
    prepare = None if parts.prepare is None else lower(parts.prepare, target, verified=verified)
    return Prepared(prepare, lower(parts.run, target, verified=verified))
