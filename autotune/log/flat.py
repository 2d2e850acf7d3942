"""Trials as rows of a flat table, for spreadsheets and data frames."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..space.decisions import decisions_of
from .file import Contents
from .record import Trial, sizes_to_json
from .summary import UNNAMED

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]


def names_of(known: Contents) -> dict[str, str]:
    """The names of the functions of a log by their keys."""
    return {workload.key: workload.name for workload in known.workloads}


def flat(trial: Trial, names: Mapping[str, str]) -> Row:
    """A trial as one row: the same columns in every row, times in seconds, lists as JSON text."""
    at, how = trial.conditions, trial.method
    threads = at.target.get("threads")
    return {
        "time": trial.time,
        "function": names.get(trial.workload, UNNAMED),
        "key": trial.workload,
        "outcome": trial.outcome,
        "seconds": trial.seconds,
        "least_seconds": min(trial.samples, default=None),
        "default": trial.is_default,
        "session": how.session,
        "rule": trial.rule,
        "decisions": json.dumps({k: one.value for k, one in decisions_of(trial.trace).items()}),
        "proof": trial.proof,
        "source": trial.source,
        "cpu": at.cpu,
        "driver": at.driver,
        "instructions": f"{at.target.get('kind')}:{at.target.get('isa')}",
        "threads": threads if isinstance(threads, int) else None,
        "tool": at.tool,
        "compiler": at.compiler,
        "flags": " ".join(at.flags),
        "cache": how.cache,
        "rotated_bytes": how.rotated,
        "calls": how.calls,
        "rounds": how.rounds,
        "calibration_gflops": how.calibration,
        "samples": json.dumps(trial.samples),
        "sizes": json.dumps(sizes_to_json(trial.sizes)),
        "text": trial.text,
    }
