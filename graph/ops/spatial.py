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


def is_spatial(operator: Operator) -> TypeGuard[Spatial]:
    """Whether an operator's data has channels."""
    return operator.role is OperatorRole.SPATIAL
