"""The second half of code generation, after the proof: what depends on constants alone is cut off,
and both parts are lowered to what a back end writes.
"""

from __future__ import annotations

from ...tir.func import PrimFunc
from ...tir.target import Target
from .pipeline import lower
from .split_prepare import Prepared, split_prepare


def lower_parts(func: PrimFunc, target: Target) -> Prepared:
    """Both parts of a function of stage NEST, lowered. Raises: TargetError."""
    parts = split_prepare(func)
    prepare = None if parts.prepare is None else lower(parts.prepare, target)
    return Prepared(prepare, lower(parts.run, target))
