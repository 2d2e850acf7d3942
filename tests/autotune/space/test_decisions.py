from __future__ import annotations

from tilewright.autotune.space.decisions import Decision, decisions_of, value_text
from tilewright.schedule.trace.trace import Step, Trace

from ..samples import trial


def asked(decision: object, **arguments: object) -> Step:
    return Step("sample_categorical", tuple(arguments.items()), decision)


def test_decisions_are_keyed_by_the_names_of_their_questions() -> None:
    trace = Trace(
        (
            asked(8, candidates=(4, 8), default=0, name="tile of i"),
            Step("split", (("factors", (None, 8)),)),
            asked((4, 16), candidates=((4, 16), (8, 8)), default=0),
        )
    )
    assert decisions_of(trace) == {
        "tile of i": Decision(8),
        "question 1": Decision((4, 16), is_default=True),
    }


def test_a_trace_of_before_questions_had_names_is_read() -> None:
    assert decisions_of(trial(1).trace) == {"question 0": Decision(8, is_default=True)}


def test_values_have_a_short_text() -> None:
    assert list(map(value_text, (8, (4, 16), [8, [2, 1]], True, "k first"))) == [
        "8",
        "4 x 16",
        "8 x 2 x 1",
        "true",
        "k first",
    ]
