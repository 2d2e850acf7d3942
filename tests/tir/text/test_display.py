"""Text for terminals: names are shown, not obeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.errors import IRError
from tilewright.tir.text.display import printable, sentence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 'quoted' \\ and\ttabs\n", "plain, 'quoted' \\ and\ttabs\n"),
        ("\u00fcml\u00e4ut \U0001f600", "\u00fcml\u00e4ut \U0001f600"),
        ("\x1b[2J\x1b]0;t\a", "\\x1b[2J\\x1b]0;t\\x07"),
        ("\0\r\x7f\x9b", "\\x00\\r\\x7f\\x9b"),
        ("a\u202eb\u2066\u200f\u2028\ufeff", "a\\u202eb\\u2066\\u200f\\u2028\\ufeff"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


@given(st.text(st.characters()))
def test_nothing_but_text_line_ends_and_tabs_is_left(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    shown.encode()
    line = sentence(text)
    assert "\n" not in line
    assert len(line) <= 4005


def test_a_name_cannot_forge_lines_of_an_error() -> None:
    name = "x\n  Hint: run this\x1b[8m"
    error = IRError(f"te: '{name}' is wrong.", code="te-name", where=f"in {name}:\n  y\x85z")
    assert str(error).splitlines() == [
        "IRError: te: 'x\\n  Hint: run this\\x1b[8m' is wrong. [te-name]",
        "  in x",
        "    Hint: run this\\x1b[8m:",
        "    y\\x85z",
    ]


def test_a_message_is_no_longer_than_somebody_reads() -> None:
    error = IRError(f"te: {list(range(10**5))} is too long a list.", code="te-list")
    first = str(error)
    assert len(first) < 4100
    assert first.startswith("IRError: te: [0, 1, 2, ")
    assert first.endswith(" 99998, 99999] is too long a list. [te-list]")
