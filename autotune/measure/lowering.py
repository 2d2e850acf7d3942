"""Lowering a candidate to source: lower, prove and write it as C or CUDA C."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ...codegen.artifact import Written
from ...driver.backends.table import tuner_of
from ...driver.check.clock import Clock, Laps
from ...driver.lower import lower_function
from ...tir.target.target import Target
from ..space.space import Candidate

_SOURCE = 16  # digits of the hash of a source


# of isl per proof; some took 50 us each. An undecided candidate is only checked numerically.
PROOF_OPERATIONS = 200_000


@dataclass(frozen=True, slots=True)
class LoweredCandidate:
    """The source of a candidate. proof: the status of its proof; seconds: of each step."""

    candidate: Candidate
    artifact: Written
    proof: str
    seconds: Laps

    @property
    def source(self) -> str:
        """The hash of the source."""
        return hashlib.sha256(self.artifact.source.encode()).hexdigest()[:_SOURCE]


def write(candidate: Candidate, target: Target) -> LoweredCandidate:
    """Lower, prove and write a candidate. Raises: TilewrightError."""
    lowered = lower_function(candidate.schedule, target, proof_operations=PROOF_OPERATIONS)
    clock = Clock()
    artifact = tuner_of(target).write(lowered.parts, target)
    clock.lap("write")
    seconds = (*lowered.seconds, *clock.laps)
    return LoweredCandidate(candidate, artifact, lowered.verdict.status, seconds)
