"""tir/text/html.py: the very text, escaped, in colours that can be read on light and on dark
ground.
"""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest

from tilewright import te
from tilewright.tir.func import PrimFunc
from tilewright.tir.text.html import (
    IR,
    STEPS,
    C,
    Language,
    details,
    highlight,
    html_table,
    plain,
    spans,
)

TAG = re.compile(r"<[^>]*>")


class Balance(HTMLParser):
    """Notes the tags that are open and every attribute's name."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(text: str) -> str:
    """What a reader sees: tags away, entities read."""
    return html.unescape(TAG.sub("", text))


def styles(text: str) -> dict[str, str]:
    """Each styled word with its style."""
    return {
        html.unescape(word): css
        for css, word in re.findall(r'<span style="([^"]*)">(.*?)</span>', text, re.DOTALL)
    }


@pytest.fixture
def func() -> PrimFunc:
    a = te.placeholder((8, 4), "float32", name="A")
    k = te.reduce_axis(4, name="k")
    c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
    return te.func(a, c, name="rows")


def test_the_html_of_a_function_is_its_text(func: PrimFunc) -> None:
    assert read(func._repr_html_()) == str(func)


def test_every_kind_of_word_has_its_style(func: PrimFunc) -> None:
    found = styles(highlight(str(func) + "  # note\nfor j in parallel(4):"))
    assert found["rows"] == "font-weight:600"
    assert found["for"] == found["def"] == found["init"]
    kinds = [found[word] for word in ("for", "parallel", "8", "float32", "# note\nfor"[:6])]
    assert len(set(kinds)) == 5
    assert "A" not in found
    assert "vi" not in found


@pytest.mark.parametrize(
    "text",
    [
        '<script>alert("x")</script>',
        "a < b & c > d",
        "name = '\"><img src=x onerror=y>'",
        "# </pre><b>",
        'x["</span>"]',
        "1e-05 + 0x1F + float32(2.5)",
        "",
        "ünï_cödé = 1",
    ],
)
@pytest.mark.parametrize("language", [IR, STEPS, C])
def test_any_text_comes_through_escaped(text: str, language: Language) -> None:
    shown = highlight(text, language)
    parser = Balance()
    parser.feed(shown)
    parser.close()
    assert read(shown) == text
    assert parser.open == []
    assert parser.seen <= {"pre", "span"}
    assert parser.attributes <= {"style"}


def test_nothing_is_loaded_and_nothing_runs(func: PrimFunc) -> None:
    shown = func._repr_html_()
    for forbidden in ("http", "url(", "<script", "<style", "<link", "@import", "class="):
        assert forbidden not in shown


def test_a_number_inside_a_name_is_a_part_of_the_name() -> None:
    assert styles(highlight("i_0 = v1 * 48 + 0.5")).keys() == {"48", "0.5"}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_have_contrast_on_white_and_on_black(func: PrimFunc) -> None:
    colours = set(re.findall(r"color:(#\w{6})", highlight(f"{func} # note\nparallel(4)")))
    assert len(colours) == 5
    for colour in colours:
        light, dark = 1.05 / (luminance(colour) + 0.05), (luminance(colour) + 0.05) / 0.055
        assert min(light, dark) > 4, colour


def test_details_escape_their_summary_and_keep_their_content() -> None:
    shown = details("2 < 3", "<b>bold</b>", shown=True)
    assert shown.startswith("<details open><summary")
    assert "2 &lt; 3</summary><b>bold</b></details>" in shown
    assert details("x", "").startswith("<details><")


def test_words_of_c_and_its_comments_have_their_styles() -> None:
    found = styles(highlight('for (int64_t i = 0;) { /* serial\n i */ "a\\"b" }', C))
    assert found.keys() == {"for", "int64_t", "0", "/* serial", " i */", '"a\\"b"'}
    assert found["for"] != found["int64_t"] != found["/* serial"]


def test_spans_are_what_stands_in_the_pre_and_plain_has_none(func: PrimFunc) -> None:
    text = str(func)
    assert highlight(text).endswith(f">{spans(text)}</pre>")
    assert read(plain("a < b")) == "a < b"
    assert "<span" not in plain(text)


def test_tables_are_escaped() -> None:
    assert html_table(("a",), [("<b>",)]) == (
        "<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>"
    )
