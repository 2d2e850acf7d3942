"""tir/svg/picture.py and axes.py: one element for any page, and a file that stands alone."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tilewright.tir.svg.axes import Axes
from tilewright.tir.svg.picture import Picture
from tilewright.tir.svg.scale import Scale
from tilewright.tir.svg.shapes import circle

PICTURE = Picture(40, 20, 'a "dot"\nat 3', (circle(1, 2, 3, fill="none", stroke="#3f7ade"),))


def test_a_picture_shows_itself_and_says_what_it_shows() -> None:
    element = ElementTree.fromstring(PICTURE._repr_html_())
    assert element.attrib["viewBox"] == "0 0 40 20"
    assert element.attrib["aria-label"] == 'a "dot"'
    assert [child.tag.rpartition("}")[2] for child in element] == ["circle"]
    assert repr(PICTURE) == str(PICTURE) == 'a "dot"\nat 3'


def test_it_loads_nothing_and_runs_no_script() -> None:
    shown = PICTURE.svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not [word for word in ("http", "script", "url(", "id=", "class=") if word in shown]


def test_a_file_is_light_or_dark_as_its_reader_prefers(tmp_path: Path) -> None:
    file = PICTURE.save(tmp_path / "dot.svg")
    written = file.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in written
    assert ElementTree.fromstring(written).tag == "{http://www.w3.org/2000/svg}svg"


def test_axes_have_ticks_and_labels() -> None:
    across, upwards = Axes.spans(200, 100)
    axes = Axes(Scale(0.0, 2.0, *across), Scale(0.0, 1.0, *upwards), "launches", "ms")
    picture = axes.picture("times", ["<g/>"])
    texts = [e.text for e in ElementTree.fromstring(picture.svg).iter() if e.text]
    assert texts[-2:] == ["launches", "ms"]
    assert {"0", "0.5", "1", "1.5", "2", "0.2"} <= set(texts)
    assert (picture.width, picture.height, picture.marks[-1]) == (200, 100, "<g/>")
