"""tir/text/side_by_side.py: two texts beside each other, and which of their lines differ."""

from __future__ import annotations

import html
import re

from tilewright.tir.text.side_by_side import SideBySide

BEFORE = """\
def f(A: float32[8]):
    for i in range(8):
        with block("A", vi=spatial(8, i)):
            A[vi] = 1.0 < 2.0"""
AFTER = """\
def f(A: float32[8]):
    for i_0 in range(2):
        for i_1 in range(4):
            with block("A", vi=spatial(8, i_0 * 4 + i_1)):
                A[vi] = 1.0 < 2.0"""


def columns(shown: str) -> list[str]:
    """The `<pre>` elements."""
    return re.findall("<pre .*?</pre>", shown, re.DOTALL)


def text(shown: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", shown))


def tinted(column: str) -> list[str]:
    """The texts of the lines that stand on a tint."""
    lines = column.split('<span style="display:block')[1:]
    return [text("<" + line).strip() for line in lines if "background" in line]


def test_as_text_it_is_one_list_of_lines_with_those_that_differ_marked() -> None:
    assert str(SideBySide(BEFORE, AFTER, ("i_0, i_1 = split(i, factors=(None, 4))",))) == (
        "# i_0, i_1 = split(i, factors=(None, 4))\n"
        "  def f(A: float32[8]):\n"
        "-     for i in range(8):\n"
        '-         with block("A", vi=spatial(8, i)):\n'
        "+     for i_0 in range(2):\n"
        "+         for i_1 in range(4):\n"
        '+             with block("A", vi=spatial(8, i_0 * 4 + i_1)):\n'
        "                  A[vi] = 1.0 < 2.0"
    )


def test_in_a_notebook_the_columns_hold_the_texts_and_tint_what_differs() -> None:
    before, after = columns(SideBySide(BEFORE, AFTER)._repr_html_())
    assert text(before) == BEFORE + "\n"
    assert text(after) == AFTER + "\n"
    assert tinted(before) == ["for i in range(8):", 'with block("A", vi=spatial(8, i)):']
    assert tinted(after) == [line.strip() for line in AFTER.splitlines()[1:4]]


def test_the_steps_stand_above_the_columns() -> None:
    shown = columns(SideBySide(BEFORE, AFTER, ("fuse(i, j)", "parallel(i_j)"))._repr_html_())
    assert len(shown) == 3
    assert text(shown[0]) == "fuse(i, j)\nparallel(i_j)"


def test_equal_texts_have_no_marks() -> None:
    same = SideBySide(BEFORE, BEFORE)
    assert str(same) == "\n".join("  " + line for line in BEFORE.splitlines())
    assert [tinted(column) for column in columns(same._repr_html_())] == [[], []]
    assert repr(same) == str(same)
