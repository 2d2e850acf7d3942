from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from tilewright.autotune.log.file import Contents, contents
from tilewright.autotune.report.pictures import draw
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host

from ..samples import trial, workload

pytestmark = pytest.mark.needs_cc


def log(count: int = 40) -> Contents:
    """Trials with times that their answers decide, every tenth one failed."""
    made = [
        trial(n, seconds=(1 + n % 3) * 1e-6, outcome="wrong" if n % 10 == 9 else "ok")
        for n in range(count)
    ]
    return contents([workload(), *made])


def panels(figure: Figure) -> dict[str, Axes]:
    figure.draw_without_rendering()  # whatever cannot be laid out fails here
    return {axes.get_title(): axes for axes in figure.axes}


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_figure_shows_itself_in_a_notebook() -> None:
    assert draw(log())._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_four_pictures_of_one_function() -> None:
    figure = draw(log())
    assert figure.get_suptitle() == (
        "scaled 64: 40 trials, gain 1.00, default\nA CPU, c:avx512, 2 threads, cold constants"
    )
    found = panels(figure)
    assert list(found) == ["search", "cost model", "what matters", "roofline"]
    dots, default, best, chosen, failed = found["search"].lines
    assert len(dots.get_xdata()) == 36
    assert list(failed.get_xdata()) == [10, 20, 30, 40]
    assert list(best.get_ydata())[:3] == [1.5, 1.5, 1.5]
    assert list(default.get_ydata()) == [1.5, 1.5]
    assert list(chosen.get_ydata()) == [1.5]
    assert texts(found["search"]) == ["default 1.5 us"]
    assert len(found["cost model"].lines[0].get_xdata()) == 36
    assert texts(found["cost model"])[0].startswith("rank correlation 0.9")
    (bar,) = found["what matters"].patches
    assert bar.get_width() == pytest.approx(100.0)
    assert texts(found["roofline"]) == ["110 GFLOP/s"]


def test_several_functions_are_told_as_shares_of_their_defaults() -> None:
    other = [trial(n, n=32, seconds=(8 - n) * 1e-6) for n in range(4)]
    known = log()
    figure = draw(contents([*known.records, workload(32), *other]))
    assert figure.get_suptitle() == "2 functions on A CPU, c:avx512, 2 threads, cold constants"
    found = panels(figure)
    curves = {line.get_label(): list(line.get_ydata()) for line in found["search"].lines}
    assert curves["scaled 64, default"] == [1.0]
    assert curves["scaled 32, default"] == [1.0]  # the samples of both overlap
    assert len(found["search"].lines) == 4  # a curve and a mark for each function
    assert len(found["roofline"].lines) == 7  # two points and a line for each function, the roof


@pytest.mark.slow
def test_the_roofs_of_this_machine_are_memory_caches_and_arithmetic() -> None:
    at = replace(trial(0).conditions, cpu=host().model)
    figure = draw(contents([workload(), *(replace(t, conditions=at) for t in log(3).trials)]))
    told = texts(panels(figure)["roofline"])
    assert [text.rpartition(" ")[2] for text in told] == ["GB/s", "GB/s", "GFLOP/s"]


@pytest.mark.slow
def test_no_line_goes_through_a_text() -> None:
    """A line of the picture itself; those of the grid are faint."""
    at = replace(trial(0).conditions, cpu=host().model)
    trials = [replace(trial(n, seconds=(9 - n % 7) * 1e-6), conditions=at) for n in range(12)]
    figure = draw(contents([workload(), *trials]))
    found = panels(figure)
    struck = []
    for axes in (found["search"], found["roofline"]):
        ways = [line for line in axes.lines if line.get_linestyle() != "None"]
        for text in axes.texts:
            frame = text.get_window_extent()
            assert frame.height > 4
            # the letters, without the room for those that go below the line
            letters = Bbox.from_extents(frame.x0, frame.y0 + 2, frame.x1, frame.y1 - 2)
            paths = (way.get_transform().transform_path(way.get_path()) for way in ways)
            points = [point for path in paths for point in path.interpolated(200).vertices]
            struck += [text.get_text() for x, y in points if letters.contains(x, y)]
    assert struck == []


def test_what_too_few_trials_do_not_say_is_said() -> None:
    found = panels(draw(log(3)))
    assert texts(found["cost model"]) == ["too few trials for a model"]
    assert texts(found["what matters"]) == ["too few trials"]


def test_a_text_of_another_version_is_passed_over() -> None:
    known = contents([replace(workload(), text="no function"), *log().trials])
    found = panels(draw(known))
    assert texts(found["cost model"]) == ["too few trials for a model"]
    assert texts(found["roofline"]) == ["no function computes with floats"]


def test_a_log_in_which_nothing_ran_is_refused() -> None:
    with pytest.raises(TuneError) as refused:
        draw(contents([workload(), trial(0, outcome="wrong")]))
    assert str(refused.value) == ("TuneError: plot: the log holds no trial that ran. [plot-empty]")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TuneError) as refused:
        draw(log(3))
    assert str(refused.value) == (
        "TuneError: plot: matplotlib is not there. [plot-matplotlib]\n"
        '  Hint: pip install "tilewright[plots]" brings it.'
    )


def test_a_picture_is_written(tmp_path: Path) -> None:
    draw(log()).savefig(tmp_path / "log.png")
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")
