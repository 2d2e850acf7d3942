"""The log of sizes: many writers, lines that were cut, what is chosen from it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.runtime.engine.size_log import SizeLogError, append_sizes, frequent_sizes
from tilewright.tir.output_file import OutputFileError


def test_the_most_frequent_sizes_are_chosen_over_all_lines(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "bert", [({"batch": 1, "seq": 17}, 5), ({"batch": 2, "seq": 3}, 7)])
    append_sizes(log, "bert", [({"batch": 1, "seq": 17}, 4), ({"batch": 4, "seq": 4}, 1)])
    assert log.read_text().splitlines()[0] == (
        '{"model": "bert", "sizes": {"batch": 1, "seq": 17}, "runs": 5}'
    )
    assert tw.frequent_sizes(log, 2) == [{"batch": 1, "seq": 17}, {"batch": 2, "seq": 3}]
    assert frequent_sizes(log, 9, model="bert")[2] == {"batch": 4, "seq": 4}
    assert frequent_sizes(log, 9, model="gpt") == []


@pytest.mark.parametrize(
    "cut", ["{", '{"model": "m", "si', '{"model": "m", "sizes": {"n": 7}, "ru']
)
def test_a_line_that_was_cut_is_ended_by_the_next_writer(tmp_path: Path, cut: str) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "m", [({"n": 1}, 1)])
    with log.open("a") as file:
        file.write(cut)
    assert frequent_sizes(log, 1) == [{"n": 1}]
    append_sizes(log, "m", [({"n": 2}, 2)])
    assert log.read_text().splitlines()[2] == '{"model": "m", "sizes": {"n": 2}, "runs": 2}'
    assert frequent_sizes(log, 9) == [{"n": 2}, {"n": 1}]


@pytest.mark.parametrize("line", ["no log", "", '{"model": "m", "sizes": {"n": 7}}'])
def test_a_line_that_is_none_of_a_log_is_refused(tmp_path: Path, line: str) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "m", [({"n": 1}, 1)])
    with log.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(SizeLogError) as caught:
        frequent_sizes(log, 1)
    assert f"sizes: line 2 of '{log}' is not one of a log of sizes: " in str(caught.value)
    assert "[size-log-line]\n  Hint: take the line out, or begin another log." in str(caught.value)


def _write(log: Path, number: int) -> None:
    for _ in range(200):
        append_sizes(log, "m", [({"n": number}, 1), ({"n": 0}, 1)])


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(log, number)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(log.read_text().splitlines()) == 800
    assert frequent_sizes(log, 1) == [{"n": 0}]


def test_what_is_no_log_is_refused_and_so_is_a_place_that_is_none(tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    with pytest.raises(SizeLogError) as caught:
        frequent_sizes(missing, 1)
    assert str(caught.value) == (
        f"SizeLogError: sizes: '{missing}' cannot be read: No such file or directory; expected a "
        "log of sizes. [size-log-file]\n"
        "  Hint: engine.log_sizes(path) writes one, and so does `tilewright run --shape-log`."
    )
    with pytest.raises(OutputFileError):
        append_sizes(tmp_path / "no" / "folder", "m", [({"n": 1}, 1)])
    log = tmp_path / "two.jsonl"
    append_sizes(log, "b", [({"n": 1}, 1)])
    append_sizes(log, "a", [({"n": 1}, 1)])
    with pytest.raises(SizeLogError) as caught:
        frequent_sizes(log, 1)
    assert str(caught.value) == (
        f"SizeLogError: sizes: '{log}' has runs of 'a', 'b'; expected the name of one of them. "
        "[size-log-models]\n"
        "  Hint: frequent_sizes(path, 1, model='a')"
    )
