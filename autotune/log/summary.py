"""Where the search for a function stands, by what a log holds: one entry for each function and each
setting in which it was tried, since times of two settings are not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...tir.parsing.json_reader import Json
from ..space.decisions import answers_of
from .choice import chosen
from .file import Contents
from .record import Trial
from .setting import Setting, by_setting

UNNAMED = "unnamed"  # a function whose own record is missing


@dataclass(frozen=True, slots=True)
class Standing:
    """One function in one setting. best: the trial to be used; None where nothing ran."""

    name: str
    key: str
    setting: Setting
    best: Trial | None
    trials: tuple[Trial, ...] = field(repr=False)

    @property
    def seconds(self) -> float | None:
        """What the best one took."""
        return None if self.best is None else self.best.seconds

    @property
    def default_seconds(self) -> float | None:
        """What the rule's own schedule took."""
        return default_seconds(self.trials, self.best)

    @property
    def gain(self) -> float | None:
        """The default's time over the best one's."""
        default, best = self.default_seconds, self.seconds
        return None if default is None or best is None else default / best

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many trials ended how."""
        return Counter(trial.outcome for trial in self.trials)

    @property
    def failed(self) -> int:
        """How many trials failed."""
        return len(self.trials) - self.outcomes.get("ok", 0)

    def to_json(self) -> dict[str, Json]:
        """Everything but the trials."""
        best, at = self.best, self.setting
        told: dict[str, Json] = {
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
            "default_seconds": self.default_seconds,
            "seconds": self.seconds,
            "gain": self.gain,
        }
        if best is None:
            return told
        chose: dict[str, Json] = {
            name: _json(answer.value) for name, answer in answers_of(best.trace).items()
        }
        return {**told, "rule": best.rule, "is_default": best.is_default, "decisions": chose}


def default_seconds(trials: Sequence[Trial], best: Trial | None) -> float | None:
    """What the rule's own schedule took, in the rounds of the best trial where it was there."""
    found = [trial for trial in trials if trial.is_default and trial.seconds is not None]
    session = None if best is None else best.method.session
    paired = [trial for trial in found if trial.method.session == session]
    return (paired or found)[-1].seconds if found else None


def standings(known: Contents) -> list[Standing]:
    """Every function in every setting, in the order of the log.

    One of which nothing was timed there stands in the setting of those that were.
    """
    names = {workload.key: workload.name for workload in known.workloads}
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
        Standing(
            names.get(key, UNNAMED),
            key,
            setting if setting.cache else timed.get(setting, setting),
            chosen(members),
            tuple(members),
        )
        for key, setting, members in groups
    ]


def _json(value: object) -> Json:
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return value if isinstance(value, int | float | str | None) else str(value)
