"""Run one case through every check: what a script of the corpus does, and what a test does with
it. Where the last step has to be refused, the case of the steps before it is checked.
"""

from __future__ import annotations

from ...runtime.machine.host import host
from ...schedule.errors import ScheduleError
from ...schedule.trace.trace import Trace
from .case import Case
from .compiled import run_batch
from .examine import CaseFailure, Failed, examine


def failure_of(case: Case, *, compiled: bool = True) -> CaseFailure | None:
    """What is wrong with a case. compiled: run C on each instruction set that this machine has."""
    if case.refused is not None:
        wrong = _not_refused(case, case.refused)
        before = Trace(case.trace.steps[:-1])
        return wrong or failure_of(Case(case.function, before), compiled=compiled)
    found = examine(case)
    if found.failure is not None or not compiled:
        return found.failure
    for lowered in found.lowered:
        if lowered.target.isa in host().isas:
            (failure,) = run_batch([lowered])
            if failure is not None:
                return failure
    return None


def _not_refused(case: Case, code: str) -> CaseFailure | None:
    """What is wrong with a refusal: there is none, or another one."""
    try:
        case.schedule()
    except ScheduleError as refusal:
        if refusal.code == code:
            return None
        return CaseFailure("refusal", refusal.code, f"{refusal}; expected '{code}'")
    return CaseFailure("refusal", "applied", f"the last step applies; expected the error '{code}'")


def replay(function: str, steps: list[object], refused: str | None = None) -> None:
    """Run a case; print that it holds. Raises: Failed."""
    failure = failure_of(Case.of(function, steps, refused))
    if failure is not None:
        raise Failed(failure)
    print("every check holds")
