"""runtime/machine/threads.py: which numbers of threads a run takes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.machine.host import most_threads
from tilewright.runtime.machine.threads import checked_threads

from ...tiny_engine import tiny_engine


def test_whole_numbers_of_one_or_more_are_taken() -> None:
    taken = [checked_threads(number, "f") for number in (1, np.int64(3), True)]
    assert taken == [1, 3, 1]
    assert {type(number) for number in taken} == {int}


@pytest.mark.parametrize("threads", ["2", 1.5, 2.0, [1]])
def test_what_is_no_whole_number_is_refused(threads: object) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        checked_threads(threads, "f")
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        f"ArgumentTypeError: f: threads is {threads!r}; expected a whole number of at least 1. "
        "[argument-threads-type]"
    )


def test_an_engine_refuses_them_when_it_is_made_and_when_it_runs() -> None:
    engine = tiny_engine("python")
    with pytest.raises(ArgumentTypeError, match="tiny: threads is '2'"):
        engine.context(threads="2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"tiny: threads is 1\.5"):
        Engine(engine.parts, threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="tiny: threads is 0"):
        Engine(engine.parts, threads=0)


@pytest.mark.parametrize("threads", [10**4, 2**31, 2**63, 10**19])
def test_more_threads_than_a_machine_has_use_for_are_refused(threads: int) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        checked_threads(threads, "f")
    assert str(caught.value) == (
        f"ArgumentValueError: f: threads is {threads}; expected at most {most_threads()}. "
        "[argument-threads-most]\n"
        "  Note: that is four for each CPU of this machine, and at least 64."
    )
    with pytest.raises(ArgumentValueError, match="a number of more than 20 digits"):
        checked_threads(10**5000, "f")


def test_a_refused_number_starts_no_thread() -> None:
    engine = tiny_engine("python")
    before = threading.active_count()
    for count in (10**4, 2**31 - 1):
        with pytest.raises(ArgumentValueError, match="tiny: threads is"):
            engine.run(engine.random_inputs(), threads=count)
    assert threading.active_count() == before
    assert checked_threads(most_threads(), "f") == most_threads() >= 64
