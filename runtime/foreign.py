"""The code of a kernel for another kind of processor: its source is there, a run is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ..codegen.artifact import Artifact
from ..tir.errors import TargetError
from .arrays import Array


class ForeignCode:
    """What a Kernel refuses to run here; pickles."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Raises: TargetError."""
        self._refuse()

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> Callable[[], object]:
        """Raises: TargetError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TargetError(
            f"run: '{self.artifact.name}' is for {self.artifact.target}, another kind of processor "
            "than this machine's.",
            code="run-foreign",
            hints=("kernel.source is its C, to be compiled there; target 'c' is this machine.",),
        )
