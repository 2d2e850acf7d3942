"""The result of a search as HTML for a notebook: a table with a curve for each function. It keeps
the colours of the page, loads nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import inf, log

from ...runtime.machine.timing import seconds_text
from ...tir.svg.picture import Picture
from ...tir.svg.shapes import BLUE, RED, line
from ..log.choice import ScheduleChoice, choose
from ..log.disturbance import busy_text
from ..log.file import Contents
from ..log.record import Trial
from ..log.summary import summarise

_WIDTH, _HEIGHT, _EDGE = 140, 22, 2  # pixels
_GAIN = ' style="color:#1f8a54;font-weight:600"'
_SIGNIFICANT = 1.01  # the least gain that is coloured
_MOST_ROWS = 60
_STYLE = (
    ":root{color-scheme:light dark}body{font:14px sans-serif;margin:2em auto;max-width:70em}"
    "td,th{padding:.2em .8em;text-align:right}td:first-child,th:first-child{text-align:left}"
)
_LEGEND = (
    "confirmed: won against the default in fresh processes; candidate: faster in the search alone; "
    "undecided: the machine was busy during its confirmation, and the default is taken; "
    "~: the machine was busy while it was timed."
)
_LEAST_SCALE = log(1.5)  # the least range of a curve, so that noise does not fill it


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: one function in one setting. places: in a model; None where unknown."""

    name: str
    places: int | None
    trials: Sequence[Trial]
    choice: ScheduleChoice

    @property
    def gain(self) -> float:
        """The time of the default over that of the best trial; 1 where one is unknown."""
        return self.choice.gain or 1.0


def functions_html(rows: Iterable[TableRow], title: str, below: str = "") -> str:
    """A table of functions with a title, those with the largest gain first."""
    ordered = sorted(rows, key=lambda row: -row.gain)
    counted = any(row.places is not None for row in ordered)
    names = ("function", *(("places",) if counted else ()), "trials", "failed", "default", "best")
    heads = "".join(f"<th>{head}</th>" for head in (*names, "gain", "state", "search"))
    body = "".join(_row(row, counted) for row in ordered[:_MOST_ROWS])
    more = len(ordered) - _MOST_ROWS
    if more > 0:
        below = f"and {more} more functions\n{below}"
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in below.splitlines())
    return f"<p><b>{escape(title)}</b></p><table><tr>{heads}</tr>{body}</table>{paragraphs}"


def log_html(known: Contents) -> str:
    """The functions of a log: a table for each setting, whose times may be compared."""
    summaries = summarise(known)
    tables = []
    for setting in dict.fromkeys(one.setting.of_all for one in summaries):
        here = [one for one in summaries if one.setting.of_all == setting]
        rows = (TableRow(one.label, None, one.trials, one.choice) for one in here)
        busy = busy_text([trial for one in here for trial in one.trials])
        below = [f"{busy} (~)"] if busy else []
        below += [f"{one.label}: {', '.join(one.sizes)}" for one in here if one.sizes]
        tables.append(functions_html(rows, str(setting), "\n".join(below)))
    return "".join(tables) or "<p>the log holds no trial</p>"


def log_page(known: Contents, title: str) -> str:
    """The same as one page, which loads nothing and runs no script."""
    counts = f"{len(known.workloads)} functions, {len(known.trials)} trials"
    if known.problems:
        counts += f", {len(known.problems)} lines that are no records"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1><p>{escape(counts)}</p>"
        f"<p>{escape(_LEGEND)}</p>{log_html(known)}</body></html>\n"
    )


def curve_svg(trials: Sequence[Trial]) -> str:
    """The least time after each trial, as a line on a logarithmic scale, with dashes at the time of
    the default and red marks at failed trials. Empty where nothing ran.
    """
    searched = [trial for trial in trials if not trial.method.session]
    least = list(accumulate((t.seconds or inf for t in searched), min))
    known = [seconds for seconds in least if seconds < inf]
    if not known:
        return ""
    default = choose(searched).default_seconds or known[0]
    low, high = min(known), max(*known, default)
    scale = max(log(high / low), _LEAST_SCALE)

    def y(seconds: float) -> float:
        return _EDGE + (_HEIGHT - 2 * _EDGE) * log(high / seconds) / scale

    def x(number: float) -> float:
        return number * _WIDTH / len(searched)

    steps = [
        (x(number), y(seconds))
        for place, seconds in enumerate(least)
        if seconds < inf
        for number in (place, place + 1)
    ]
    failed = [x(n + 0.5) for n, trial in enumerate(searched) if trial.seconds is None]
    marks = (
        line(((0, y(default)), (_WIDTH, y(default))), opacity=0.5, dashed=True),
        line(steps, stroke=BLUE),
        *(line(((at, _HEIGHT), (at, _HEIGHT - 4)), stroke=RED) for at in failed),
    )
    return Picture(_WIDTH, _HEIGHT, "best time by trials", marks).svg


def _row(row: TableRow, counted: bool) -> str:
    failed = sum(trial.outcome != "ok" for trial in row.trials)
    choice = row.choice
    gain = "" if choice.gain is None else f"{choice.gain:.2f}"
    cells = (
        row.name,
        *(("" if row.places is None else str(row.places),) if counted else ()),
        str(len(row.trials)),
        str(failed),
        "" if choice.default_seconds is None else seconds_text(choice.default_seconds),
        "" if choice.seconds is None else seconds_text(choice.seconds),
    )
    text = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    style = _GAIN if row.gain >= _SIGNIFICANT else ""
    state = "" if choice.best is None else escape(str(choice))
    title = f' title="{escape(choice.why)}"' if choice.why else ""
    curve = curve_svg(row.trials)
    return f"<tr>{text}<td{style}>{gain}</td><td{title}>{state}</td><td>{curve}</td></tr>"
