"""Code for a processor that this machine has not: its source is there, a run is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ...codegen.artifact import Artifact
from ...codegen.program_artifact import ProgramArtifact
from ...tir.errors import TargetError
from ..arrays import Array
from ..kernel_code import Code
from ..machine.host import why_not_run
from ..model.interface import Interface


class ForeignCode(Code):
    """What a Kernel refuses to run here; pickles."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Raises: TargetError."""
        _refuse(self.artifact)

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> Callable[[], object]:
        """Raises: TargetError."""
        _refuse(self.artifact)

    def assembly(self) -> str:
        """The C compiler's text, where it can be told of that processor."""
        from ..toolchain.compile import assembly  # a run needs no compiler

        return assembly(self.artifact.source, self.artifact.target, name=self.artifact.name)


class ForeignProgram:
    """What an Engine refuses to run here."""

    def __init__(self, artifact: ProgramArtifact) -> None:
        self._artifact = artifact
        self.checks = artifact.checks
        self.interface = Interface(artifact)

    def frame(self, threads: int) -> NoReturn:
        """Raises: TargetError."""
        _refuse(self._artifact)


def _refuse(artifact: Artifact | ProgramArtifact) -> NoReturn:
    """Raises: TargetError."""
    elsewhere = "which the machine lacked that built it; expected a build on this one"
    raise TargetError(
        f"run: '{artifact.name}' is for {artifact.target}, "
        f"{why_not_run(artifact.target) or elsewhere}.",
        code="run-foreign",
        hints=("its source is C, to be compiled where it runs; target 'c' is this machine.",),
    )
