"""Summaries of logs as text or JSON: a table for each setting, whose times may be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..text import bad, faint, paragraph, table

if TYPE_CHECKING:
    from ...autotune.log.summary import TuningSummary


def in_tables(
    summaries: Sequence[TuningSummary],
    heads: Sequence[str],
    row: Callable[[TuningSummary], Sequence[str]],
) -> str:
    """A table for each setting, and how the later settings differ from the first."""
    from ...autotune.log.disturbance import busy_text  # start-up
    from ...autotune.log.setting import differences

    settings = list(dict.fromkeys(one.setting.of_all for one in summaries))
    parts = []
    for setting in settings:
        here = [one for one in summaries if one.setting.of_all == setting]
        rows = [row(one) for one in here]
        generator = f"tilewright {setting.tool}, {setting.compiler}"
        head = [paragraph("setting", str(setting), faint(generator))]
        busy = busy_text([t for one in here for t in one.trials])
        if busy:
            head.append(paragraph("disturbed", bad(f"{busy} (~): their times are not reliable")))
        lines = [
            f"{one.label}, of {len(one.sizes)} sizes: {', '.join(one.sizes)}"
            for one in here
            if one.sizes
        ]
        means = [paragraph("means", *lines)] if lines else []
        parts.append("\n".join([*head, table(heads, rows), *means]))
    for number, setting in enumerate(settings[1:], 2):
        different = "; ".join(differences(setting, settings[0]))
        parts.append(
            f"times of setting {number} are not compared with those of the first: {different}"
        )
    return "\n\n".join(parts) or "the log holds no trial"


def time_cell(seconds: float | None) -> str:
    """A time as text; empty where it is unknown."""
    from ...runtime.machine.timing import seconds_text  # start-up

    return "" if seconds is None else seconds_text(seconds)
