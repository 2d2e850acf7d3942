"""Places: what runs the jobs of a search."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from ...codegen.artifact import Written
from ...driver.check.clock import Clock
from ...tir.target.target import Target
from ..log.conditions import conditions
from ..log.record import Conditions
from ..measure.jobs import Job, Reply
from ..measure.machine import Machine

_SLOTS_HERE = 2  # one is built while the other is checked; the lock serialises timing


class Place(Protocol):
    """Runs jobs. slots: how many to submit at a time, at least one. clock: the seconds of the
    stages of a search on this machine.
    """

    clock: Clock

    @property
    def slots(self) -> int: ...

    def conditions(self, target: Target) -> Conditions:
        """The conditions under which it measures for a target."""

    def compile_ahead(self, artifact: Written) -> None:
        """Announce a candidate of a later job."""

    def submit(self, job: Job) -> Future[Reply]:
        """Submit a job."""

    def close(self) -> None:
        """Cancel the open jobs."""


class Here:
    """This machine."""

    slots = _SLOTS_HERE

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.clock = machine.clock
        self._thread = ThreadPoolExecutor(1, "tilewright-measure")

    def conditions(self, target: Target) -> Conditions:
        """The conditions of this machine for a target."""
        return conditions(target)

    def compile_ahead(self, artifact: Written) -> None:
        """Compile a candidate while others are written."""
        self._machine.compile_ahead(artifact)

    def submit(self, job: Job) -> Future[Reply]:
        """Queue a job behind those before it."""
        return self._thread.submit(self._machine.measure, job)

    def close(self) -> None:
        """Cancel the queued jobs, and end the running one."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._machine.close()
