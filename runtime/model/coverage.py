"""How much of an engine was tuned: where the schedule of each kernel came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ...tir.text.html import html_table

TUNED = "tuned"
# the origins of schedules (Schedule.origin) as coverage names them
_NAMES = {TUNED: TUNED, "similar": "similar", "hand": "by hand", "rule": "default"}
# the order of counts; what was tuned has the state that its log gives it (Schedule.log_state)
_ORDER = ("confirmed", "candidate", "undecided", *_NAMES.values())


def tuning_text(origin: str, why: str) -> str:
    """Where a schedule came from, in the words of coverage, and what else is known of that."""
    said = _NAMES.get(origin, origin)
    return f"{said}: {why}" if why else said


@dataclass(frozen=True, slots=True)
class Covered:
    """One kernel.

    places: how often a run launches it. origin: "tuned", "similar", "rule" or "hand". why: what
    else is known of that. state: of what was tuned: "confirmed", "candidate", "undecided" or
    "default"; empty where it is unknown.
    """

    name: str
    places: int
    origin: str
    why: str = ""
    state: str = ""

    @property
    def is_tuned(self) -> bool:
        """Whether its schedule was tuned for this machine."""
        return self.origin == TUNED

    @property
    def said(self) -> str:
        """The state of what was tuned, else the origin in the words of coverage."""
        return (self.is_tuned and self.state) or _NAMES.get(self.origin, self.origin)

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.name} x {self.places}: {self.said}{why}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Coverage:
    """The kernels of an engine."""

    kernels: tuple[Covered, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many kernels are "confirmed", "candidate", "undecided", "tuned" (of unknown state),
        "similar", "by hand" and "default"; those there are.
        """
        found = Counter(kernel.said for kernel in self.kernels)
        return {name: found[name] for name in _ORDER if found[name]}

    @property
    def gaps(self) -> tuple[Covered, ...]:
        """The kernels whose schedule was not tuned for this machine."""
        return tuple(kernel for kernel in self.kernels if not kernel.is_tuned)

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        known = sum(kernel.is_tuned and bool(kernel.state) for kernel in self.kernels)
        logged = f"; {known} in the log" if known else ""
        return f"kernels {len(self.kernels)}: {counts or 'none'}{logged}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (kernel.name, str(kernel.places), kernel.said, kernel.why) for kernel in self.kernels
        ]
        table = html_table(("kernel", "launches", "schedule", "why"), rows)
        return f"<p>{escape(str(self))}</p>{table}"
