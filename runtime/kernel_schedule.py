"""What a kernel says of the schedule that it was built by: a `tw.Schedule`, of which the runtime
knows this much.
"""

from __future__ import annotations

from typing import Protocol, Self

from ..tir.func import PrimFunc
from ..tir.text.side_by_side import SideBySide


class KernelSchedule(Protocol):
    """A function, and the steps that were taken on it. original: the function before them."""

    original: PrimFunc

    @property
    def func(self) -> PrimFunc:
        """The function as the steps left it."""

    @property
    def trace(self) -> object:
        """The steps as data, a `tw.Trace`, which `tw.Schedule.replay` takes."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps as lines."""

    def copy(self) -> Self:
        """Another one with the same steps."""

    def show(self) -> None:
        """Print the loop nest and the steps."""

    def compare(self, steps: int = 1) -> SideBySide:
        """The function before its last `steps` steps beside the one after them."""

    def __repr__(self) -> str: ...
