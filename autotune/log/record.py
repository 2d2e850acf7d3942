"""The records of a tuning log, one JSON object per line.

A workload is written once, with its whole text, so that a log is self-contained; trials refer to it
by its key. Each line ends with a hash of the rest of it, so lines that were cut, joined or edited
are detected. The schema for other tools is record.schema.json.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Literal

from ...runtime.machine.timing import seconds_text
from ...schedule.trace.trace import Trace
from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.json_reader import Json, Reader, parse_json
from ...tir.text.canonical import canonical_print, workload_key
from ..errors import RecordError
from ..sizes import SizeValues

SCHEMA = 1  # of a line; incremented when the meaning of a field changes
LONGEST_LINE = 8 << 20  # bytes

Outcome = Literal["ok", "wrong", "crashed", "timed-out", "out-of-memory", "build-failed"]
OUTCOMES: tuple[Outcome, ...] = (
    "ok",
    "wrong",
    "crashed",
    "timed-out",
    "out-of-memory",
    "build-failed",
)
_SUM = 16  # hexadecimal digits
_KEY = 64
_LONGEST_TEXT = 1 << 16
_LONGEST_FUNC = 1 << 22
_MOST_SAMPLES = 1 << 12
_MOST_SIZES = 1 << 10
_MOST_DIMS = 1 << 10


@dataclass(frozen=True, slots=True)
class Workload:
    """A function that was tuned: its key, its name and its canonical print."""

    key: str
    name: str
    text: str

    @staticmethod
    def of(func: PrimFunc) -> Workload:
        """The workload of a function."""
        return Workload(workload_key(func), func.name, canonical_print(func))


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions under which a measurement holds.

    target: the fields of the Target. cpu: the model name of the device: of a CPU as the operating
    system reports it, of a GPU as its driver does. compiler: the first line of its version text;
    flags: its options. tool: the version of tilewright. driver: of a GPU, as the newest CUDA
    version that it supports; empty for a CPU.
    """

    target: Mapping[str, Json]
    cpu: str
    compiler: str
    flags: tuple[str, ...]
    tool: str
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """How a trial was timed.

    cache: "warm", or "cold": on a CPU the calls rotate over copies of the constants, `rotated`
    bytes in all; on a GPU so many bytes are written before each call.
    calls: of the kernel, in each sample; rounds: the number of samples, fewer for a candidate that
    was clearly slower than others, more for a default whose times had not settled.
    calibration: GFLOP/s of the multiply-add probe next to the samples; None where it did not run.
    session: of confirmation: the n-th samples of all trials of a session were taken in the same
    round. Empty for a trial of the search itself.
    processes: over how many processes the rounds were spread evenly; memory placement varies per
    process.
    """

    cache: Literal["warm", "cold"]
    rotated: int
    calls: int
    rounds: int
    calibration: float | None
    session: str = ""
    processes: int = 1


@dataclass(frozen=True, slots=True)
class SizeTimes:
    """A candidate at one choice of the sizes that calls decide.

    values: of the function's dims, in their order. calls: of the kernel, in each sample; samples:
    seconds of a call, one for each round; none of a candidate that failed.
    """

    values: SizeValues
    calls: int = 0
    samples: tuple[float, ...] = ()

    @property
    def seconds(self) -> float | None:
        """The median of the samples; None where nothing was timed."""
        return median(self.samples) if self.samples else None

    def __str__(self) -> str:
        seconds = self.seconds
        shown = "" if seconds is None else f": {seconds_text(seconds)}"
        return f"{'x'.join(map(str, self.values))}{shown}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and the result of measuring it.

    workload: its key. rule: which rule made the schedule; is_default: whether all decisions are the
    rule's own. source: the first 16 digits of the SHA-256 of the code; empty where none was
    written. Another version may write other code for the same trace. samples: seconds of a call.
    sizes: where calls decide sizes, at which ones it was timed; of each round `samples` then holds
    the geometric mean over them, so that the ratio of two trials is the mean of their ratios.
    text: details of a failure, or notes about an unsteady machine. proof: the status of the proof.
    time: of its end, UTC, ISO 8601.
    """

    workload: str
    conditions: Conditions
    rule: str
    is_default: bool
    trace: Trace
    source: str
    outcome: Outcome
    text: str
    proof: str
    method: Method
    samples: tuple[float, ...]
    time: str
    sizes: tuple[SizeTimes, ...] = ()

    def __str__(self) -> str:
        seconds = self.seconds
        shown = self.outcome if seconds is None else seconds_text(seconds)
        default = ", the default" if self.is_default else ""
        decisions = ", ".join(map(str, self.decisions))
        return f"{shown}: rule {self.rule}{default}, decisions {decisions or 'none'}"

    __repr__ = __str__

    @property
    def seconds(self) -> float | None:
        """The median of the samples, at several sizes the geometric mean of their medians; None for
        a trial that failed.
        """
        if self.outcome != "ok" or not self.samples:
            return None
        each = [one.seconds for one in self.sizes if one.seconds is not None]
        return geometric_mean(each) if each else median(self.samples)

    @property
    def timed_at(self) -> tuple[SizeValues, ...]:
        """The sizes at which it was to be timed; () where no call decides any."""
        return tuple(one.values for one in self.sizes)

    def seconds_at(self, values: SizeValues) -> float | None:
        """Seconds at one choice of sizes, of a function without any at (); None where unknown."""
        if not values and not self.sizes:
            return self.seconds
        return next((one.seconds for one in self.sizes if one.values == values), None)

    @property
    def decisions(self) -> tuple[object, ...]:
        """The decision at each sample_* step."""
        return tuple(step.decision for step in self.trace.steps if step.decision is not None)


Record = Workload | Trial


def line_of(record: Record) -> bytes:
    """The line of a record, with its end."""
    body = _workload_json(record) if isinstance(record, Workload) else _trial_json(record)
    return _text({**body, "sum": _sum(body)}).encode() + b"\n"


def identity(record: Record) -> str:
    """The hash at the end of the record's line, which identifies the record."""
    return _sum(_workload_json(record) if isinstance(record, Workload) else _trial_json(record))


def record_of(line: bytes) -> Record:
    """The record of a line. Raises: RecordError."""
    try:
        reader = parse_json(line.decode(), "record")
        body, schema = _checked(reader), reader["schema"].integer()
        if schema != SCHEMA:
            raise RecordError(
                f"log: the record has schema {schema}; expected {SCHEMA}.",
                code="log-schema",
                hints=("a newer tilewright reads it.",) if schema > SCHEMA else (),
            )
        kind = body["kind"].one_of("workload", "trial")
        return _workload(body) if kind == "workload" else _trial(body)
    except UnicodeDecodeError as error:
        raise RecordError(f"log: the line is no UTF-8: {error}.", code="log-line") from None
    except RecordError:
        raise
    except (TilewrightError, ArithmeticError, RecursionError) as error:
        text = error.message if isinstance(error, TilewrightError) else str(error)
        raise RecordError(f"log: no record of ours: {text}", code="log-line") from None


def _checked(reader: Reader) -> Reader:
    """The fields of a line without its sum. Raises: RecordError for a wrong sum."""
    fields = dict(reader.value) if isinstance(reader.value, dict) else {}
    actual = fields.pop("sum", None)
    expected = _sum(fields)
    if actual != expected:
        raise RecordError(
            f"log: the sum of the line is {actual!r}; expected '{expected}'.",
            code="log-sum",
            hints=("the line was cut or changed after it was written.",),
        )
    return Reader(fields, reader.where)


def _text(body: Mapping[str, Json]) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _sum(body: Mapping[str, Json]) -> str:
    text = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_SUM]


def _workload_json(workload: Workload) -> dict[str, Json]:
    return {
        "kind": "workload",
        "schema": SCHEMA,
        "key": workload.key,
        "name": workload.name,
        "text": workload.text,
    }


def _workload(body: Reader) -> Workload:
    return Workload(body["key"].text(_KEY), body["name"].text(), body["text"].text(_LONGEST_FUNC))


def _trial_json(trial: Trial) -> dict[str, Json]:
    how = trial.method
    trace = parse_json(json.dumps(trial.trace.to_json()), "trace").value  # tuples become lists
    return {
        "kind": "trial",
        "schema": SCHEMA,
        "time": trial.time,
        "workload": trial.workload,
        "conditions": conditions_to_json(trial.conditions),
        "rule": trial.rule,
        "default": trial.is_default,
        "outcome": trial.outcome,
        "text": trial.text,
        "proof": trial.proof,
        "samples": list(trial.samples),
        "method": {
            "cache": how.cache,
            "rotated": how.rotated,
            "calls": how.calls,
            "rounds": how.rounds,
            "calibration": how.calibration,
            "session": how.session,
            **({"processes": how.processes} if how.processes > 1 else {}),
        },
        "source": trial.source,
        "trace": trace,
        **({"sizes": sizes_to_json(trial.sizes)} if trial.sizes else {}),
    }


def _trial(body: Reader) -> Trial:
    return Trial(
        workload=body["workload"].text(_KEY),
        conditions=conditions_from_json(body["conditions"]),
        rule=body["rule"].text(),
        is_default=body["default"].truth(),
        trace=_trace(body["trace"]),
        source=body["source"].text(_SUM),
        outcome=outcome_of(body["outcome"]),
        text=body["text"].text(_LONGEST_TEXT),
        proof=body["proof"].text(),
        method=_method(body["method"]),
        samples=tuple(map(_seconds, body["samples"].items(_MOST_SAMPLES))),
        time=body["time"].text(64),
        sizes=sizes_from_json(body["sizes"]) if "sizes" in dict(body.fields()) else (),
    )


def sizes_to_json(sizes: Iterable[SizeTimes]) -> list[Json]:
    """What was timed at each choice of sizes, as plain JSON values."""
    return [
        {"values": list(one.values), "calls": one.calls, "samples": list(one.samples)}
        for one in sizes
    ]


def sizes_from_json(body: Reader) -> tuple[SizeTimes, ...]:
    """What `sizes_to_json` wrote. Raises: IRError."""
    return tuple(
        SizeTimes(
            tuple(value.integer() for value in one["values"].items(_MOST_DIMS)),
            one["calls"].integer(),
            tuple(map(_seconds, one["samples"].items(_MOST_SAMPLES))),
        )
        for one in body.items(_MOST_SIZES)
    )


def _seconds(body: Reader) -> float:
    seconds = body.number()
    if not 0.0 < seconds < math.inf:
        raise RecordError(
            f"log: {body.where} is {seconds}; expected a number of seconds.", code="log-line"
        )
    return seconds


def _trace(body: Reader) -> Trace:
    return Trace.from_json(dict(body.value) if isinstance(body.value, dict) else {})


def outcome_of(body: Reader) -> Outcome:
    """An outcome by its name. Raises: IRError for another text."""
    name = body.one_of(*OUTCOMES)
    return next(outcome for outcome in OUTCOMES if outcome == name)


def _method(body: Reader) -> Method:
    return Method(
        "cold" if body["cache"].one_of("warm", "cold") == "cold" else "warm",
        body["rotated"].integer(),
        body["calls"].integer(),
        body["rounds"].integer(),
        body["calibration"].or_none(Reader.number),
        body["session"].text(64),
        body["processes"].integer() if "processes" in dict(body.fields()) else 1,
    )


def conditions_to_json(at: Conditions) -> dict[str, Json]:
    """Conditions as plain JSON values."""
    return {
        "target": dict(at.target),
        "cpu": at.cpu,
        "compiler": at.compiler,
        "flags": list(at.flags),
        "tool": at.tool,
        **({"driver": at.driver} if at.driver else {}),
    }


def conditions_from_json(body: Reader) -> Conditions:
    """The conditions that `conditions_to_json` wrote. Raises: IRError."""
    return Conditions(
        {name: field.value for name, field in body["target"].fields(64)},
        body["cpu"].text(),
        body["compiler"].text(),
        tuple(flag.text() for flag in body["flags"].items(256)),
        body["tool"].text(),
        body["driver"].text() if "driver" in dict(body.fields(64)) else "",
    )
