"""Rules for functions of several blocks, each of which has its own part in what they compute."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ..schedule import Schedule
from .rule import Rule

Stages = TypeVar("Stages")


@dataclass(frozen=True, slots=True)
class StagedRule(Rule, Generic[Stages]):
    """A rule that knows its functions by the blocks that are left when others are inlined."""

    @abstractmethod
    def recognise(self, sch: Schedule) -> Stages | None:
        """Inline what is no block of its own. Returns the blocks by what they do; None where the
        function is something else.
        """

    @abstractmethod
    def schedule_stages(self, sch: Schedule, stages: Stages, target: Target) -> None:
        """Take the steps for these blocks, and for what stands around them."""

    def may_match(self, func: PrimFunc) -> bool:
        """Whether it is worth inlining for: what the blocks as they are tell at once."""
        return True

    def matches(self, func: PrimFunc) -> bool:
        """Whether the blocks are such stages."""
        return self.may_match(func) and self.recognise(Schedule(func)) is not None

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""
        stages = self.recognise(sch)
        assert stages is not None
        self.schedule_stages(sch, stages, target)
