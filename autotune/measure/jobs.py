"""The messages between a search and a machine that measures: jobs with the source of candidates,
and replies with outcomes and times.

No code of the caller is sent and nothing is pickled, so any machine with tilewright and a C
compiler, or NVRTC and a GPU, can run a job.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from ...codegen.artifact import Written
from ...driver.backends.table import tuner_of
from ...runtime.artifact_json import target_from_json
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from ..log.disturbance import drift_in
from ..log.record import (
    Conditions,
    Outcome,
    SizeTimes,
    conditions_from_json,
    conditions_to_json,
    outcome_of,
    sizes_from_json,
    sizes_to_json,
)
from ..sizes import SizeValues
from .frames import Frame, decode, encode

LONGEST_FUNC = 1 << 22
_LONGEST_TEXT = 1 << 16


@dataclass(frozen=True, slots=True)
class Job:
    """Candidates of one function to compile, check and time in turns.

    func: the function as text; seed: of its data. target: of the candidates; its number of threads
    runs them. is_final: a confirmation round, whose candidates were checked before and are timed in
    a fresh process. bar: seconds of the fastest known candidate: clearly slower ones get fewer
    rounds. None: all candidates get all rounds. memory: the limit of a worker in bytes. default:
    the number of the default candidate, where it is among them. sizes: at which candidates run, of
    a function whose sizes calls decide.
    """

    func: str
    seed: int
    target: Target
    rounds: int
    memory: int
    candidates: tuple[Written, ...] = field(repr=False)
    is_final: bool = False
    bar: float | None = inf
    default: int | None = None
    sizes: tuple[SizeValues, ...] = ()

    def encode(self) -> bytes:
        """The job as bytes."""
        tuner = tuner_of(self.target)
        body: dict[str, Json] = {
            "func": self.func,
            "seed": self.seed,
            "target": dict(self.target.to_json()),
            "rounds": self.rounds,
            "memory": self.memory,
            "is_final": self.is_final,
            "bar": bar_to_json(self.bar),
            "default": self.default,
            "sizes": [list(values) for values in self.sizes],
            "candidates": [tuner.to_json(artifact) for artifact in self.candidates],
        }
        return encode(body, [artifact.source.encode() for artifact in self.candidates])

    @staticmethod
    def decode(data: bytes) -> Job:
        """The job that `encode` wrote. Raises: IRError."""
        frame = whole(data)
        body = Reader(dict(frame.body), "job")
        pairs = zip(body["candidates"].items(), frame.blobs, strict=True)
        target = target_from_json(body["target"])
        tuner = tuner_of(target)
        return Job(
            func=body["func"].text(LONGEST_FUNC),
            seed=body["seed"].integer(),
            target=target,
            rounds=body["rounds"].integer(),
            memory=body["memory"].integer(),
            is_final=body["is_final"].truth(),
            bar=bar_from_json(body["bar"]),
            default=body["default"].or_none(Reader.integer),
            sizes=size_values(body["sizes"]),
            candidates=tuple(tuner.from_json(one, text.decode()) for one, text in pairs),
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one candidate.

    samples: seconds of a call; calls: in each sample; rotated: bytes of the constants over which
    calls rotate, or that are written before each call on a GPU; calibration: GFLOP/s of the
    multiply-add probe. text: details of a failure, or notes about drift. sizes: as of a Trial.
    """

    outcome: Outcome
    text: str = ""
    samples: tuple[float, ...] = ()
    calls: int = 0
    rotated: int = 0
    calibration: float | None = None
    sizes: tuple[SizeTimes, ...] = ()

    def after(self, before: Result) -> Result:
        """This result with the samples of an earlier one before its own."""
        joined = (
            (
                replace(new, samples=old.samples + new.samples)
                for old, new in zip(before.sizes, self.sizes, strict=True)
            )
            if before.sizes
            else self.sizes
        )
        return replace(self, samples=before.samples + self.samples, sizes=tuple(joined))

    def to_json(self) -> dict[str, Json]:
        """The result as plain JSON values."""
        return {
            "outcome": self.outcome,
            "text": self.text,
            "samples": list(self.samples),
            "calls": self.calls,
            "rotated": self.rotated,
            "calibration": self.calibration,
            "sizes": sizes_to_json(self.sizes),
        }

    @staticmethod
    def from_json(body: Reader) -> Result:
        """The result that `to_json` wrote. Raises: IRError."""
        return Result(
            outcome_of(body["outcome"]),
            body["text"].text(_LONGEST_TEXT),
            tuple(item.number() for item in body["samples"].items()),
            body["calls"].integer(),
            body["rotated"].integer(),
            body["calibration"].or_none(Reader.number),
            sizes_from_json(body["sizes"]),
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a job.

    conditions: of the machine that measured. results: of each candidate.
    """

    conditions: Conditions
    results: tuple[Result, ...]

    @property
    def is_calm(self) -> bool:
        """Whether something was timed, and the machine was not busy meanwhile."""
        timed = [result.text for result in self.results if result.outcome == "ok"]
        return bool(timed) and not any(map(drift_in, timed))

    def encode(self) -> bytes:
        """The reply as bytes."""
        body: dict[str, Json] = {
            "conditions": conditions_to_json(self.conditions),
            "results": [result.to_json() for result in self.results],
        }
        return encode(body)

    @staticmethod
    def decode(data: bytes) -> Reply:
        """The reply that `encode` wrote. Raises: IRError."""
        body = Reader(dict(whole(data).body), "reply")
        return Reply(
            conditions_from_json(body["conditions"]),
            tuple(map(Result.from_json, body["results"].items())),
        )


def size_values(body: Reader) -> tuple[SizeValues, ...]:
    """The sizes of a job. Raises: IRError."""
    return tuple(tuple(value.integer() for value in one.items()) for one in body.items())


def whole(data: bytes) -> Frame:
    """The only frame of some bytes. Raises: EOFError."""
    found = decode(data)
    if found is None or found[1]:
        raise EOFError("the data are not one complete message")
    return found[0]


def bar_to_json(bar: float | None) -> dict[str, Json]:
    """The bar as JSON, which has no infinity: an infinite bar has no seconds."""
    return {"drops": bar is not None, "seconds": None if bar in (None, inf) else bar}


def bar_from_json(body: Reader) -> float | None:
    """The bar that `bar_to_json` wrote. Raises: IRError."""
    if not body["drops"].truth():
        return None
    seconds = body["seconds"]
    return inf if seconds.value is None else seconds.number()
