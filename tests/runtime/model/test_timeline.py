"""runtime/model/timeline.py: bars of launches with shares and limits."""

from __future__ import annotations

import re

from tilewright.runtime.model.timeline import Bar, draw_timeline


def test_bars_follow_each_other() -> None:
    picture = draw_timeline([Bar("a", "k", 0.0, 3e-3), Bar("b", "k", 3e-3, 1e-3)], "t")
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture.svg)
    (left, width), (second, _) = [(float(x), float(w)) for x, w in bars]
    assert left + width == second
    assert ">75.0%</text>" in picture.svg
    assert "of limit" not in picture.svg


def test_a_known_limit_gives_a_share_of_it() -> None:
    picture = draw_timeline([Bar("<a>", "k", 0.0, 4e-3, 1e-3)], "t")
    assert ">of limit</text>" in picture.svg
    assert ">25%</text>" in picture.svg
    assert "&lt;a&gt;" in picture.svg


def test_of_many_launches_the_longest_are_shown_in_order() -> None:
    bars = [Bar(f"n{at}", "k", at * 1e-6, 1e-6 + 1e-8 * at) for at in range(50)]
    picture = draw_timeline(bars, "t")
    assert picture.svg.count("<rect") == 40
    assert "and 10 shorter launches" in picture.svg
    assert "n9<" not in picture.svg
    assert picture.svg.index(">n10<") < picture.svg.index(">n49<")
