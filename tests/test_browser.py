"""Rich objects in a browser: each shows its main figures, in a light page and in a dark one, and
the browser has nothing to say about them. Skipped where there is no Chromium.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

import tilewright as tw
from tests.autotune.samples import scaled, trial
from tests.tiny_engine import tiny_engine
from tilewright import te
from tilewright.autotune.log.choice import choose
from tilewright.autotune.result import TunedFunction, TuneResult
from tilewright.runtime.machine.timing import summarise
from tilewright.runtime.measure.roofline import Roofline, Work
from tilewright.runtime.model.precision_report import (
    LayerPrecision,
    LayerTimes,
    PrecisionReport,
    SliceScore,
)
from tilewright.runtime.model.profile import Profile, StepTime
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.text.source_text import AssemblyText, SourceText

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium, in which pages are shown"),
    pytest.mark.needs_cc,
]


NARROW = PrecisionReport(
    (
        LayerPrecision("fc1", "bytes", "", 0.038, LayerTimes(narrow=2e-6, floats=3e-6)),
        LayerPrecision("fc2", "float32", "its channels are in 16 groups"),
    ),
    scores=(SliceScore("top1", "all", 700, 0.99, 0.98, 0.01),),
)


class Rich(Protocol):
    """What a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A rich object, and texts that its page must show; drawings: how many there are in it."""

    name: str
    shown: Rich
    texts: tuple[str, ...]
    drawings: int = 0


def refusal() -> ScheduleError:
    A = te.placeholder((4, 8), "float32", name="A")
    k = te.reduce_axis(8, name="k")
    S = te.compute((4,), lambda i: te.sum(A[i, k], k), name="S")
    schedule = Schedule(te.func(A, S, name="rows"))
    with pytest.raises(ScheduleError) as caught:
        schedule.vectorize(schedule.loops("S")[1])
    return caught.value


@cache
def cases() -> tuple[Case, ...]:
    engine = tiny_engine()
    roofline = Roofline(summarise([1e-3]), 2, Work(10**8, 10**6), 200.0, 50.0)
    steps = (StepTime("<conv>", "k1", 3e-3, 1e-3), StepTime("relu", "k2", 1e-3))
    history = (trial(0, seconds=4e-6), trial(1, seconds=2e-6))
    tuned = TunedFunction(scaled(), 1, choose(history), history)
    schedule = Schedule(scaled())
    schedule.split(schedule.loops("y")[0], (None, 8))
    return (
        Case("engine", engine, ("Engine tiny", "lower bound 2.62 KiB"), 2),
        Case("report", engine.explain(), ("mm1", "2 times", "4 launches in order"), 1),
        Case("memory plan", engine.memory_plan, ("offset in the arena, KiB", "first matmul"), 1),
        Case("coverage", engine.tuning, ("kernels 3: default 3", "relu"), 0),
        Case("precision", NARROW, ("fc1", "3.8e-02", "top1 of all: 0.98"), 0),
        Case("layer errors", NARROW.picture(), ("fc1", "error, of the power of the result"), 1),
        Case("roofline", roofline, ("50% of the compute limit", "operations per byte"), 1),
        Case("profile", Profile("m", 2, 5, 4e-3, steps), ("<conv>", "75.0%", "33%"), 1),
        Case("result", TuneResult((tuned,), "budget"), ("ended: budget", "trials"), 2),
        Case("schedule", schedule, ("1 step so far", "range(8)", "split"), 0),
        Case("trace", schedule.trace, ("split(", "factors"), 0),
        Case("refusal", refusal(), ("--> ", "both touch S[0]"), 1),
        Case("source", SourceText("for (int i = 0; i < 8; ++i) {\n}"), ("i < 8",), 0),
        Case("assembly", AssemblyText("vmovups %ymm0, (%rdi)\nret"), ("%ymm0, (%rdi)\nret",), 0),
        Case("tensor", te.placeholder((8,), "float32", name="A"), ("Tensor A: float32[8]",), 0),
    )


def page(folder: Path, background: str, colour: str) -> Path:
    """All objects in one page of these colours, each in a part of its own, folds open."""
    parts = [f'<section id="{case.name}">{case.shown._repr_html_()}</section>' for case in cases()]
    body = "\n".join(parts).replace("<details>", "<details open>")
    style = f"body{{background:{background};color:{colour}}}"
    file = folder / "page.html"
    head = f'<meta charset="utf-8"><style>{style}</style>'
    file.write_text(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>")
    return file


def browse(file: Path, folder: Path) -> tuple[str, list[str]]:
    """The document as a browser has it, and what it wrote to its console."""
    assert CHROMIUM is not None
    options = ["--headless", "--disable-gpu", "--no-first-run", "--enable-logging=stderr"]
    options += [f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [CHROMIUM, *options, file.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("background", "colour"),
    [("#ffffff", "#1f1f1f"), ("#111318", "#e0e0e0")],
    ids=["light", "dark"],
)
def test_a_browser_shows_every_rich_object(tmp_path: Path, background: str, colour: str) -> None:
    document, console = browse(page(tmp_path, background, colour), tmp_path)
    assert console == []
    for case in cases():
        section = document.partition(f'<section id="{case.name}">')[2].partition("</section>")[0]
        words = html.unescape(re.sub("<[^>]*>", "", section))
        assert [text for text in case.texts if text not in words] == [], case.name
        assert section.count("<svg") == case.drawings, case.name


def test_a_line_that_was_clicked_lights_up_the_lines_that_belong_to_it(tmp_path: Path) -> None:
    kernel = tw.build(scaled(), "c:scalar")
    # A busy machine may load the page before its window has the focus, and then `:focus` holds
    # nowhere: the rules are asked with a class in its place, the focus by the active element.
    script = (
        "for (const style of document.querySelectorAll('style'))"
        " style.textContent = style.textContent.replaceAll(':focus', '.focused');"
        "const line = document.querySelector('pre:last-of-type .n1'); line.focus();"
        "document.activeElement.classList.add('focused');"
        "document.title = [...document.querySelectorAll('pre span')]"
        ".filter(one => getComputedStyle(one).backgroundColor != 'rgba(0, 0, 0, 0)')"
        ".map(one => one.textContent.trim()).join('; ')"
    )
    file = tmp_path / "page.html"
    shown = kernel.source._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8>{shown}<script>{script}</script>")
    document, console = browse(file, tmp_path)
    assert console == []
    (title,) = re.findall("<title>(.*?)</title>", document)
    assert html.unescape(title).startswith("for i in range(")
    assert "; for (int64_t i = 0; i < " in html.unescape(title)
    assert "block" not in title


def test_a_message_on_the_console_is_found(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<!doctype html><script>console.error('seen')</script>")
    assert [line for line in browse(file, tmp_path)[1] if "seen" in line]
