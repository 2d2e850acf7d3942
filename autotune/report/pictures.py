"""Figures of a log: the progress of the search, the fit of the cost model, the importance of the
questions, and a roofline. Needs the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from ...driver.tuning.errors import TuneError
from ...runtime.machine.timing import seconds_text
from ...tir.errors import TilewrightError
from ...tir.parsing.parser import parse
from ..log.choice import ScheduleChoice, choose
from ..log.disturbance import busy_text, drift_of
from ..log.file import Contents
from ..log.record import Trial, Workload
from ..log.summary import TuningSummary, summarise
from ..model.importance import importances
from ..model.model_fit import ModelFit, model_fit
from ..sizes import SizeValues
from .bound import MachineBound, roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = ("the search", "the cost model", "what matters", "the roofline")  # of a figure
_LINEAR_RANGE = 8.0  # the ratio of times beyond which a scale is logarithmic
SIZE = (12.0, 8.5)  # inches
_LABEL = 24  # characters in a legend
_CURVES = 8  # at most, of the functions with the largest gains
_BARS = 12  # questions
_FITTED, _EACH = 2, 16  # functions, and trials of each, when several are drawn: replay takes time
_PLAIN, _LIMIT, _GRID = "0.6", "0.35", "0.9"  # grey
_THIN = 0.8


def draw(
    known: Contents, title: str = "", begin: Callable[[str], object] = lambda step: None
) -> Figure:
    """Draw four plots of all functions of a log; of a single function, with every trial.

    begin: called with each of `STEPS` as it begins.
    Raises: TuneError where nothing ran, or matplotlib is missing.
    """
    begin(STEPS[0])
    figure_of = _figure_class()
    summaries = [one for one in summarise(known) if one.choice.best is not None]
    if not summaries:
        raise TuneError("plot: the log holds no trial that ran.", code="plot-empty")
    texts = {workload.key: workload for workload in known.workloads}
    figure = figure_of(figsize=SIZE, layout="constrained")
    curve, fit, weight, roof = (figure.add_subplot(2, 2, n) for n in range(1, 5))
    draw_curves(curve, summaries)
    begin(STEPS[1])
    draw_fit(fit, _fits(summaries, texts))
    begin(STEPS[2])
    draw_importance(weight, summaries)
    begin(STEPS[3])
    draw_roofline(roof, summaries, texts)
    figure.suptitle(title or _title(summaries), fontsize="medium")
    return figure


def draw_curves(axes: Axes, summaries: Sequence[TuningSummary]) -> None:
    """The least time of the search after each trial, and what a build takes: a full mark where it
    is confirmed, else a hollow one. Of one function with every trial as a dot, of several as shares
    of the time of the default, for the functions with the largest gains.
    """
    searched = {one.key: [t for t in one.trials if not t.method.session] for one in summaries}
    if len(summaries) == 1:
        (one,) = summaries
        _draw_trials(axes, searched[one.key], one.choice)
    else:
        ranked = sorted(summaries, key=lambda one: one.choice.gain or 1.0, reverse=True)
        for one in ranked[:_CURVES]:
            _draw_shares(axes, one, searched[one.key])
        axes.set_ylabel("time over the default's")
        axes.legend(fontsize="x-small", framealpha=0.8)
    axes.set_title("search")
    axes.set_xlabel("trials")
    axes.grid(color=_GRID, linewidth=_THIN)


def draw_fit(axes: Axes, fits: Sequence[ModelFit]) -> None:
    """The predictions of the model for unseen trials, against their times."""
    axes.set_title("cost model")
    if not fits:
        _say(axes, "too few trials for a model")
        return
    for fit in fits:
        axes.plot(_micro(fit.measured), _micro(fit.expected), ".", markersize=4, alpha=0.6)
    every = [seconds for fit in fits for seconds in (*fit.measured, *fit.expected)]
    ends = _micro((min(every), max(every)))
    axes.plot(ends, ends, color=_LIMIT, linewidth=_THIN)
    if ends[1] > _LINEAR_RANGE * ends[0]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    correlations = sorted(fit.rank_correlation for fit in fits)
    errors = sorted(fit.error for fit in fits)
    middle = len(fits) // 2
    axes.text(
        0.04,
        0.96,
        f"rank correlation {correlations[middle]:.2f}\nmedian error {errors[middle]:.0%}"
        + (f"\n(median of {len(fits)} functions)" if len(fits) > 1 else ""),
        transform=axes.transAxes,
        verticalalignment="top",
        fontsize="small",
    )
    axes.set_xlabel("measured, us")
    axes.set_ylabel("expected unseen, us")
    axes.grid(color=_GRID, linewidth=_THIN)


def draw_importance(axes: Axes, summaries: Sequence[TuningSummary]) -> None:
    """The share of the variance that each question explains, as the mean over its functions."""
    axes.set_title("what matters")
    shares: dict[str, list[float]] = {}
    for one in summaries:
        for each in importances(one.trials):
            shares.setdefault(each.question, []).append(each.share)
    means = {question: sum(each) / len(each) for question, each in shares.items()}
    ranked = sorted(means, key=lambda question: means[question], reverse=True)[:_BARS]
    if not any(means[question] for question in ranked):
        _say(axes, "no answer to one question explains the times" if ranked else "too few trials")
        return
    ranked.reverse()
    axes.barh(ranked, [100 * means[question] for question in ranked], height=0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the spread of times that the answers explain")
    axes.grid(axis="x", color=_GRID, linewidth=_THIN)
    axes.set_axisbelow(True)


def draw_roofline(
    axes: Axes, summaries: Sequence[TuningSummary], texts: dict[str, Workload]
) -> None:
    """The rates of the default (hollow) and the best schedule (full), below the peak rates of the
    machine and the bandwidths of its memory; at the last of several sizes, the largest by default.
    """
    axes.set_title("roofline")
    points = [(one, bound) for one in summaries if (bound := _bound(texts.get(one.key)))]
    points = [(one, bound.at(_largest(one))) for one, bound in points if bound.operations]
    if not points:
        _say(axes, "no function computes with floats")
        return
    for one, bound in points:
        x, at = bound.intensity, _largest(one)
        pair = [
            bound.operations / s / 1e9
            for s in (one.choice.default_seconds_at(at), one.choice.seconds_at(at))
            if s
        ]
        axes.loglog([x] * len(pair), pair, color=_PLAIN, linewidth=_THIN)
        axes.plot(x, pair[0], "o", markersize=4, color=_PLAIN, fillstyle="none")
        axes.plot(x, pair[-1], "o", markersize=4, color="C0")
    ends = [bound.intensity for _, bound in points]
    _draw_roofs(axes, [one for one, _ in points], (min(*ends, 0.25) / 2, max(*ends, 64.0) * 2))
    axes.set_xlabel("operations for each byte")
    axes.set_ylabel("GFLOP/s")
    axes.grid(color=_GRID, linewidth=_THIN)


def _draw_roofs(axes: Axes, summaries: Sequence[TuningSummary], ends: tuple[float, float]) -> None:
    """The bounds of the machine, as far as they are known."""
    low, high = ends
    found = roofs([trial for one in summaries for trial in one.trials])
    top = max(found.peaks.values(), default=0.0)
    for level, speed in found.bandwidths.items():
        axes.plot([low, top / speed], [low * speed, top], color=_LIMIT, linewidth=_THIN)
        text = f"{level} {speed:.0f} GB/s"
        _note(axes, text, (low, low * speed), (8, 0), ha="left", va="center")
    if found.peaks:
        axes.set_ylim(top=2 * top)  # room for what is said of the highest
    for name, peak in found.peaks.items():
        axes.plot([low, high], [peak, peak], color=_LIMIT, linewidth=_THIN)
        text = f"{name} {peak:.0f} GFLOP/s".strip()
        _note(axes, text, (high, peak), (0, 1), ha="right", va="bottom")


def _note(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    moved: tuple[int, int],
    *,
    ha: Literal["left", "right"],
    va: Literal["bottom", "center", "top"],
) -> None:
    """A small text beside a place, on a ground of its own: it hides what it would be struck by.
    moved: in points, to the right and upwards.
    """
    ground = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    axes.annotate(
        text, place, moved, textcoords="offset points", ha=ha, va=va, fontsize="small", bbox=ground
    )


def _draw_shares(axes: Axes, one: TuningSummary, searched: Sequence[Trial]) -> None:
    """The curve of one function among several, as shares of the default in the search."""
    choice = one.choice
    default = choose(searched).default_seconds or choice.default_seconds
    if default is None:
        return
    shares = [None if s is None else s / default for s in _least_so_far(searched)]
    (line,) = axes.step(range(1, len(shares) + 1), _floats(shares), where="post", alpha=0.5)
    axes.plot(
        [len(shares)], [1 / (choice.gain or 1.0)], "o", color=line.get_color(),
        fillstyle=_fill(choice), label=f"{_cut(one.label)}, {choice}",
    )  # fmt: skip


def _cut(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "\u2026"


def _fill(choice: ScheduleChoice) -> Literal["full", "none"]:
    return "full" if choice.state == "confirmed" else "none"


def _draw_trials(axes: Axes, trials: Sequence[Trial], choice: ScheduleChoice) -> None:
    timed = [(n, t.seconds) for n, t in enumerate(trials, 1) if t.seconds is not None]
    axes.plot([n for n, _ in timed], _micro(s for _, s in timed), ".", color=_PLAIN, markersize=4)
    disturbed = [(n, t.seconds) for n, t in enumerate(trials, 1) if t.seconds and drift_of(t)]
    if disturbed:
        numbers, seconds = zip(*disturbed, strict=True)
        axes.plot(numbers, _micro(seconds), "o", color="C1", fillstyle="none", markersize=6)
    default = choice.default_seconds
    if default is not None:
        axes.axhline(1e6 * default, color=_LIMIT, linewidth=_THIN, linestyle="--")
        text = f"default {seconds_text(default)}"
        _note(axes, text, (len(trials), 1e6 * default), (0, 2), ha="right", va="bottom")
    least = _least_so_far(trials)
    axes.step(range(1, len(least) + 1), [1e6 * s for s in _floats(least)], where="post")
    assert choice.seconds is not None
    axes.plot([len(least)], [1e6 * choice.seconds], "o", color="C0", fillstyle=_fill(choice))
    if choice.best is not choice.default:
        place = (len(least), 1e6 * choice.seconds)
        text = f"{choice} {seconds_text(choice.seconds)}"
        _note(axes, text, place, (-6, -5), ha="right", va="top")
    axes.margins(y=0.1)
    failed = [n for n, trial in enumerate(trials, 1) if trial.seconds is None]
    if failed:
        bottom = axes.get_ylim()[0]
        axes.plot(failed, [bottom] * len(failed), "x", color="C3", markersize=4, clip_on=False)
    times = [seconds for _, seconds in timed]
    if max(times) > _LINEAR_RANGE * min(times):
        axes.set_yscale("log")
    notes = [*(["x: failed"] if failed else ()), *(["o: disturbed"] if disturbed else ())]
    axes.set_ylabel(f"us ({', '.join(notes)})" if notes else "us")


def _least_so_far(trials: Iterable[Trial]) -> list[float | None]:
    """The least time after each trial; None before one ran."""
    seconds = (trial.seconds for trial in trials)
    return list(
        accumulate(seconds, lambda one, other: min((x for x in (one, other) if x), default=None))
    )


def _fits(summaries: Sequence[TuningSummary], texts: dict[str, Workload]) -> list[ModelFit]:
    """The fits of the functions with the most trials: of all trials where it is a single one."""
    fits: list[ModelFit] = []
    most = None if len(summaries) == 1 else _EACH
    for one in sorted(summaries, key=lambda one: -len(one.trials)):
        if len(fits) == _FITTED:
            break
        workload = texts.get(one.key)
        try:
            fit = None if workload is None else model_fit(workload, one.trials, most=most)
        except TilewrightError:  # the text of another version
            continue
        if fit is not None:
            fits.append(fit)
    return fits


def _largest(one: TuningSummary) -> SizeValues:
    """The last sizes at which a function was timed; () where no call decides any."""
    return one.setting.sizes[-1] if one.setting.sizes else ()


def _bound(workload: Workload | None) -> MachineBound | None:
    try:
        return None if workload is None else MachineBound.of(parse(workload.text))
    except TilewrightError:  # a text of another version
        return None


def _title(summaries: Sequence[TuningSummary]) -> str:
    busy = busy_text([trial for one in summaries for trial in one.trials])
    below = f"\n{busy}" if busy else ""
    settings = list(dict.fromkeys(str(one.setting) for one in summaries))
    more = f" and {len(settings) - 1} more settings" if len(settings) > 1 else ""
    if len(summaries) > 1:
        return f"{len(summaries)} functions on {settings[0]}{more}{below}"
    (one,) = summaries
    gain = "" if one.choice.gain is None else f", gain {one.choice.gain:.2f}, {one.choice}"
    return f"{one.label}: {len(one.trials)} trials{gain}\n{settings[0]}{below}"


def _say(axes: Axes, text: str) -> None:
    """An empty plot with a text."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=_LIMIT)
    axes.set_xticks([])
    axes.set_yticks([])


def _micro(seconds: Iterable[float]) -> list[float]:
    return [1e6 * one for one in seconds]


def _floats(values: Iterable[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _figure_class() -> type[Figure]:
    """matplotlib's Figure, without its global state. Raises: TuneError where it is missing."""
    try:
        from matplotlib.figure import Figure  # optional: the extra `plots`
    except ImportError:
        raise TuneError(
            "plot: matplotlib is not there.",
            code="plot-matplotlib",
            hints=('pip install "tilewright[plots]" brings it.',),
        ) from None

    class ShownFigure(Figure):
        """A figure that shows itself where it is the value of a notebook's cell."""

        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png")
            return drawn.getvalue()

    return ShownFigure
