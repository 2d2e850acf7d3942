"""Backend: what builds and runs code for the targets of one kind, as one value.

Clients find it by `table.backend_of` and ask it for what they need; none asks a target what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol

from ...tir.target import Target

if TYPE_CHECKING:  # loading an engine needs a back end, and neither schedules nor kernels
    from ...runtime.kernel import Kernel
    from ...schedule.schedule import Schedule
    from ...schedule.source import Chooser, ScheduleSource
    from ...tir.func import PrimFunc


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


class Backend(Protocol):
    """What builds and runs code for the targets of one kind."""

    def complete(self, target: Target) -> Target:
        """An open target with what it does not give as this machine has it. Raises: TargetError;
        NoDevice.
        """
        ...

    def build(self, job: KernelJob) -> Kernel:
        """The kernel of a function. Raises: as `tw.build`."""
        ...


def given_over(base: Target, target: Target) -> Target:
    """A complete target with what an open one gives, such as its threads, in place of its own."""
    given = {f.name: value for f in fields(target) if (value := getattr(target, f.name))}
    return replace(base, **given)
