"""schedule/decisions.py: who answers when a rule samples."""

from __future__ import annotations

from tilewright.schedule.decisions import Default, Random, Replay
from tilewright.schedule.trace import Step, Trace


def test_the_default_is_the_choice_of_the_rule() -> None:
    assert Default().choose(0, "abc", 2) == 2


def test_random_choices_come_from_the_seed_and_reach_every_candidate() -> None:
    one, two = Random(7), Random(7)
    first = [one.choose(step, "abc", 0) for step in range(50)]
    assert first == [two.choose(step, "abc", 0) for step in range(50)]
    assert set(first) == {0, 1, 2}
    assert first != [Random(8).choose(step, "abc", 0) for step in range(50)]


def test_a_replay_finds_what_was_recorded_wherever_it_stands_now() -> None:
    trace = Trace((Step("split", ()), Step("sample_categorical", (), (4, 2))))
    assert Replay(trace).choose(1, [(8, 1), (4, 2)], 0) == 1
    assert Replay(trace).choose(1, [(4, 2), (8, 1)], 1) == 0
