"""cli/text.py: emphasis on a terminal only, columns, paragraphs."""

from __future__ import annotations

import io
import sys

import pytest

from tilewright.cli.text import (
    bad,
    duration_text,
    good,
    paragraph,
    progress_bar,
    shortened,
    strong,
    table,
    working,
)


class Terminal:
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Screen(io.StringIO):
    """The same, with what was written to it."""

    def isatty(self) -> bool:
        return True


def test_a_table_aligns_numbers_right_and_words_left() -> None:
    rows = [("one", "1.5 ms", "8%"), ("three", "12 ms", "")]
    assert table(("name", "median", "share"), rows, indent=2) == (
        "  name   median  share\n  one    1.5 ms     8%\n  three   12 ms"
    )


def test_a_table_without_rows_is_its_heads() -> None:
    assert table(("a", "b"), []) == "a  b"


def test_a_paragraph_stands_behind_its_label_and_is_cut_at_words() -> None:
    assert paragraph("model", "one", "  two") == "model      one\n             two"
    cut = paragraph("notes", "  " + " ".join(["word"] * 30)).splitlines()
    assert max(map(len, cut)) <= 100
    assert cut[0].startswith("notes        word")
    assert cut[1].startswith(" " * 15 + "word")


def test_a_long_path_is_never_cut() -> None:
    path = "/" + "x" * 120
    assert paragraph("source", path) == f"source     {path}"


def test_text_is_shortened_at_the_end() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abc, defghij", 8) == "abc..."


def test_there_is_no_emphasis_without_a_terminal() -> None:
    assert [strong("x"), good("x"), bad("x")] == ["x", "x", "x"]


def test_a_terminal_gets_emphasis_unless_no_color_asks_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert strong("x") == "\x1b[1mx\x1b[0m"
    line = good("equal") + " " + "x" * 82
    assert "\n" not in paragraph("checked", line)
    monkeypatch.setenv("NO_COLOR", "1")
    assert strong("x") == "x"


def test_progress_says_nothing_where_stderr_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with working("compiling") as tell:
        tell("plan")
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_shown_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_bar(2) as begin:
        begin("one")
    assert capsys.readouterr() == ("", "")
    stream = Screen()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(2) as begin:
        begin("one")
        begin("[other]")
    shown = stream.getvalue()
    assert shown.index("one") < shown.index("[other]") < shown.index("50%")
    assert "[progress" not in shown


def test_durations_have_one_or_two_units() -> None:
    assert [duration_text(n) for n in (0.4, 59.4, 60, 3599, 3600, 29_000)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "59 min 59 s",
        "1 h 00 min",
        "8 h 03 min",
    ]
