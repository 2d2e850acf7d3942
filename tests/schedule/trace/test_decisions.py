"""schedule/trace/decisions.py: who answers when a rule samples."""

from __future__ import annotations

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Default, Question, Random, Replay
from tilewright.schedule.trace.trace import Step, Trace

from ..programs import assert_replays, matmul


def of_three(step: int = 0, default: int = 0) -> Question:
    return Question(step, "letter", ("a", "b", "c"), default)


def test_the_default_is_the_choice_of_the_rule() -> None:
    assert Default().choose(of_three(default=2)) == 2


def test_random_choices_come_from_the_seed_and_reach_every_candidate() -> None:
    one, two = Random(7), Random(7)
    first = [one.choose(of_three(step)) for step in range(50)]
    assert first == [two.choose(of_three(step)) for step in range(50)]
    assert set(first) == {0, 1, 2}
    other = Random(8)
    assert first != [other.choose(of_three(step)) for step in range(50)]


def test_a_replay_finds_what_was_recorded_wherever_it_stands_now() -> None:
    trace = Trace((Step("split", ()), Step("sample_categorical", (), (4, 2))))
    assert Replay(trace).choose(Question(1, "", ((8, 1), (4, 2)), 0)) == 1
    assert Replay(trace).choose(Question(1, "", ((4, 2), (8, 1)), 1)) == 0


def test_a_name_stands_in_the_trace_and_none_where_none_was_given() -> None:
    sch = Schedule(matmul(6, 4, 4))
    sch.sample_categorical((2, 4), name="tile of C")
    sch.sample_categorical((2, 4))
    sch.sample_perfect_tile(sch.loops("C")[0], 2, 3, (3, 2))
    names = [dict(step.arguments).get("name") for step in sch.trace.steps]
    assert names == ["tile of C", None, "factors of i"]
    assert sch.steps[0] == '2 = sample_categorical(candidates=(2, 4), default=0, name="tile of C")'
    assert_replays(sch)
