"""What the operators on data with a batch axis, channels and spatial axes have in common: where the
channels stand.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeGuard, TypeVar

from ..types import permutation_to_last
from .base import Layout, Operator, OperatorRole, Permutation

S = TypeVar("S", bound="Spatial")


@dataclass(frozen=True, slots=True)
class Pads:
    """So many elements of `value` before and after each axis of a tensor."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float | int

    def joined(self, pads: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...] | None:
        """Together with `pads` of the spatial `axes`; None where other axes are padded, too."""
        if any(self.before[d] or self.after[d] for d in range(len(self.before)) if d not in axes):
            return None
        own = (*(self.before[d] for d in axes), *(self.after[d] for d in axes))
        return tuple(one + other for one, other in zip(pads, own, strict=True))


@dataclass(frozen=True, slots=True)
class Spatial(Operator):
    """An operator whose first input has channels, on axis 1 ("NCHW") or last ("NHWC")."""

    role = OperatorRole.SPATIAL

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the channels of its data and of its result are."""

    @abstractmethod
    def channels_last(self: S) -> S:
        """The same operator with the layout NHWC."""

    def operands_last(self, rank: int) -> tuple[Permutation, ...]:
        """How its first operands are permuted for the layout NHWC, in data of so many axes; those
        behind them stay as they are.
        """
        return (permutation_to_last(rank),)

    def in_place(self: S) -> S | None:
        """The operator of layout NHWC where it reads its data as NCHW; None where it cannot."""
        return None

    def padding(self: S, pads: Pads) -> S | None:
        """The same operator on data without `pads`, which it adds itself; None where it cannot."""
        return None


def is_spatial(operator: Operator) -> TypeGuard[Spatial]:
    """Whether an operator's data has channels."""
    return operator.role is OperatorRole.SPATIAL
