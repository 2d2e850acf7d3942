from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

from tilewright.autotune.log.choice import choose
from tilewright.autotune.report.html import TableRow, curve_svg, functions_html
from tilewright.tir.svg.shapes import BLUE, RED

from ..samples import trial


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{html}</div>")


def points(svg: str) -> list[tuple[float, float]]:
    (listed,) = re.findall(rf'points="([^"]*)"[^>]* stroke="{BLUE}"', svg)
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in listed.split())]


def test_a_curve_falls_where_a_trial_was_better() -> None:
    trials = [trial(n, seconds=s * 1e-6) for n, s in enumerate((4, 8, 2, 3))]
    assert points(curve_svg(trials)) == [
        (0, 2), (35, 2), (35, 2), (70, 2), (70, 20), (105, 20), (105, 20), (140, 20),
    ]  # fmt: skip
    assert 'points="0,2 140,2"' in curve_svg(trials)  # the default


def test_a_trial_that_failed_is_marked_and_one_in_turns_is_left_out() -> None:
    turns = replace(trial(3), method=replace(trial(3).method, session="a"))
    svg = curve_svg([trial(0), trial(1, outcome="crashed"), turns])
    assert svg.count(RED) == 1
    assert points(svg)[-1] == (140, 2)
    assert curve_svg([trial(1, outcome="crashed")]) == ""


def test_those_that_gained_most_come_first() -> None:
    gained = [trial(0, seconds=4e-6), trial(1, seconds=1e-6)]
    rows = [
        TableRow("same", 1, [trial(0)], choose([trial(0)])),
        TableRow("a<b", None, [trial(0), trial(1, outcome="wrong")], choose(gained)),
        TableRow("none", 2, [], choose(())),
    ]
    page = parsed(functions_html(rows, "t & u", "ended: <now>"))
    table = [[cell.text or "" for cell in row] for row in page.iter("tr")]
    assert table[1] == ["a<b", "", "2", "1", "6 us", "1.5 us", "4.00", "candidate", ""]
    assert [row[0] for row in table[1:]] == ["a<b", "same", "none"]
    assert table[3][4:7] == ["", "", ""]
    assert [text.text for text in page.iter("p")][-1] == "ended: <now>"
    coloured = [cell.text for cell in page.iter("td") if "style" in cell.attrib]
    assert coloured == ["4.00"]


def test_a_long_table_is_cut_and_says_so() -> None:
    page = functions_html([TableRow(f"f{n}", 1, [], choose(())) for n in range(70)], "many")
    assert page.count("<tr>") == 61
    assert "<p>and 10 more functions</p>" in page


def test_a_small_gain_looks_small() -> None:
    (_, top), *_, (_, bottom) = points(curve_svg([trial(0, seconds=1.0), trial(1, seconds=0.99)]))
    assert 0 < bottom - top < 1


def test_places_are_shown_where_they_are_known() -> None:
    assert "places" in functions_html([TableRow("f", 1, [], choose(()))], "t")
    assert "places" not in functions_html([TableRow("f", None, [], choose(()))], "t")
