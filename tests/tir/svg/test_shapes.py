"""tir/svg/shapes.py: escaped, the same each time, and to be read on light and on dark pages."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tilewright.tir.svg import shapes
from tilewright.tir.svg.shapes import arrow, circle, fitting, line, number, rectangle, text

COLOURS = [*shapes.SERIES, shapes.RED, shapes.GREY]
LIGHT, DARK = "#ffffff", "#111318"
READABLE = 3.0  # the contrast that WCAG 2.1 asks of graphics and of large text


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("page", [LIGHT, DARK])
@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_stands_out_from_light_and_from_dark(colour: str, page: str) -> None:
    low, high = sorted((luminance(colour), luminance(page)))
    assert (high + 0.05) / (low + 0.05) >= READABLE


def test_texts_and_titles_are_escaped() -> None:
    hostile = '</title><script>alert("1")</script>&'
    for shown in (
        text(0, 0, hostile, title=hostile),
        rectangle(0, 0, 1, 1, fill="none", title=hostile),
        circle(0, 0, 1, fill="none", stroke="none", title=hostile),
        line(((0, 0), (1, 1)), title=hostile),
    ):
        element = ElementTree.fromstring(shown)
        assert [child.tag for child in element.iter()][1:] == ["title"]
        assert hostile in "".join(element.itertext())


def test_shapes_have_their_places() -> None:
    assert rectangle(1.04, 2, 3, 4, fill="#fff") == (
        '<rect x="1" y="2" width="3" height="4" fill="#fff" fill-opacity="1" stroke="none"/>'
    )
    assert re.search(r'points="0,0 10,0"', arrow((0, 0), (10, 0)))
    assert arrow((0, 0), (10, 0)).endswith(
        'points="3,3.5 10,0 3,-3.5" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-opacity="1"/>'
    )


def test_numbers_have_one_digit() -> None:
    assert [number(value) for value in (-0.0, 0.04, 12.35, 1e6)] == ["0", "0", "12.3", "1000000"]


def test_a_text_that_is_too_wide_is_cut() -> None:
    assert fitting("short", 100) == "short"
    assert fitting("a long name of a kernel", 60) == "a long \u2026"
    assert fitting("a long name", 10) == ""
