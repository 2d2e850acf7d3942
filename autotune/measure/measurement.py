"""Jobs for the candidates of one function, and the trials from the replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf

from ...driver.backends.table import tuner_of
from ...runtime.machine.host import last_level_bytes
from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ..log.record import Conditions, Method, SizeTimes, Trial
from ..sizes import SizeValues
from ..space.space import Candidate
from .jobs import Job, Result
from .lowering import LoweredCandidate

ROUNDS = 5
_MEMORY = 2 << 30  # bytes that a candidate may use beyond the data of its function
_COPIES = 4  # of all arrays: data, guard regions, outputs, data for timing


@dataclass(frozen=True, slots=True)
class Subject:
    """The function of the candidates. rule: that makes their schedules; key: of the workload;
    sizes: at which they are timed.
    """

    func: PrimFunc
    target: Target
    rule: str
    key: str
    seed: int = 0
    sizes: tuple[SizeValues, ...] = ()

    def job(
        self,
        written: Sequence[LoweredCandidate],
        rounds: int = ROUNDS,
        *,
        bar: float | None = inf,
        is_final: bool = False,
    ) -> Job:
        """The job that measures candidates; see Job."""
        artifacts = tuple(one.artifact for one in written)
        memory = _MEMORY + self._bytes(len(artifacts))
        func, target = str(self.func), self.target
        default = next((n for n, one in enumerate(written) if one.candidate.is_default), None)
        return Job(
            func, self.seed, target, rounds, memory, artifacts, is_final, bar, default, self.sizes
        )

    def _bytes(self, candidates: int) -> int:
        """Bytes of the data and of the copies for each candidate."""
        moving = sum(b.type.bytes * b.size for b in (*self.func.inputs, *self.func.outputs))
        fixed = sum(b.type.bytes * b.size for b in self.func.constants)
        times = max(1, len(self.sizes))
        return _COPIES * (times * moving * (1 + candidates) + fixed) + 2 * candidates * max(
            fixed, 2 * last_level_bytes()
        )

    def unbuilt(self, candidate: Candidate, text: str, at: Conditions) -> Trial:
        """The trial of a candidate that could not be written."""
        nothing = Method("warm", 0, 0, 0, None)
        return self._trial(candidate, "", "", Result("build-failed", text), nothing, at)

    def trial(
        self,
        one: LoweredCandidate,
        result: Result,
        at: Conditions,
        session: str = "",
        processes: int = 1,
    ) -> Trial:
        """The trial that a result is. at: of the machine that measured; session: see Method."""
        least = tuner_of(self.target).least_evicted
        method = Method(
            "cold" if result.rotated >= least else "warm",
            result.rotated,
            result.calls,
            len(result.samples),
            result.calibration,
            session,
            processes,
        )
        return self._trial(one.candidate, one.source, one.proof, result, method, at)

    def _trial(
        self,
        candidate: Candidate,
        source: str,
        proof: str,
        result: Result,
        method: Method,
        at: Conditions,
    ) -> Trial:
        return Trial(
            workload=self.key,
            conditions=at,
            rule=self.rule,
            is_default=candidate.is_default,
            trace=candidate.schedule.trace,
            source=source,
            outcome=result.outcome,
            text=result.text,
            proof=proof,
            method=method,
            samples=result.samples,
            time=_now(),
            sizes=result.sizes or tuple(map(SizeTimes, self.sizes)),
        )


def same_code(known: Trial, one: LoweredCandidate) -> Trial:
    """The trial of a candidate with the same code as one that was measured."""
    candidate = one.candidate
    return replace(
        known, is_default=candidate.is_default, trace=candidate.schedule.trace, time=_now()
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
