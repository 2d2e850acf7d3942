"""The back end "null": functions are scheduled, lowered, proved and priced, and nothing runs."""

from __future__ import annotations

from typing import NoReturn

from ...tir.errors import TargetError
from ...tir.target import Target
from .backend import Backend, KernelJob


class NullBackend:
    """Refuses to build."""

    def complete(self, target: Target) -> Target:
        """The target: none of these is open."""
        return target

    def build(self, job: KernelJob) -> NoReturn:
        """Raises: TargetError."""
        raise _nothing_runs(job.target)


def _nothing_runs(target: Target) -> TargetError:
    return TargetError(
        f"build: target '{target}' runs nothing; expected 'c', 'cuda' or 'python'.",
        code="build-target",
        hints=("tw.prove and kernel source need no run; tw.build(..., target='c').",),
    )


NULL: Backend = NullBackend()
