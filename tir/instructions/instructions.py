"""The instructions that a tensorized loop may become, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..target.target import Target
from .tensor_intrinsics import TENSOR_INTRINSICS, TensorIntrinsic
from .warp_products import WARP_PRODUCTS, WarpProduct

Instruction = TensorIntrinsic | WarpProduct

INSTRUCTIONS: Mapping[str, Instruction] = {**TENSOR_INTRINSICS, **WARP_PRODUCTS}


def usable(
    known: Mapping[str, Instruction],
    target: Target | None,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> tuple[str, ...]:
    """Those of the `known` instructions that rules may use for a target, or for any.

    strict: none that takes a liberty. allow: those that are used only where they are asked for.
    """
    return tuple(
        one.name
        for one in known.values()
        if not (strict and one.liberty)
        and (not one.asked_for or one.name in allow)
        and (target is None or one.is_on(target))
    )
