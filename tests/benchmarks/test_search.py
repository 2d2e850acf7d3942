"""A recorded space is searched without a machine that measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.search.__main__ import quality, recovery, run, tables
from benchmarks.search.recorded_space import FOLDER, Asked, RecordedSpace, Timed
from tilewright.autotune.space.space import Walk
from tilewright.schedule.errors import ScheduleError

SIZES = (1, 2, 4, 8, 16, 32)
QUESTIONS = (Asked("rows", SIZES, 0), Asked("columns", SIZES, 5), Asked("unroll", (1, 2), 0))


def seconds(rows: int, columns: int, unroll: int) -> float | None:
    if unroll == 2 and rows == 5:
        return None
    return float(f"{1 + abs(rows - 3) + 0.5 * abs(columns - 2) + 0.25 * unroll:.4g}e-6")


def tiny() -> RecordedSpace:
    """72 points; the last question is asked behind more than one row alone."""
    timed = []
    for rows in range(6):
        for columns in range(6):
            for unroll in range(2 if rows else 1):
                path = ((0, rows), (1, columns), (2, unroll))[: 3 if rows else 2]
                took = seconds(rows, columns, unroll + 1)
                told = {"rows": float(rows), "columns": float(columns)}
                told |= {"unroll": float(unroll)} if rows else {}
                timed.append(Timed(path, took, "wrong" if took is None else "ok", told))
    return RecordedSpace({"func": "tiny"}, QUESTIONS, tuple(timed))


def test_a_walk_leads_to_the_point_that_was_timed() -> None:
    space = tiny()
    assert space.candidate_at(Walk(())).point == (0, 5)
    found = space.candidate_at(Walk((3, 2, 0)))
    assert found.timed.seconds == pytest.approx(1.25e-6)
    assert [question.name for question in found.walk.questions] == ["rows", "columns", "unroll"]
    assert len(list(space.points())) == 66
    fewer = RecordedSpace(space.about, QUESTIONS, space.timed[:-1])
    with pytest.raises(ScheduleError):
        fewer.candidate_at(Walk((5, 5, 1)))


def test_a_table_that_was_written_is_read(tmp_path: Path) -> None:
    space = tiny()
    space.save(tmp_path / "tiny.json.gz")
    assert RecordedSpace.load(tmp_path / "tiny.json.gz") == space


def test_random_defaults_lead_to_points_that_run() -> None:
    starts = {tiny().from_random_default(seed).candidate_at(Walk(())).point for seed in range(20)}
    assert len(starts) > 10
    assert all(tiny().candidate_at(Walk(start)).timed.seconds is not None for start in starts)


def test_a_replay_tells_the_worth_of_each_strategy() -> None:
    rows, recovered = quality("tiny", tiny(), 3), recovery("tiny", tiny(), 3)
    assert [row.strategy for row in rows] == ["default", *["random"] * 3, *["evolutionary"] * 3]
    assert rows[0].over_best == pytest.approx((1 + 3 + 1.5 + 0.25) / 1.25)
    assert all(0 <= row.worst_percentile <= row.percentile <= 100 for row in rows)
    assert [one.within for one in recovered] == [3, 3]
    assert recovered[1].worst_trials < recovered[0].worst_trials
    text = tables(rows, recovered)
    assert text.count("\n| tiny |") == 9


def test_searches_of_one_seed_are_one() -> None:
    assert run(tiny(), "evolutionary", 1, 30) == run(tiny(), "evolutionary", 1, 30)
    assert sorted(run(tiny(), "random", 0, 100).seconds)[0] == pytest.approx(1.25e-6)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json.gz")), ids=lambda path: path.name)
def test_recorded_spaces_are_read_and_small(path: Path) -> None:
    space = RecordedSpace.load(path)
    assert path.stat().st_size < 300_000
    assert space.candidate_at(Walk(())).timed.seconds is not None
    assert len(space.timed) == len({one.point for one in space.timed})
