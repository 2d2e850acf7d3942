"""The back end "python": the interpreter, which runs a function as it is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir.target import Target
from .backend import Backend, KernelJob

if TYPE_CHECKING:
    from ...runtime.kernel import Kernel


class PythonBackend:
    """Needs no compiler, and no schedule. What builds is imported by the method that does."""

    def complete(self, target: Target) -> Target:
        """The target: none of these is open."""
        return target

    def build(self, job: KernelJob) -> Kernel:
        """A kernel that the interpreter runs. Raises: ArgumentError for wrong constants."""
        from ...schedule.schedule import Schedule
        from ..interpreted import interpreted

        func = job.what.func if isinstance(job.what, Schedule) else job.what
        return interpreted(func, job.target, job.constants)


PYTHON: Backend = PythonBackend()
