"""Run one case through every check: what a script of the corpus does, and what a test does with
it.
"""

from __future__ import annotations

from ...runtime.host import host
from .case import Case
from .compiled import run_batch
from .examine import Failed, Failure, examine


def failure_of(case: Case, *, compiled: bool = True) -> Failure | None:
    """What is wrong with a case. compiled: run C on each instruction set that this machine has."""
    found = examine(case)
    if found.failure is not None or not compiled:
        return found.failure
    for lowered in found.lowered:
        if lowered.target.isa in host().isas:
            (failure,) = run_batch([lowered])
            if failure is not None:
                return failure
    return None


def replay(function: str, steps: list[object]) -> None:
    """Run a case; print that it holds. Raises: Failed."""
    failure = failure_of(Case.of(function, steps))
    if failure is not None:
        raise Failed(failure)
    print("every check holds")
