"""The events of a search, for programs that follow it; events.schema.json says what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from ..tir.json_reader import Json
from .log.choice import ScheduleChoice
from .log.disturbance import drift_of
from .log.labels import labels
from .log.record import Trial, Workload
from .report.progress_table import ProgressTable
from .result import TuneResult

VERSION = 1  # incremented when the meaning of a field changes

Event = dict[str, Json]
EventSink = Callable[[Event], None]
EventName = Literal["began", "trial", "best", "waiting", "ended"]


@dataclass
class EventStream:
    """Turns what a search reports into events."""

    sink: EventSink
    _names: dict[str, str] = field(default_factory=dict)
    _table: ProgressTable = field(default_factory=ProgressTable)

    def began(self, functions: Sequence[tuple[Workload, int]]) -> None:
        """A search of functions begins, each with the number of its places."""
        self._names.update(labels(workload for workload, _ in functions))
        self._send(
            "began",
            functions=[
                {"key": one.key, "function": self._names[one.key], "places": places}
                for one, places in functions
            ],
        )

    def resumed(self, trials: Sequence[Trial]) -> None:
        """Trials of a resumed log, which are no events."""
        for trial in trials:
            self._table.add(trial)

    def trial(self, trial: Trial) -> None:
        """A trial ended; another event where it changed what is known of the best one."""
        key = trial.workload
        self._send(
            "trial",
            key=key,
            function=self._names.get(key, ""),
            outcome=trial.outcome,
            seconds=trial.seconds,
            default=trial.is_default,
            session=trial.method.session,
            disturbed=drift_of(trial),
        )
        before = self._choice(key)
        self._table.add(trial)
        after = self._choice(key)
        if after is not None and after != before:
            self._send(
                "best",
                key=key,
                function=self._names.get(key, ""),
                state=after.state,
                why=after.why,
                seconds=after.seconds,
                default_seconds=after.default_seconds,
                awaiting=len(after.awaiting),
            )

    def waiting(self, text: str) -> None:
        """The search waits for something."""
        self._send("waiting", text=text)

    def ended(self, result: TuneResult) -> None:
        """The search ended."""
        awaiting: list[Json] = [Workload.of(one.func).key for one in result.awaiting]
        self._send("ended", reason=result.stopped_because, awaiting=awaiting)

    def _choice(self, key: str) -> ScheduleChoice | None:
        rows = self._table.rows.get(key)
        return rows[0].choice if rows else None

    def _send(self, event: EventName, **body: Json) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self.sink({"version": VERSION, "event": event, "time": now, **body})
