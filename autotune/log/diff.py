"""Compare two logs: what each knows of a function in a setting."""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.json_reader import Json
from .choice import ScheduleChoice
from .file import Contents, contents
from .labels import labels
from .summary import UNNAMED, summarise


@dataclass(frozen=True, slots=True)
class LogDifference:
    """One function in one setting: the choices of two logs; None where one has no trial of it."""

    label: str
    key: str
    old: ScheduleChoice | None
    new: ScheduleChoice | None

    @property
    def ratio(self) -> float | None:
        """The new time over the old one; None where one is unknown."""
        old, new = (None if one is None else one.seconds for one in (self.old, self.new))
        return None if old is None or new is None else new / old

    @property
    def is_same(self) -> bool:
        """Whether both take the same trial of the same state."""
        old, new = self.old, self.new
        return (
            old is not None and new is not None and (old.best, old.state) == (new.best, new.state)
        )

    def to_json(self) -> dict[str, Json]:
        """The states and the times."""
        return {
            "function": self.label,
            "key": self.key,
            "old_state": None if self.old is None else self.old.state,
            "old_seconds": None if self.old is None else self.old.seconds,
            "new_state": None if self.new is None else self.new.state,
            "new_seconds": None if self.new is None else self.new.seconds,
            "ratio": self.ratio,
        }


def differences_of(old: Contents, new: Contents) -> list[LogDifference]:
    """Every function in every setting of either log, the slowest beside before first."""
    names = labels(contents((*old.workloads, *new.workloads)).workloads)
    one, other = (
        {(each.key, each.setting): each.choice for each in summarise(known)} for known in (old, new)
    )
    each = [
        LogDifference(names.get(at[0], UNNAMED), at[0], one.get(at), other.get(at))
        for at in dict.fromkeys((*one, *other))
    ]
    return sorted(each, key=lambda found: -(found.ratio or 1.0))
