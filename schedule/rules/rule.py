"""What a rule is: a schedule program for one kind of kernel, which says what it is for, what it can
use, and what its kernel costs.

A rule is one file and one line in the list of default.py. Nobody else asks which rule it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ...tir.func import PrimFunc
from ...tir.instructions.instructions import Instruction
from ...tir.target.target import Target
from ..cost.passes import Pass
from ..cost.scheduled import scheduled_passes
from ..schedule import Schedule
from ..trace.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """A schedule program for one kind of kernel.

    name: as logs and `explain` give it. keeps_order: whether it can keep the order of each sum, or
    else the bits that this order gives; a strict build takes no other rule. instructions: those
    that it has a use for, by name.

    in_order: each sum keeps the order of its definition. units: the instructions that it may use.
    """

    name: ClassVar[str]
    keeps_order: ClassVar[bool] = False
    instructions: ClassVar[Mapping[str, Instruction]] = {}

    in_order: bool = field(default=False, kw_only=True)
    units: tuple[str, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has the structure that the rule is for."""

    @abstractmethod
    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""

    def passes(self, func: PrimFunc, target: Target) -> Sequence[Pass]:
        """The passes over memory of a function that it takes: by default those of its nest. Plans
        ask for thousands of prices, so a rule says them here where it knows them without its steps.
        """
        return scheduled_passes(self.schedule(func, target).func, target)

    def schedule(
        self, func: PrimFunc, target: Target, decisions: Decisions | None = None
    ) -> Schedule:
        """The schedule that it makes, with its analytical choices or those of `decisions`.

        Raises: ScheduleError where it takes a step that is refused.
        """
        sch = Schedule(func, target, decisions, origin="rule")
        return sch.apply(lambda s: self.apply(s, target))
