"""What is to be built, for what, and how: what a build hands to a back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..runtime.model.precision_report import PrecisionReport
from ..tir.target.target import Target

if TYPE_CHECKING:  # loading an engine needs a back end, and none of these
    from ..runtime.arrays import Array
    from ..runtime.model.model import StoredModel
    from ..schedule.schedule import Schedule
    from ..schedule.source import Chooser, ScheduleSource
    from ..tir.func import PrimFunc
    from ..tir.program.program import Program
    from .check.clock import Laps
    from .check.engine import Oracle

VerifyProgram = Literal["all", "rewrites", "kernels", "emulated", "off"]


@dataclass(frozen=True, slots=True)
class KernelJob:
    """A kernel to be built: the arguments of `tw.build`.

    is_checked: whether it is run beside its reference, where this machine can run it.
    """

    what: PrimFunc | Schedule
    target: Target
    constants: Mapping[str, object]
    schedules: ScheduleSource | Chooser | None = None
    strict: bool = False
    allow: tuple[str, ...] = ()
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is built.

    strict: no contraction, no re-association. verify: "all" and "kernels" check every kernel that
    this machine runs, and "all" the whole engine, too; "emulated" checks both for a GPU on the CPU.
    notes: lines for the report. lower_bound_bytes: below which no arena can be. keep_weights: keep
    program and original weights, so that a saved engine can be built anew. imported: the model as
    it was imported, for `verify`. seconds: what those who made the program took, for the report.
    tolerance: the share of an output's largest magnitude that `verify` allows where it is more than
    usual. divisible: see `CodeOptions`. oracle: the reference beside which the whole engine is run
    where verify is "all" or "emulated", or why there is none. allow: instructions with a liberty
    that a rule may use. precision: what products compute with, for the report. keep_kernels: take
    kernels that earlier builds kept, and keep those that are made.
    """

    strict: bool = False
    verify: VerifyProgram = "all"
    notes: tuple[str, ...] = ()
    lower_bound_bytes: int | None = None
    keep_weights: bool = True
    imported: StoredModel | None = None
    threads: int | None = None
    max_contexts: int | None = None
    seconds: Laps = ()
    tolerance: float | None = None
    divisible: frozenset[str] = frozenset()
    oracle: Oracle | str = "off"
    allow: tuple[str, ...] = ()
    precision: PrecisionReport = field(default_factory=PrecisionReport)
    keep_kernels: bool = False

    @property
    def checks_kernels(self) -> bool:
        """Whether each kernel is run beside its reference."""
        return self.verify in ("all", "kernels", "emulated")

    @property
    def checks_whole(self) -> bool:
        """Whether the whole engine is run beside its reference."""
        return self.verify in ("all", "emulated")


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A program of plain functions to be built, its Syncs in place, with its constants by name.

    source: schedules.
    """

    program: Program
    constants: Mapping[str, Array]
    target: Target
    source: ScheduleSource | None
    options: ProgramOptions
