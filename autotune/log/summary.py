"""Summaries of a log: one for each function in each setting, since times of two settings are not
compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...tir.json_reader import Json
from ..space.decisions import decisions_of
from .choice import ScheduleChoice, choose
from .disturbance import drift_of
from .file import Contents
from .labels import labels
from .record import SizeTimes, Trial
from .setting import Setting, by_setting

UNNAMED = "unnamed"  # a function whose own record is missing


@dataclass(frozen=True, slots=True)
class TuningSummary:
    """One function in one setting. label: its name and sizes, unlike those of all others."""

    name: str
    label: str
    key: str
    setting: Setting
    choice: ScheduleChoice
    trials: tuple[Trial, ...] = field(repr=False)

    @property
    def sizes(self) -> tuple[str, ...]:
        """At which sizes it was timed, each with the time of the best trial, as text; () where no
        call decides any.
        """
        best = self.choice.best
        timed = map(SizeTimes, self.setting.sizes) if best is None else best.sizes
        return tuple(map(str, timed))

    @property
    def outcomes(self) -> Mapping[str, int]:
        """The number of trials of each outcome."""
        return Counter(trial.outcome for trial in self.trials)

    @property
    def failed(self) -> int:
        """The number of trials that failed."""
        return len(self.trials) - self.outcomes.get("ok", 0)

    def to_json(self) -> dict[str, Json]:
        """The summary without its trials."""
        choice, at = self.choice, self.setting
        body: dict[str, Json] = {
            "function": self.name,
            "key": self.key,
            "cpu": at.cpu,
            "driver": at.driver,
            "instructions": at.instructions,
            "threads": at.threads,
            "tool": at.tool,
            "compiler": at.compiler,
            "cache": at.cache,
            "trials": len(self.trials),
            "outcomes": dict(self.outcomes),
            "disturbed": sum(drift_of(trial) > 0 for trial in self.trials),
            "state": choice.state,
            "why": choice.why,
            "awaiting": len(choice.awaiting),
            "default_seconds": choice.default_seconds,
            "seconds": choice.seconds,
            "gain": choice.gain,
        }
        if at.sizes:
            body["sizes"] = [
                {
                    "values": list(values),
                    "default_seconds": choice.default_seconds_at(values),
                    "seconds": choice.seconds_at(values),
                }
                for values in at.sizes
            ]
        best = choice.best
        if best is None:
            return body
        decisions: dict[str, Json] = {
            name: _json(decision.value) for name, decision in decisions_of(best.trace).items()
        }
        return {**body, "rule": best.rule, "is_default": best.is_default, "decisions": decisions}


def summarise(known: Contents) -> list[TuningSummary]:
    """Summarise every function in every setting, in the order of the log.

    A function of which no trial was timed joins the setting of the others that differs only in the
    caches.
    """
    names = {workload.key: workload.name for workload in known.workloads}
    shown = labels(known.workloads)
    by_key: dict[str, list[Trial]] = {}
    for trial in known.trials:
        by_key.setdefault(trial.workload, []).append(trial)
    groups = [
        (key, setting, members)
        for key, trials in by_key.items()
        for setting, members in by_setting(trials).items()
    ]
    timed = {replace(setting, cache=""): setting for _, setting, _ in groups if setting.cache}
    return [
        TuningSummary(
            names.get(key, UNNAMED),
            shown.get(key, UNNAMED),
            key,
            setting if setting.cache else timed.get(setting, setting),
            choose(members),
            tuple(members),
        )
        for key, setting, members in groups
    ]


def _json(value: object) -> Json:
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return value if isinstance(value, int | float | str | None) else str(value)
