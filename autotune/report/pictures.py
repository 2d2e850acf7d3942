"""Pictures of what a log holds: how times fell, what the cost model expected, which decisions
matter, and how near the machine's limits the kernels are. Needs the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ...driver.tuning.errors import TuneError
from ...runtime.machine.host import host
from ...runtime.machine.timing import seconds_text
from ...tir.errors import TilewrightError
from ...tir.parsing.parser import parse
from ..log.file import Contents
from ..log.record import Trial, Workload
from ..log.summary import Standing, standings
from ..model.importance import importances
from ..model.model_fit import ModelFit, model_fit
from .bound import Bound, memory_gb_per_s, peak_gflops

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE = 8.0  # times of the least one that an even scale can show
SIZE = (12.0, 8.5)  # inches
_CURVES = 8  # functions with a curve of their own: those that save most
_BARS = 12  # questions
_PLAIN, _LIMIT, _GRID = "0.6", "0.35", "0.9"  # grey
_THIN = 0.8


def draw(known: Contents, title: str = "") -> Figure:
    """Four pictures of all functions of a log, or, where there is one, of its trials.

    Raises: TuneError where nothing ran, or matplotlib is missing.
    """
    figure_of = _figure_class()
    found = [one for one in standings(known) if one.best is not None]
    if not found:
        raise TuneError("plot: the log holds no trial that ran.", code="plot-empty")
    texts = {workload.key: workload for workload in known.workloads}
    figure = figure_of(figsize=SIZE, layout="constrained")
    curve, fit, weight, roof = (figure.add_subplot(2, 2, n) for n in range(1, 5))
    draw_curves(curve, found)
    draw_fit(fit, _fits(found, texts))
    draw_importance(weight, found)
    draw_roofline(roof, found, texts)
    figure.suptitle(title or _title(found), fontsize="medium")
    return figure


def draw_curves(axes: Axes, found: Sequence[Standing]) -> None:
    """The best time after each trial. Of one function with every trial as a dot; of several as a
    share of the default's, those that save most.
    """
    alone = {one.key: [t for t in one.trials if not t.method.session] for one in found}
    if len(found) == 1:
        (one,) = found
        _draw_trials(axes, alone[one.key])
    else:
        ranked = sorted(found, key=lambda one: one.gain or 1.0, reverse=True)
        for one in ranked[:_CURVES]:
            best = _best_so_far(alone[one.key])
            first = next((seconds for seconds in best if seconds is not None), None)
            if first is None:
                continue
            shares = [None if seconds is None else seconds / first for seconds in best]
            places = range(1, len(shares) + 1)
            axes.step(
                places, _floats(shares), where="post", label=one.name, markevery=[-1], marker="."
            )
        axes.set_ylabel("best time over the default's")
        axes.legend(fontsize="small", frameon=False)
    axes.set_title("search")
    axes.set_xlabel("trials")
    axes.grid(color=_GRID, linewidth=_THIN)


def draw_fit(axes: Axes, fits: Sequence[ModelFit]) -> None:
    """What the model expected of trials that it did not see, beside what they took."""
    axes.set_title("cost model")
    if not fits:
        _say(axes, "too few trials for a model")
        return
    for fit in fits:
        axes.plot(_micro(fit.measured), _micro(fit.expected), ".", markersize=4, alpha=0.6)
    every = [seconds for fit in fits for seconds in (*fit.measured, *fit.expected)]
    ends = _micro((min(every), max(every)))
    axes.plot(ends, ends, color=_LIMIT, linewidth=_THIN)
    if ends[1] > _WIDE * ends[0]:
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


def draw_importance(axes: Axes, found: Sequence[Standing]) -> None:
    """The share of the spread of times that each question explains, the mean over functions that
    ask it.
    """
    axes.set_title("what matters")
    shares: dict[str, list[float]] = {}
    for one in found:
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


def draw_roofline(axes: Axes, found: Sequence[Standing], texts: dict[str, Workload]) -> None:
    """What the default (hollow) and the best schedule (full) reach, below what the multiply-add
    probe beside them reached and, of this machine, what memory gives.
    """
    axes.set_title("roofline")
    points = [(one, bound) for one in found if (bound := _bound(texts.get(one.key)))]
    points = [(one, bound) for one, bound in points if bound.operations]
    if not points:
        _say(axes, "no function computes with floats")
        return
    for one, bound in points:
        place = bound.intensity
        pair = [bound.operations / s / 1e9 for s in (one.default_seconds, one.seconds) if s]
        axes.loglog([place] * len(pair), pair, color=_PLAIN, linewidth=_THIN)
        axes.plot(place, pair[0], "o", markersize=4, color=_PLAIN, fillstyle="none")
        axes.plot(place, pair[-1], "o", markersize=4, color="C0")
    places = [bound.intensity for _, bound in points]
    _draw_roofs(axes, [one for one, _ in points], (min(*places, 0.25) / 2, max(*places, 64.0) * 2))
    axes.set_xlabel("operations for each byte")
    axes.set_ylabel("GFLOP/s")
    axes.grid(color=_GRID, linewidth=_THIN)


def _draw_roofs(axes: Axes, found: Sequence[Standing], ends: tuple[float, float]) -> None:
    """The limits of this machine; of another one, the most that its probes reached."""
    low, high = ends
    setting = found[0].setting
    if setting.cpu != host().model:
        probed = [trial.method.calibration or 0.0 for one in found for trial in one.trials]
        peak, places = max(probed), [low, high]
        roof = [peak, peak]
    else:
        peak = peak_gflops((t for one in found for t in one.trials), setting.threads)
        places, roof = [low, high], [peak, peak]
        for level, speed in memory_gb_per_s(setting.threads).items():
            ends_of_ramp = [low, peak / speed]
            axes.plot(ends_of_ramp, [low * speed, peak], color=_LIMIT, linewidth=_THIN)
            told = f"{level} {speed:.0f} GB/s"
            axes.annotate(told, (low, low * speed), ha="left", va="bottom", fontsize="small")
    axes.plot(places, roof, color=_LIMIT, linewidth=_THIN)
    told = f"{peak:.0f} GFLOP/s"
    axes.annotate(told, (high, peak), ha="right", va="bottom", fontsize="small")


def _draw_trials(axes: Axes, trials: Sequence[Trial]) -> None:
    timed = [(n, t.seconds) for n, t in enumerate(trials, 1) if t.seconds is not None]
    axes.plot([n for n, _ in timed], _micro(s for _, s in timed), ".", color=_PLAIN, markersize=4)
    default = next((t.seconds for t in trials if t.is_default and t.seconds is not None), None)
    if default is not None:
        axes.axhline(1e6 * default, color=_LIMIT, linewidth=_THIN, linestyle="--")
        told = f"default {seconds_text(default)}"
        axes.annotate(told, (1, 1e6 * default), ha="left", va="bottom", fontsize="small")
    best = _best_so_far(trials)
    axes.step(range(1, len(best) + 1), [1e6 * s for s in _floats(best)], where="post")
    axes.margins(y=0.1)
    failed = [n for n, trial in enumerate(trials, 1) if trial.seconds is None]
    if failed:
        bottom = axes.get_ylim()[0]
        axes.plot(failed, [bottom] * len(failed), "x", color="C3", markersize=4, clip_on=False)
    times = [seconds for _, seconds in timed]
    if max(times) > _WIDE * min(times):
        axes.set_yscale("log")
    axes.set_ylabel("us (x: failed)" if failed else "us")


def _best_so_far(trials: Iterable[Trial]) -> list[float | None]:
    """The least time after each trial; None before one ran."""
    seconds = (trial.seconds for trial in trials)
    return list(accumulate(seconds, lambda best, s: min((x for x in (best, s) if x), default=None)))


def _fits(found: Sequence[Standing], texts: dict[str, Workload]) -> list[ModelFit]:
    fits = []
    for one in found:
        workload = texts.get(one.key)
        try:
            fit = None if workload is None else model_fit(workload, one.trials)
        except TilewrightError:  # the log is of another version: its texts mean nothing now
            continue
        if fit is not None:
            fits.append(fit)
    return fits


def _bound(workload: Workload | None) -> Bound | None:
    try:
        return None if workload is None else Bound.of(parse(workload.text))
    except TilewrightError:  # a text of another version
        return None


def _title(found: Sequence[Standing]) -> str:
    settings = list(dict.fromkeys(str(one.setting) for one in found))
    more = f" and {len(settings) - 1} more settings" if len(settings) > 1 else ""
    if len(found) > 1:
        return f"{len(found)} functions on {settings[0]}{more}"
    (one,) = found
    gain = "" if one.gain is None else f", gain {one.gain:.2f}"
    return f"{one.name}: {len(one.trials)} trials{gain}\n{settings[0]}"


def _say(axes: Axes, text: str) -> None:
    """A picture of nothing, and why."""
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
    return Figure
