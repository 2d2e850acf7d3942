"""What a candidate takes: built here, checked and timed by a worker."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..codegen.artifact import Artifact
from ..codegen.c.build import write_artifact
from ..driver.lower import lower_function
from ..runtime.artifact_json import kernel_to_json
from ..runtime.compile import compile_shared
from ..runtime.compilers import compile_flags, find_compiler
from ..runtime.host import host, last_level_bytes
from ..runtime.library import SharedObject
from ..runtime.version import tool_version
from ..tir.errors import TilewrightError
from ..tir.func import PrimFunc
from ..tir.json_reader import Json, Reader
from ..tir.target import Target
from .record import Conditions, Method, Trial, outcome_of
from .space import Candidate
from .worker_process import Lost, Worker

_SOURCE = 16  # digits of the hash of a source
_MEMORY = 2 << 30  # bytes that a candidate may take beside the data of its function
_COPIES = 4  # of all arrays: data, fences, outputs, what timing runs on


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate that was lowered, proved and compiled."""

    candidate: Candidate
    artifact: Artifact
    shared: SharedObject
    proof: str

    @property
    def source(self) -> str:
        """The hash of its code."""
        return hashlib.sha256(self.artifact.source.encode()).hexdigest()[:_SOURCE]


def conditions(target: Target) -> Conditions:
    """What is measured on this machine for a target."""
    compiler = find_compiler()
    return Conditions(
        target.to_json(),
        host().model,
        compiler.version,
        (*compile_flags(target), *compiler.flags),
        tool_version(),
    )


def build(candidate: Candidate, target: Target) -> Built:
    """Lower, prove and compile a candidate. Raises: TilewrightError."""
    lowered = lower_function(candidate.schedule, target)
    artifact = write_artifact(lowered.parts, target)
    shared = compile_shared(artifact.source, target, name=artifact.name)
    return Built(candidate, artifact, shared, lowered.verdict.status)


class Bench:
    """Measures candidates of one function on one target."""

    def __init__(
        self, func: PrimFunc, target: Target, rule: str, key: str, worker: Worker, seed: int = 0
    ) -> None:
        self._func = func
        self._text = str(func)
        self._target = target
        self._rule = rule
        self._key = key
        self._worker = worker
        self._seed = seed
        self._conditions = conditions(target)

    def failed(self, candidate: Candidate, error: TilewrightError) -> Trial:
        """The record of a candidate that could not be built."""
        return self._trial(candidate, "", "", {"outcome": "build-failed", "text": str(error)})

    def measure(self, built: Sequence[Built], rounds: int = 5) -> list[Trial]:
        """A trial for each candidate; they take turns in each round.

        Where the worker dies, every one of them has its fate: measure one at a time, then compare.
        """
        answer = self._worker.run(*self.job(built, rounds))
        if isinstance(answer, Lost):
            found: list[Json] = [{"outcome": answer.outcome, "text": answer.text}] * len(built)
        else:
            found = [item.value for item in Reader(dict(answer.body), "answer")["done"].items()]
        session = secrets.token_hex(8) if len(built) > 1 else ""
        return [
            self._trial(one.candidate, one.source, one.proof, result, rounds, session)
            for one, result in zip(built, found, strict=True)
        ]

    def job(self, built: Sequence[Built], rounds: int) -> tuple[dict[str, Json], list[bytes]]:
        """What a worker is told (worker.py), and the shared objects of the candidates."""
        body: dict[str, Json] = {
            "func": self._text,
            "seed": self._seed,
            "threads": self._target.threads,
            "memory": _MEMORY + _COPIES * self._bytes(),
            "rounds": rounds,
            "candidates": [
                {**kernel_to_json(one.artifact), "path": str(one.shared.path)} for one in built
            ],
        }
        return body, [one.shared.binary for one in built]

    def _bytes(self) -> int:
        moving = (*self._func.inputs, *self._func.outputs)
        fixed = sum(b.type.bytes * b.size for b in self._func.constants)
        return sum(b.type.bytes * b.size for b in moving) + 2 * max(fixed, 2 * last_level_bytes())

    def _trial(
        self,
        candidate: Candidate,
        source: str,
        proof: str,
        result: Json,
        rounds: int = 0,
        session: str = "",
    ) -> Trial:
        answer = Reader(result, "answer")
        outcome = outcome_of(answer["outcome"])
        is_right = outcome == "ok"
        rotated = answer["rotated"].integer() if is_right else 0
        return Trial(
            workload=self._key,
            conditions=self._conditions,
            rule=self._rule,
            is_default=candidate.is_default,
            trace=candidate.schedule.trace,
            source=source,
            outcome=outcome,
            text="" if is_right else answer["text"].text(1 << 16),
            proof=proof,
            method=Method(
                "cold" if rotated >= 2 * last_level_bytes() else "warm",
                rotated,
                answer["calls"].integer() if is_right else 0,
                rounds if is_right else 0,
                answer["calibration"].number() if is_right else None,
                session,
            ),
            samples=tuple(s.number() for s in answer["samples"].items()) if is_right else (),
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
