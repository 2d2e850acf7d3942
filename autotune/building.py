"""What a candidate takes until it can be compiled: lowered, proved, written as C."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..codegen.artifact import Artifact
from ..codegen.c.build import write_artifact
from ..driver.lower import lower_function
from ..tir.target import Target
from .space import Candidate

_SOURCE = 16  # digits of the hash of a source


@dataclass(frozen=True, slots=True)
class Written:
    """A candidate that was lowered, proved and written. proof: its status."""

    candidate: Candidate
    artifact: Artifact
    proof: str

    @property
    def source(self) -> str:
        """The hash of its code."""
        return hashlib.sha256(self.artifact.source.encode()).hexdigest()[:_SOURCE]


def write(candidate: Candidate, target: Target) -> Written:
    """Lower, prove and write a candidate. Raises: TilewrightError."""
    lowered = lower_function(candidate.schedule, target)
    return Written(candidate, write_artifact(lowered.parts, target), lowered.verdict.status)
