"""Where jobs are done."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from ...codegen.artifact import Written
from ...driver.check.clock import Clock
from ...tir.target import Target
from ..log.conditions import conditions
from ..log.record import Conditions
from ..measure.jobs import Job, Reply
from ..measure.machine import Machine

_SLOTS_HERE = 2  # one is built while the other is checked; the lock keeps timing apart


class Place(Protocol):
    """Does jobs. slots: how many it should be given at a time, at least one. clock: the seconds
    that the parts of a search took; those of other machines are not among them.
    """

    clock: Clock

    @property
    def slots(self) -> int: ...

    def conditions(self, target: Target) -> Conditions:
        """What is measured there for a target."""

    def compile_ahead(self, artifact: Written) -> None:
        """A candidate that a job will hold."""

    def submit(self, job: Job) -> Future[Reply]:
        """Have a job done, some time."""

    def close(self) -> None:
        """Give up what is not done."""


class Here:
    """This machine."""

    slots = _SLOTS_HERE

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.clock = machine.clock
        self._thread = ThreadPoolExecutor(1, "tilewright-measure")

    def conditions(self, target: Target) -> Conditions:
        """What is measured here for a target."""
        return conditions(target)

    def compile_ahead(self, artifact: Written) -> None:
        """Compile it while others are written."""
        self._machine.compile_ahead(artifact)

    def submit(self, job: Job) -> Future[Reply]:
        """Have a job done after those before it."""
        return self._thread.submit(self._machine.measure, job)

    def close(self) -> None:
        """Drop what waits, and end what runs."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._machine.close()
