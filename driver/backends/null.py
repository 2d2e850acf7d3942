"""The back end "null": functions are scheduled, lowered, proved and priced, and nothing runs."""

from __future__ import annotations

from typing import NoReturn

from ...runtime.engine.engine_code import Sections
from ...runtime.engine.format import Malformed
from ...tir.errors import TargetError
from ...tir.json_reader import Reader
from ...tir.target.target import Target
from ..jobs import KernelJob, ProgramJob
from .backend import Backend


class NullBackend:
    """Refuses to build."""

    is_emulated = False
    tuner = None

    def complete(self, target: Target) -> Target:
        """The target: none of these is open."""
        return target

    def why_not_run(self, target: Target) -> str | None:
        """Nothing runs."""
        return "which runs nothing"

    def stamp(self, target: Target) -> str:
        """Nothing compiles."""
        return ""

    def warm_up(self, target: Target) -> None:
        """There is nothing to make."""

    def build(self, job: KernelJob) -> NoReturn:
        """Raises: TargetError."""
        hint = "tw.prove and kernel source need no run; tw.build(..., target='c')."
        raise _nothing_runs(job.target, hint)

    def build_program(self, job: ProgramJob) -> NoReturn:
        """Raises: TargetError."""
        raise _nothing_runs(job.target)

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> NoReturn:
        """Raises: Malformed: no such engine was written."""
        raise Malformed("its target runs nothing.")


def _nothing_runs(target: Target, *hints: str) -> TargetError:
    return TargetError(
        f"build: target '{target}' runs nothing; expected 'c', 'cuda' or 'python'.",
        code="build-target",
        hints=hints,
    )


NULL: Backend = NullBackend()
