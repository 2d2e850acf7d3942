"""The search for one function as a picture: every candidate, the best so far, the default, and what
confirmation measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf

from ...runtime.machine.timing import seconds_text
from ...tir.svg.axes import Axes
from ...tir.svg.picture import Picture
from ...tir.svg.scale import Scale, whole_text
from ...tir.svg.shapes import BLUE, GREEN, GREY, RED, circle, line, text
from ..log.choice import choose
from ..log.record import Trial

_WIDTH, _HEIGHT = 640.0, 280.0
_SLOW = 4.0  # times the default: the end of the scale
_CONFIRMED = 3  # places behind the search, for what confirmation measured


def draw_search(trials: Sequence[Trial], caption: str) -> Picture | None:
    """The times of trials in order, on a logarithmic scale, those that are much slower than the
    default at its upper end; None where nothing ran.
    """
    searched = [trial for trial in trials if not trial.method.session]
    confirmed = [trial for trial in trials if trial.method.session]
    known = [seconds for trial in trials if (seconds := trial.seconds) is not None]
    if not known:
        return None
    default = choose(trials).default_seconds
    shown = min(max(known), _SLOW * (min(known) if default is None else default))
    across, upwards = Axes.spans(_WIDTH, _HEIGHT)
    behind = _CONFIRMED if confirmed else 0
    label = "us a call" + ("" if default is None else f"; dashed: default {seconds_text(default)}")
    axes = Axes(
        Scale(0.0, float(len(searched) + behind + 1), *across),
        Scale.over([1e6 * min(known), 1e6 * shown], *upwards, logarithmic=True),
        "trials",
        label,
        x_text=whole_text,
    )
    marks = list(_search(axes, searched))
    if default is not None:
        y = axes.y(1e6 * default)
        marks.append(line(((axes.x.start, y), (axes.x.end, y)), dashed=True, opacity=0.6))
    marks += _confirmation(axes, confirmed, len(searched) + 2)
    return axes.picture(caption, marks)


def _search(axes: Axes, trials: Sequence[Trial]) -> Iterator[str]:
    """A dot for each trial that ran, a cross below for each that failed, a line at the least."""
    for number, trial in enumerate(trials, 1):
        x, seconds = axes.x(number), trial.seconds
        if seconds is None:
            bottom = axes.y.start
            title = f"trial {number}: {trial.outcome}"
            yield line(((x - 3, bottom - 7), (x + 3, bottom - 1)), stroke=RED, title=title)
            yield line(((x - 3, bottom - 1), (x + 3, bottom - 7)), stroke=RED, title=title)
        else:
            title = f"trial {number}: {seconds_text(seconds)}"
            yield circle(x, axes.y(1e6 * seconds), 2.5, fill=GREY, stroke="none", title=title)
    least = list(accumulate((trial.seconds or inf for trial in trials), min))
    steps: list[tuple[float, float]] = []
    for number, seconds in enumerate(least, 1):
        if seconds < inf:
            y = axes.y(1e6 * seconds)
            steps += [(axes.x(number), y), (axes.x(number + 1), y)]
    if steps:
        yield line(steps, stroke=BLUE)


def _confirmation(axes: Axes, trials: Sequence[Trial], place: float) -> Iterator[str]:
    """What fresh processes measured: a ring for the default, full points for candidates."""
    for trial in trials:
        if (seconds := trial.seconds) is not None:
            fill = "none" if trial.is_default else GREEN
            what = "default" if trial.is_default else "candidate"
            title = f"confirmation of the {what}: {seconds_text(seconds)}"
            at = axes.x(place), axes.y(1e6 * seconds)
            yield circle(*at, 4, fill=fill, stroke=GREEN, title=title)
    if trials:
        yield text(axes.x.end, axes.y.end - 10, "confirmation", anchor="end", fill=GREEN)
