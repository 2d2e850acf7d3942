"""tir/errors.py: one base, built from fields, rendered only when somebody reads it."""

from __future__ import annotations

import pickle

import pytest

from tilewright.tir.errors import InternalError as Defect
from tilewright.tir.errors import (
    IRError,
    IRTypeError,
    TargetError,
    TargetTypeError,
    TilewrightError,
    known_names,
)


def test_an_error_is_a_sentence_then_where_notes_and_hints() -> None:
    error = TilewrightError(
        "split: factors (4, 5) do not cover loop 'i'.",
        code="a-code",
        where="in matmul:\n    for i in range(64):",
        notes=["the schedule so far is: split(k)."],
        hints=["leave one factor None.", "or name more."],
    )
    assert str(error).splitlines() == [
        "TilewrightError: split: factors (4, 5) do not cover loop 'i'. [a-code]",
        "  in matmul:",
        "      for i in range(64):",
        "  Note: the schedule so far is: split(k).",
        "  Hint: leave one factor None.",
        "  Hint: or name more.",
    ]


def test_where_is_rendered_when_the_error_is_read_and_not_before() -> None:
    read = []
    error = IRError("m.", code="a-code", where=lambda: read.append(1) or "in f:")
    assert not read
    assert str(error) == "IRError: m. [a-code]\n  in f:"
    assert read == [1]


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (IRError, ValueError),
        (IRTypeError, TypeError),
        (TargetError, ValueError),
        (TargetTypeError, TypeError),
        (Defect, RuntimeError),
    ],
)
def test_each_error_is_also_the_builtin_that_a_caller_would_catch(
    kind: type[TilewrightError], builtin: type[Exception]
) -> None:
    assert issubclass(kind, builtin)
    assert issubclass(kind, TilewrightError)


def test_a_defect_of_ours_says_so() -> None:
    assert str(Defect("stage: broken.", code="a-code")) == (
        "InternalError: stage: broken. [a-code]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )


def test_known_names_come_closest_first_each_once() -> None:
    assert known_names("Cc", ["A", "C", "B", "C"]) == "'C', 'A', 'B'"
    assert known_names("x", []) == "none"


def test_errors_travel_between_processes_with_their_text() -> None:
    error = IRError("m.", code="a-code", where="in f:", notes=["n."], hints=["h."])
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is IRError
    assert str(other) == str(error)
