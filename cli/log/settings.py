"""What logs hold, in a table for each setting, since times of two settings are not compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..text import faint, paragraph, table

if TYPE_CHECKING:
    from ...autotune.log.summary import TuningSummary


def in_tables(
    found: Sequence[TuningSummary],
    heads: Sequence[str],
    row: Callable[[TuningSummary], Sequence[str]],
) -> str:
    """A table for each setting, below its name; what sets the later ones apart from the first."""
    from ...autotune.log.setting import differences  # start-up

    settings = list(dict.fromkeys(one.setting for one in found))
    parts = []
    for setting in settings:
        rows = [row(one) for one in found if one.setting == setting]
        made = f"tilewright {setting.tool}, {setting.compiler}"
        parts.append(f"{paragraph('setting', str(setting), faint(made))}\n{table(heads, rows)}")
    for number, setting in enumerate(settings[1:], 2):
        unlike = "; ".join(differences(setting, settings[0]))
        parts.append(
            f"times of setting {number} are not compared with those of the first: {unlike}"
        )
    return "\n\n".join(parts) or "the log holds no trial"


def time_cell(seconds: float | None) -> str:
    """A time, or nothing."""
    from ...runtime.machine.timing import seconds_text  # start-up

    return "" if seconds is None else seconds_text(seconds)
